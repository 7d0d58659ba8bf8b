"""How TensorFlow says what knows axes (`plan.ranked`).

Nothing here needs a static shape or rank: axes are negative, einsum has ``...``.
"""

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
_LETTERS = "abcdefgh"


def ranked(like: str) -> Callable[[RankedNode, tuple[Text, ...]], Text]:
    """What writes the nodes; ``like`` names a tensor of the working type."""

    def write(node: RankedNode, parts: tuple[Text, ...]) -> Text:
        return Text(_written(node, parts, like), ATOM)

    return write


def _written(node: RankedNode, parts: tuple[Text, ...], like: str) -> str:
    texts = [part.text for part in parts]
    match node:
        case Reduce(op=op, axes=axes, keep=keep):
            keepdims = ", keepdims=True" if keep else ""
            name = "max" if op == "peak" else op  # which is -inf of nothing here
            return f"tf.reduce_{name}({texts[0]}, {_axes(axes)}{keepdims})"
        case Expand(axes=axes):
            return _expanded(parts[0], axes)
        case Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            return f"tf.fill([{shape}], tf.constant({texts[0]}, {like}.dtype))"
        case Spread(axis=axis, size=size):
            return f"_spread({texts[0]}, {axis}, {whole(size).text})"
        case Permute(order=order):
            return _permuted(texts[0], order)
        case Diagonal(first=first, second=second):
            return _diagonal(texts[0], first, second)
        case Window(axis=axis, start=start, size=size, padded=padded):
            name = "_padded_window" if padded else "_window"
            return (
                f"{name}({texts[0]}, {axis}, {whole(start).text}, {whole(size).text})"
            )
        case Pick(axis=axis, at=at):
            place = ", ".join([whole(at).text, *[":"] * (-axis - 1)])
            return f"{parts[0].within(ATOM)}[..., {place}]"
        case Arange(size=size):
            return f"tf.range({whole(size).text}, dtype=tf.int64)"
        case Take() | Gather():
            return _taken(node, texts)
        case ScatterAdd():
            if parts[1].is_scalar:
                texts[1] = f"tf.constant({texts[1]}, {like}.dtype)"
            return _scattered(node, texts)
        case Cumulative(axis=axis, reverse=reverse):
            backwards = ", reverse=True" if reverse else ""
            return f"tf.cumsum({texts[0]}, {axis}{backwards})"
        case Einsum():
            return _einsum(node, parts)
        case Windows():
            return _windows(node, texts[0])
        case ProductOfOthers(axis=axis):
            return f"_product_of_others({texts[0]}, {axis})"
        case Stack():
            tensors = (_tensor(part, like) for part in parts)
            return f"_stacked({', '.join(tensors)})"
        case Softmax(axis=-1):
            return f"tf.nn.softmax({texts[0]})"
        case Softmax(axis=axis):
            return f"_softmax_along({texts[0]}, {axis})"
        case LogSoftmax(axis=-1):
            return f"tf.nn.log_softmax({texts[0]})"
        case LogSoftmax(axis=axis):
            total = f"tf.reduce_logsumexp({texts[0]}, {axis}, keepdims=True)"
            return f"({parts[0].within(PRODUCT)} - {total})"
        case Shares(axis=axis):
            return f"_shares({texts[0]}, {texts[1]}, {axis})"
        case _:
            raise AssertionError(f"unknown: {node}")


def _windows(node: Windows, text: str) -> str:
    name = "_padded_windows" if node.padded else "_windows"
    sizes = ", ".join(whole(e).text for e in (node.start, node.rows, node.columns))
    running = ", backward=True" if node.backward else ""
    return f"{name}({text}, {node.axis}, {sizes}{running})"


def _tensor(part: Text, like: str) -> str:
    """A number as a tensor of the working type."""
    text = part.text
    return f"tf.constant({text}, {like}.dtype)" if part.is_scalar else text


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _expanded(part: Text, axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        return f"tf.expand_dims({part.text}, {axes[0]})"
    marks = ["tf.newaxis" if axis in axes else ":" for axis in range(min(axes), 0)]
    return f"{part.within(ATOM)}[..., {', '.join(marks)}]"


def _permuted(text: str, order: tuple[int, ...]) -> str:
    if order == (-1, -2):
        return f"tf.linalg.matrix_transpose({text})"
    word = _LETTERS[: len(order)]
    turned = "".join(word[axis] for axis in order)
    return f'tf.einsum("...{word}->...{turned}", {text})'


def _diagonal(text: str, first: int, second: int) -> str:
    if (first, second) == (-2, -1):
        return f"tf.linalg.diag_part({text})"
    letters = list(_LETTERS[: -min(first, second)])
    letters[second] = letters[first]
    others = [c for c in letters if c != letters[first]]
    word, rest = "".join(letters), "".join([*others, letters[first]])
    return f'tf.einsum("...{word}->...{rest}", {text})'


def _taken(node: Take | Gather, texts: list[str]) -> str:
    match node:
        case Take(axis=axis, clipped=True):
            return f"_take_clipped({texts[0]}, {texts[1]}, {axis})"
        case Take(axis=axis):
            return f"tf.gather({texts[0]}, {texts[1]}, axis={axis})"
        case Gather(axis=axis):
            return f"_gather({texts[0]}, {texts[1]}, {axis})"


def _scattered(node: ScatterAdd, texts: list[str]) -> str:
    index, value, size = texts[0], texts[1], whole(node.size).text
    name = "_sum_by_position" if node.over_batch else "_scatter_add"
    return f"{name}({index}, {value}, {size}, {node.count}, {node.others})"


# --- contractions ------------------------------------------------------------------------


def _einsum(node: Einsum, parts: tuple[Text, ...]) -> str:
    """`tf.einsum` is a product of matrices inside. A row-wise inner product is faster as
    a product and a sum, and what is summed over batch axes must be said otherwise.
    """
    words = [word.removeprefix(_BATCH) for word in node.inputs]
    output = node.output.removeprefix(_BATCH)
    over_batch = output == node.output and any(
        w.startswith(_BATCH) for w in node.inputs
    )
    if not over_batch and _is_rows(words, output):
        axes = tuple(range(len(output) - len(words[0]), 0))
        product = f"{parts[0].within(PRODUCT)} * {parts[1].within(PRODUCT + 1)}"
        return f"tf.reduce_sum({product}, {_axes(axes)})"
    texts = [part.text for part in parts]
    if over_batch and len(words) == 2 and _is_outer(words, output):
        first, second = texts if output[0] == words[0][-1] else reversed(texts)
        return f"_sum_of_outer({first}, {second})"
    if over_batch and len(output) == 1 and sorted(words) == ["", output]:
        weights, rows = texts if words[1] else reversed(texts)
        return f"_sum_of_outer(tf.expand_dims({weights}, -1), {rows})[0]"
    if over_batch and node.inputs == (f"{_BATCH}{output}",):
        return f"_sum_over_batch({texts[0]}, {len(output)})"
    kept = f"{_BATCH}{output}" if over_batch else node.output
    text = f'tf.einsum("{",".join(node.inputs)}->{kept}", {", ".join(texts)})'
    return f"_sum_over_batch({text}, {len(output)})" if over_batch else text


def _is_rows(words: list[str], output: str) -> bool:
    letters = words[0]
    return words == [letters] * 2 and letters.startswith(output) and letters != output


def _is_outer(words: list[str], output: str) -> bool:
    a, b = words
    if not (a and b and a[:-1] == b[:-1] and a[-1] != b[-1]):
        return False
    return sorted(output) == sorted(a[-1] + b[-1])
