"""Operations on named axes, in PyTorch.

Batch axes come first and are never counted: axes are negative, helpers leave the rest
alone. Functions that legacy `vmap` (`is_grads_batched`) does not support
(`torch.einsum`, `broadcast_to`, `flatten`) are avoided where another one is equivalent.
"""

from __future__ import annotations

from gradspec.plan import arrays
from gradspec.targets.axes import called, places, whole
from gradspec.targets.expressions import ATOM, Scope, Text
from gradspec.targets.page import Page
from gradspec.targets.torch.einsum import einsum

_REDUCTIONS = {"max": "torch.amax", "min": "torch.amin"}


def ranked(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    if isinstance(node, arrays.Einsum):
        return einsum(node, parts, scope.page)
    return Text(_written(node, parts, scope.like, scope.page), ATOM)


def _written(
    node: arrays.RankedNode, parts: tuple[Text, ...], like: str, page: Page
) -> str:
    texts = [part.text for part in parts]
    match node:
        case arrays.Reduce(op="prod", axes=axes, keep=keep):
            return _prod(texts[0], axes, keep)
        case arrays.Reduce(op=op, axes=axes, keep=keep):
            name = _REDUCTIONS.get(op, f"torch.{op}")
            name = page.axes("largest") if op == "peak" else name
            return f"{name}({texts[0]}, {places(axes)}{_keepdim(keep)})"
        case arrays.Expand(axes=axes):
            return expanded(parts[0], axes)
        case arrays.Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            return f"{like}.new_full(({shape}{',' if axis == -1 else ''}), {texts[0]})"
        case arrays.Permute(order=order):
            return _permuted(parts[0], order, page)
        case arrays.Diagonal(first=first, second=second):
            return f"torch.diagonal({texts[0]}, dim1={first}, dim2={second})"
        case arrays.Window(axis=axis, start=start, size=size, padded=False):
            stretch = f"{whole(start).text}, {whole(size).text}"
            return f"torch.narrow({texts[0]}, {axis}, {stretch})"
        case arrays.Pick(axis=axis, at=at):
            return f"torch.select({texts[0]}, {axis}, {whole(at).text})"
        case arrays.Arange(size=size):
            return f"{page.axes('positions')}({whole(size).text}, {parts[-1].text})"
        case arrays.Take(axis=axis, clipped=clipped):
            name = page.axes("take_clipped" if clipped else "take")
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case arrays.ScatterAdd():
            if parts[1].is_scalar:
                texts[1] = f"{page.core('scalar_like')}({like}, {texts[1]})"
            return _scattered(node, texts, page)
        case arrays.Cumulative(axis=axis, reverse=reverse):
            return _running(texts[0], axis, reverse)
        case arrays.Stack():
            return called(node, [_tensor(part, like, page) for part in parts], page)
        case arrays.Softmax(axis=axis):
            return f"torch.softmax({texts[0]}, {axis})"
        case arrays.LogSoftmax(axis=axis):
            return f"torch.log_softmax({texts[0]}, {axis})"
        case _:
            return called(node, texts, page)


def _tensor(part: Text, like: str, page: Page) -> str:
    """A number as a tensor of the working type."""
    text = part.text
    return f"{page.core('scalar_like')}({like}, {text})" if part.is_scalar else text


def _keepdim(keep: bool) -> str:
    return ", keepdim=True" if keep else ""


def _prod(text: str, axes: tuple[int, ...], keep: bool) -> str:
    """One axis at a time, which is all that `torch.prod` takes. The first axes go
    first, so that the others keep their positions.
    """
    for axis in sorted(axes):
        text = f"torch.prod({text}, {axis}{_keepdim(keep)})"
    return text


def expanded(part: Text, axes: tuple[int, ...]) -> str:
    """New axes of size 1 by indexing; a single one by the cheaper method."""
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


def _scattered(node: arrays.ScatterAdd, texts: list[str], page: Page) -> str:
    index, value, size = texts[0], texts[1], whole(node.size).text
    name = page.axes("sum_by_position" if node.over_batch else "scatter_add")
    return f"{name}({index}, {value}, {size}, {node.count}, {node.others})"
