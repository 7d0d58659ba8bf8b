"""How JAX says what knows axes (`plan.ranked`)."""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.ranked import (
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
    Shares,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.targets.python import ATOM, PRODUCT, Text
from gradspec.targets.whole import whole

_BATCH = "..."


def ranked(like: str) -> Callable[[RankedNode, tuple[Text, ...]], Text]:
    """What writes the nodes; ``like`` names an array of the working type."""

    def write(node: RankedNode, parts: tuple[Text, ...]) -> Text:
        return Text(_written(node, parts, like), ATOM)

    return write


def _written(node: RankedNode, parts: tuple[Text, ...], like: str) -> str:
    texts = [part.text for part in parts]
    match node:
        case Reduce(op=op, axes=axes, keep=keep):
            name = "jax.nn.logsumexp" if op == "logsumexp" else f"jnp.{op}"
            keepdims = ", keepdims=True" if keep else ""
            if op == "peak":  # of nothing, too
                name, keepdims = "jnp.max", f"{keepdims}, initial=-jnp.inf"
            return f"{name}({texts[0]}, {_axes(axes)}{keepdims})"
        case Expand(axes=axes):
            return _expanded(parts[0], axes)
        case Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            comma = "," if axis == -1 else ""
            return f"jnp.full(({shape}{comma}), {texts[0]}, {like}.dtype)"
        case Spread(axis=axis, size=size):
            return f"_spread({texts[0]}, {axis}, {whole(size).text})"
        case Permute(order=(-1, -2)):
            return f"{parts[0].within(ATOM)}.mT"
        case Permute(order=order):
            return f"_permuted({texts[0]}, {order})"
        case Diagonal(first=first, second=second):
            return f"jnp.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case Window(axis=axis, start=start, size=size, padded=padded):
            name = "_padded_window" if padded else "_window"
            return (
                f"{name}({texts[0]}, {axis}, {whole(start).text}, {whole(size).text})"
            )
        case Pick(axis=axis, at=at):
            place = whole(at).text
            return f"jax.lax.index_in_dim({texts[0]}, {place}, {axis}, keepdims=False)"
        case Arange(size=size):
            return f"jnp.arange({whole(size).text})"
        case Take(axis=axis, clipped=True):
            return f'jnp.take({texts[0]}, {texts[1]}, axis={axis}, mode="clip")'
        case Take(axis=axis):
            return f"_take({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"_gather({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd():
            if parts[1].is_scalar:
                texts[1] = f"jnp.asarray({texts[1]}, {like}.dtype)"
            return _scattered(node, texts)
        case Cumulative(axis=axis, reverse=reverse):
            return _running(texts[0], axis, reverse)
        case Einsum():
            return _einsum(node, parts)
        case Windows():
            return _windows(node, texts[0])
        case ProductOfOthers(axis=axis):
            return f"_product_of_others({texts[0]}, {axis})"
        case Stack():
            return f"_stacked({', '.join(texts)})"
        case Softmax(axis=axis):
            return f"jax.nn.softmax({texts[0]}, {axis})"
        case LogSoftmax(axis=axis):
            return f"jax.nn.log_softmax({texts[0]}, {axis})"
        case Shares(axis=axis):
            return f"_shares({texts[0]}, {axis})"
        case _:
            raise AssertionError(f"unknown: {node}")


def _windows(node: Windows, text: str) -> str:
    name = "_padded_windows" if node.padded else "_windows"
    sizes = ", ".join(whole(e).text for e in (node.start, node.rows, node.columns))
    running = ", backward=True" if node.backward else ""
    return f"{name}({text}, {node.axis}, {sizes}{running})"


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _expanded(part: Text, axes: tuple[int, ...]) -> str:
    place = str(axes[0]) if len(axes) == 1 else str(axes)
    return f"jnp.expand_dims({part.text}, {place})"


def _running(text: str, axis: int, reverse: bool) -> str:
    if not reverse:
        return f"jnp.cumsum({text}, {axis})"
    return f"jnp.flip(jnp.cumsum(jnp.flip({text}, {axis}), {axis}), {axis})"


def _scattered(node: ScatterAdd, texts: list[str]) -> str:
    index, value, size = texts[0], texts[1], whole(node.size).text
    name = "_sum_by_position" if node.over_batch else "_scatter_add"
    return f"{name}({index}, {value}, {size}, {node.count}, {node.others})"


def _einsum(node: Einsum, parts: tuple[Text, ...]) -> str:
    """A row-wise inner product is fused as a product and a sum."""
    words = [word.removeprefix(_BATCH) for word in node.inputs]
    output = node.output.removeprefix(_BATCH)
    batched = any(word.startswith(_BATCH) for word in node.inputs)
    over_batch = batched and output == node.output
    if over_batch and words == [output]:
        return f"_sum_over_batch({parts[0].text}, {len(output)})"
    if not over_batch and _is_rows(words, output):
        axes = tuple(range(len(output) - len(words[0]), 0))
        product = f"{parts[0].within(PRODUCT)} * {parts[1].within(PRODUCT + 1)}"
        return f"jnp.sum({product}, {_axes(axes)})"
    texts = ", ".join(part.text for part in parts)
    return f'jnp.einsum("{",".join(node.inputs)}->{node.output}", {texts})'


def _is_rows(words: list[str], output: str) -> bool:
    letters = words[0]
    return words == [letters] * 2 and letters.startswith(output) and letters != output
