"""Operations on named axes, in PyTorch.

Batch axes stand in front and are never counted: axes are negative, helpers leave the
rest alone. What legacy `vmap` (`is_grads_batched`) cannot do (`torch.einsum`,
`broadcast_to`, `flatten`) is avoided where another function says the same.
"""

from __future__ import annotations

from gradspec.plan.arrays import (
    Arange,
    Cumulative,
    Diagonal,
    Einsum,
    Expand,
    Gather,
    LogSoftmax,
    Permute,
    Pick,
    ProductOfOthers,
    RankedNode,
    Reduce,
    ScatterAdd,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.targets.expressions import ATOM, Scope, Text
from gradspec.targets.page import Page
from gradspec.targets.torch.einsum import einsum
from gradspec.targets.whole import whole

_REDUCTIONS = {"max": "torch.amax", "min": "torch.amin"}


def ranked(node: RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    if isinstance(node, Einsum):
        return einsum(node, parts, scope.page)
    return Text(_written(node, parts, scope.like, scope.page), ATOM)


def _written(node: RankedNode, parts: tuple[Text, ...], like: str, page: Page) -> str:
    texts = [part.text for part in parts]
    match node:
        case Reduce(op="prod", axes=axes, keep=keep):
            return _prod(texts[0], axes, keep)
        case Reduce(op=op, axes=axes, keep=keep):
            name = _REDUCTIONS.get(op, f"torch.{op}")
            name = page.axes("largest") if op == "peak" else name
            return f"{name}({texts[0]}, {_axes(axes)}{_keepdim(keep)})"
        case Expand(axes=axes):
            return expanded(parts[0], axes)
        case Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            return f"{like}.new_full(({shape}{',' if axis == -1 else ''}), {texts[0]})"
        case Spread(axis=axis, size=size):
            return f"{page.axes('spread')}({texts[0]}, {axis}, {whole(size).text})"
        case Permute(order=order):
            return _permuted(parts[0], order, page)
        case Diagonal(first=first, second=second):
            return f"torch.diagonal({texts[0]}, dim1={first}, dim2={second})"
        case Window(axis=axis, start=start, size=size, padded=padded):
            name = page.axes("padded_window") if padded else "torch.narrow"
            return (
                f"{name}({texts[0]}, {axis}, {whole(start).text}, {whole(size).text})"
            )
        case Pick(axis=axis, at=at):
            return f"torch.select({texts[0]}, {axis}, {whole(at).text})"
        case Arange(size=size):
            return f"{page.axes('positions')}({whole(size).text}, {parts[-1].text})"
        case Take(axis=axis, clipped=clipped):
            name = page.axes("take_clipped" if clipped else "take")
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"{page.axes('gather')}({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd():
            if parts[1].is_scalar:
                texts[1] = f"{page.core('scalar_like')}({like}, {texts[1]})"
            return _scattered(node, texts, page)
        case Cumulative(axis=axis, reverse=reverse):
            return _running(texts[0], axis, reverse)
        case Windows():
            return _windows(node, texts[0], page)
        case ProductOfOthers(axis=axis):
            return f"{page.axes('product_of_others')}({texts[0]}, {axis})"
        case Stack():
            tensors = (_tensor(part, like, page) for part in parts)
            return f"{page.axes('stacked')}({', '.join(tensors)})"
        case Softmax(axis=axis):
            return f"torch.softmax({texts[0]}, {axis})"
        case LogSoftmax(axis=axis):
            return f"torch.log_softmax({texts[0]}, {axis})"
        case _:
            raise AssertionError(f"unknown: {node}")


def _windows(node: Windows, text: str, page: Page) -> str:
    name = page.axes("padded_windows" if node.padded else "windows")
    sizes = ", ".join(whole(e).text for e in (node.start, node.rows, node.columns))
    running = ", backward=True" if node.backward else ""
    return f"{name}({text}, {node.axis}, {sizes}{running})"


def _tensor(part: Text, like: str, page: Page) -> str:
    """A number as a tensor of the working type."""
    text = part.text
    return f"{page.core('scalar_like')}({like}, {text})" if part.is_scalar else text


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _keepdim(keep: bool) -> str:
    return ", keepdim=True" if keep else ""


def _prod(text: str, axes: tuple[int, ...], keep: bool) -> str:
    """One axis at a time: `torch.prod` takes no more. The first ones go first, so that
    the others keep their places.
    """
    for axis in sorted(axes):
        text = f"torch.prod({text}, {axis}{_keepdim(keep)})"
    return text


def expanded(part: Text, axes: tuple[int, ...]) -> str:
    """New axes of size 1 by indexing; one alone by the cheaper method."""
    if len(axes) == 1:
        return f"{part.within(ATOM)}.unsqueeze({axes[0]})"
    marks = ["None" if axis in axes else ":" for axis in range(min(axes), 0)]
    return f"{part.within(ATOM)}[..., {', '.join(marks)}]"


def _permuted(part: Text, order: tuple[int, ...], page: Page) -> str:
    if order == (-1, -2):
        return f"{part.within(ATOM)}.mT"
    return f"{page.axes('permuted')}({part.text}, {order})"


def _running(text: str, axis: int, reverse: bool) -> str:
    if not reverse:
        return f"torch.cumsum({text}, {axis})"
    return f"torch.cumsum(torch.flip({text}, ({axis},)), {axis}).flip({axis})"


def _scattered(node: ScatterAdd, texts: list[str], page: Page) -> str:
    index, value, size = texts[0], texts[1], whole(node.size).text
    name = page.axes("sum_by_position" if node.over_batch else "scatter_add")
    return f"{name}({index}, {value}, {size}, {node.count}, {node.others})"
