"""Operations on named axes, in JAX."""

from __future__ import annotations

from typing import assert_never, cast

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
    Ranked,
    RankedNode,
    Reduce,
    ScatterAdd,
    Shares,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.plan.contraction import is_over_batch
from gradspec.targets.expressions import ATOM, PRODUCT, Scope, Text
from gradspec.targets.page import Page
from gradspec.targets.whole import whole


def ranked(node: RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    return Text(_written(cast(Ranked, node), parts, scope), ATOM)


def _written(node: Ranked, parts: tuple[Text, ...], scope: Scope) -> str:
    texts, page = [part.text for part in parts], scope.page
    match node:
        case Reduce():
            return _reduce(node, texts[0])
        case Expand(axes=axes):
            return f"jnp.expand_dims({texts[0]}, {_axes(axes)})"
        case Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            comma = "," if axis == -1 else ""
            return f"jnp.full(({shape}{comma}), {texts[0]}, {scope.like}.dtype)"
        case Spread(axis=axis, size=size):
            return f"{page.axes('spread')}({texts[0]}, {axis}, {whole(size).text})"
        case Permute(order=(-1, -2)):
            return f"{parts[0].within(ATOM)}.mT"
        case Permute(order=order):
            ends = tuple(range(-len(order), 0))
            return f"jnp.moveaxis({texts[0]}, {order}, {ends})"
        case Diagonal(first=first, second=second):
            return f"jnp.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case Window(axis=axis, start=start, size=size, padded=padded):
            name = page.axes("padded_window" if padded else "window")
            stretch = f"{whole(start).text}, {whole(size).text}"
            return f"{name}({texts[0]}, {axis}, {stretch})"
        case Pick(axis=axis, at=at):
            behind = ", :" * (-axis - 1)
            return f"{parts[0].within(ATOM)}[..., {whole(at).text}{behind}]"
        case Arange(size=size):
            return f"jnp.arange({whole(size).text})"
        case Take(axis=axis, clipped=True):
            return f'jnp.take({texts[0]}, {texts[1]}, axis={axis}, mode="clip")'
        case Take(axis=axis):
            return f"{page.axes('take')}({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"{page.axes('gather')}({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd(size=size, count=count, others=others, over_batch=over_batch):
            name = page.axes("scatter_add_all" if over_batch else "scatter_add")
            index, value, *_ = texts
            if parts[1].is_scalar:
                value = f"jnp.asarray({value}, {scope.like}.dtype)"
            return f"{name}({index}, {value}, {whole(size).text}, {count}, {others})"
        case Cumulative(axis=axis, reverse=False):
            return f"jnp.cumsum({texts[0]}, {axis})"
        case Cumulative(axis=axis):
            return f"{page.axes('cumsum_back')}({texts[0]}, {axis})"
        case Einsum():
            return _einsum(node, parts, page)
        case Windows(axis=axis, backward=backward, padded=padded):
            name = page.axes("padded_windows" if padded else "windows")
            numbers = (node.start, node.rows, node.columns)
            sizes = ", ".join(whole(number).text for number in numbers)
            running = ", backward=True" if backward else ""
            return f"{name}({texts[0]}, {axis}, {sizes}{running})"
        case ProductOfOthers(axis=axis):
            return f"{page.axes('product_of_others')}({texts[0]}, {axis})"
        case Stack():
            return f"{page.axes('stacked')}({', '.join(texts)})"
        case Softmax(axis=axis):
            return f"jax.nn.softmax({texts[0]}, {axis})"
        case LogSoftmax(axis=axis):
            return f"jax.nn.log_softmax({texts[0]}, {axis})"
        case Shares():
            raise AssertionError(node)
        case _:
            assert_never(node)


def _reduce(node: Reduce, text: str) -> str:
    keeping = ", keepdims=True" if node.keep else ""
    name = "jax.nn.logsumexp" if node.op == "logsumexp" else f"jnp.{node.op}"
    if node.op == "peak":  # of nothing, too
        name, keeping = "jnp.max", f"{keeping}, initial=-jnp.inf"
    return f"{name}({text}, {_axes(node.axes)}{keeping})"


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _einsum(node: Einsum, parts: tuple[Text, ...], page: Page) -> str:
    """A row-wise inner product is fused as a product and a sum."""
    words = [word.removeprefix("...") for word in node.inputs]
    output = node.output.removeprefix("...")
    over_batch = is_over_batch(node)
    if over_batch and words == [output]:
        return f"{page.axes('batch_sum')}({parts[0].text}, {len(output)})"
    if not over_batch and _is_rows(words, output):
        axes = tuple(range(len(output) - len(words[0]), 0))
        product = f"{parts[0].within(PRODUCT)} * {parts[1].within(PRODUCT + 1)}"
        return f"jnp.sum({product}, {_axes(axes)})"
    texts = ", ".join(part.text for part in parts)
    return f'jnp.einsum("{",".join(node.inputs)}->{node.output}", {texts})'


def _is_rows(words: list[str], output: str) -> bool:
    letters = words[0]
    return words == [letters] * 2 and letters.startswith(output) and letters != output
