"""Operations that know axes, in NumPy; and the private functions that they need."""

from __future__ import annotations

from typing import assert_never, cast

from gradspec.plan.contraction import (
    TensorProduct,
    is_over_batch,
    matrix_product,
    tensor_product,
)
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
    Ranked,
    RankedNode,
    Reduce,
    ScatterAdd,
    Softmax,
    Spread,
    Stack,
    Take,
    Window,
)
from gradspec.primitives.row import Helper
from gradspec.targets.python import ATOM, PRODUCT, Text


def ranked(node: RankedNode, parts: tuple[Text, ...]) -> Text:
    """The operation as text."""
    match cast(Ranked, node):
        case Einsum() as contraction:
            return _einsum(contraction, parts)
        case Reduce(op=op, axes=axes, keep=keep):
            return Text(_reduce(op, parts[0], axes, keep), ATOM)
        case Expand(axes=axes):
            return Text(f"{parts[0].within(ATOM)}[{_new_axes(axes)}]", ATOM)
        case LogSoftmax(axis=axis):
            total = f"_logsumexp({parts[0].text}, axis={axis}, keepdims=True)"
            return Text(f"{parts[0].within(PRODUCT - 1)} - {total}", PRODUCT - 1)
        case other:
            return Text(_call(other, [part.text for part in parts], parts), ATOM)


def _call(node: Ranked, texts: list[str], parts: tuple[Text, ...]) -> str:
    match node:
        case Spread(axis=axis):
            return f"_spread({texts[0]}, {axis}, {_whole(texts[1])})"
        case Permute(order=order) if order == (-1, -2):
            return f"{parts[0].within(ATOM)}.swapaxes(-1, -2)"
        case Permute(order=order):
            return f"np.moveaxis({texts[0]}, {order}, {tuple(range(-len(order), 0))})"
        case Diagonal(first=first, second=second):
            return f"np.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case Window(axis=axis, padded=padded):
            name = "_padded_window" if padded else "_window"
            start, size = _whole(texts[1]), _whole(texts[2])
            return f"{name}({texts[0]}, {axis}, {start}, {size})"
        case Pick(axis=axis):
            behind = ", :" * (-axis - 1)
            return f"{parts[0].within(ATOM)}[..., {_whole(texts[1])}{behind}]"
        case Arange():
            return f"np.arange({_whole(texts[0])})"
        case Take(axis=axis, clipped=clipped):
            name = "_take_nearest" if clipped else "_take"
            return f"{name}({texts[0]}, {texts[1]}, {axis})"
        case Gather(axis=axis):
            return f"_gather({texts[0]}, {texts[1]}, {axis})"
        case ScatterAdd(count=count, others=others, over_batch=over_batch):
            name = "_scatter_add_all" if over_batch else "_scatter_add"
            index, value, size = texts[0], texts[1], _whole(texts[2])
            return f"{name}({index}, {value}, {size}, {count}, {others})"
        case Cumulative(axis=axis, reverse=False):
            return f"np.cumsum({texts[0]}, axis={axis})"
        case Cumulative(axis=axis):
            back = f"np.cumsum(np.flip({texts[0]}, {axis}), axis={axis})"
            return f"np.flip({back}, {axis})"
        case Stack():
            return f"_stacked({', '.join(texts)})"
        case Softmax(axis=axis):
            return f"_softmax({texts[0]}, {axis})"
        case Einsum() | Reduce() | Expand() | LogSoftmax():
            raise AssertionError(node)
        case _:
            assert_never(node)


def _whole(text: str) -> str:
    """A size without a point."""
    return text.removesuffix(".0")


def _reduce(op: str, arg: Text, axes: tuple[int, ...], keep: bool) -> str:
    axis = _axes(axes)
    keeping = ", keepdims=True" if keep else ""
    if op == "logsumexp":
        return f"_logsumexp({arg.text}, axis={axis}{keeping})"
    return f"{arg.within(ATOM)}.{op}(axis={axis}{keeping})"


def _new_axes(axes: tuple[int, ...]) -> str:
    depth = -min(axes)
    places = ("None" if p in axes else ":" for p in range(-depth, 0))
    return ", ".join(["...", *places])


def _einsum(node: Einsum, parts: tuple[Text, ...]) -> Text:
    texts = [part.text for part in parts]
    if len(parts) == 1 and not node.output:
        return Text(f"{parts[0].within(ATOM)}.sum()", ATOM)
    if len(parts) == 1:
        return Text(f"_batch_sum({texts[0]}, {len(node.output)})", ATOM)
    words = [word.removeprefix("...") for word in node.inputs]
    if is_over_batch(node):
        spec = f'"{words[0]}", "{words[1]}", "{node.output}"'
        return Text(f"_batch_contraction({spec}, {texts[0]}, {texts[1]})", ATOM)
    product = matrix_product(node)
    if product is None:
        axes = tensor_product(node)
        if axes is not None:
            return Text(_tensordot(texts, axes), ATOM)
        spec = f"{','.join(node.inputs)}->{node.output}"
        return Text(f'np.einsum("{spec}", {", ".join(texts)}, optimize=True)', ATOM)
    left = _swapped(parts[product.left], product.is_left_swapped, PRODUCT)
    right = _swapped(parts[product.right], product.is_right_swapped, PRODUCT + 1)
    return Text(f"{left} @ {right}", PRODUCT)


def _tensordot(texts: list[str], product: TensorProduct) -> str:
    left, right = (_axes(axes) for axes in (product.left_axes, product.right_axes))
    args = f"{texts[product.left]}, {texts[product.right]}"
    return f"np.tensordot({args}, axes=({left}, {right}))"


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _swapped(part: Text, is_swapped: bool, least: int) -> str:
    if is_swapped:
        return f"{part.within(ATOM)}.swapaxes(-1, -2)"
    return part.within(least)


CHECK_SHAPES = Helper(
    "_check_shapes",
    '''\
def _check_shapes(rule: str, sizes: dict[str, int], **values: Any) -> None:
    """Each array has its pattern's axes, and one size for each name in the patterns."""
    for name, (array, pattern) in values.items():
        words = pattern.strip("[]").split(", ") if pattern != "[]" else []
        core = [word for word in words if word != "..."]
        first = array.ndim - len(core)
        fits = first >= 0 if "..." in words else first == 0
        pairs = list(zip(core, array.shape[max(first, 0) :]))
        for axis, size in pairs if fits else []:
            fits &= size == (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))
        if not fits:
            known = [f"{axis} = {sizes[axis]}" for axis in core if axis in sizes]
            where = f" where {', '.join(dict.fromkeys(known))}" if known else ""
            raise ValueError(
                f"{rule}: {name} must have the shape {pattern}{where}, not {array.shape}"
            )
''',
    ("from typing import Any",),
)

SPREAD = Helper(
    "_spread",
    '''\
def _spread(value: np.ndarray, axis: int, size: int) -> np.ndarray:
    """``value`` repeated along ``axis``, which has size 1, without a copy."""
    shape = list(value.shape)
    shape[axis] = size
    return np.broadcast_to(value, shape)
''',
)

LOGSUMEXP = Helper(
    "_logsumexp",
    '''\
@np.errstate(divide="ignore")
def _logsumexp(value: np.ndarray, axis: Any, keepdims: bool = False) -> np.ndarray:
    """log(sum(exp(value))), shifted by the greatest value so that nothing overflows."""
    top = value.max(axis=axis, keepdims=True)
    top = np.where(np.isinf(top), 0.0, top).astype(value.dtype)
    total = np.exp(value - top).sum(axis=axis, keepdims=True)
    result = np.log(total) + top
    return result if keepdims else result.squeeze(axis=axis)
''',
    ("from typing import Any",),
)

SOFTMAX = Helper(
    "_softmax",
    '''\
def _softmax(value: np.ndarray, axis: int) -> np.ndarray:
    """Exponentials as shares of their sum, shifted so that none overflows."""
    exp = np.exp(value - value.max(axis=axis, keepdims=True))
    return exp / exp.sum(axis=axis, keepdims=True)
''',
)

STACKED = Helper(
    "_stacked",
    '''\
def _stacked(*parts: npt.ArrayLike) -> np.ndarray:
    """The parts side by side along a new last axis."""
    return np.stack(np.broadcast_arrays(*parts), axis=-1)
''',
)

WINDOW = Helper(
    "_window",
    '''\
def _window(value: np.ndarray, axis: int, start: int, size: int) -> np.ndarray:
    """``size`` positions of an axis from ``start`` on."""
    if start < 0 or start + size > value.shape[axis]:
        raise IndexError(
            f"positions {start} to {start + size - 1} of an axis of size "
            f"{value.shape[axis]}"
        )
    return np.moveaxis(np.moveaxis(value, axis, 0)[start : start + size], 0, axis)
''',
)

PADDED_WINDOW = Helper(
    "_padded_window",
    '''\
def _padded_window(value: np.ndarray, axis: int, start: int, size: int) -> np.ndarray:
    """``size`` positions of an axis from ``start`` on; outside there are zeros."""
    value = np.moveaxis(value, axis, 0)
    result = np.zeros((size, *value.shape[1:]), value.dtype)
    first, last = max(start, 0), min(start + size, value.shape[0])
    if first < last:
        result[first - start : last - start] = value[first:last]
    return np.moveaxis(result, 0, axis)
''',
)

IN_RANGE = Helper(
    "_in_range",
    '''\
def _in_range(index: np.ndarray, size: int) -> np.ndarray:
    """``index`` if all of it lies from 0 to ``size`` - 1: none counts from the end."""
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError(
            f"positions {index.min()} to {index.max()} of an axis of size {size}"
        )
    return index
''',
)

TAKE = Helper(
    "_take",
    '''\
def _take(value: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """Positions of ``axis``, which the axes of ``index`` replace."""
    return np.take(value, _in_range(index, value.shape[axis]), axis=axis)
''',
)

TAKE_NEAREST = Helper(
    "_take_nearest",
    '''\
def _take_nearest(value: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """The same; a position outside, which is not used, is the nearest one."""
    return np.take(value, index, axis=axis, mode="clip")
''',
)

GATHER = Helper(
    "_gather",
    '''\
def _gather(value: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """Positions of ``axis``; the other axes broadcast."""
    index = _in_range(index, value.shape[axis])
    ndim = max(value.ndim, index.ndim)
    value = value.reshape((1,) * (ndim - value.ndim) + value.shape)
    index = index.reshape((1,) * (ndim - index.ndim) + index.shape)
    return np.take_along_axis(value, index, axis=axis)
''',
)

SCATTER_ADD = Helper(
    "_scatter_add",
    '''\
def _scatter_add(
    index: np.ndarray, value: np.ndarray, size: int, count: int, others: int
) -> np.ndarray:
    """Values summed by position; the position's axis stands where ``index`` had its
    ``count`` axes, in front of the last ``others``.
    """
    core = value.shape[value.ndim - others :]
    ends = index.ndim - count, value.ndim - count - others
    batch = np.broadcast_shapes(index.shape[: ends[0]], value.shape[: ends[1]])
    own = np.broadcast_shapes(index.shape[ends[0] :], value.shape[ends[1] :][:count])
    index = np.broadcast_to(_in_range(index, size), (*batch, *own))
    value = np.broadcast_to(value, (*batch, *own, *core))
    index = index.reshape(*batch, math.prod(own))
    value = value.reshape(*batch, math.prod(own), *core)
    result = np.zeros((*batch, size, *core), value.dtype)
    rows = np.indices((*batch, 1), sparse=True)[:-1]
    np.add.at(result, (*rows, index), value)
    return result
''',
    ("import math",),
)

SCATTER_ADD_ALL = Helper(
    "_scatter_add_all",
    '''\
def _scatter_add_all(
    index: np.ndarray, value: np.ndarray, size: int, count: int, others: int
) -> np.ndarray:
    """The same, summed over batch axes too."""
    core = value.shape[value.ndim - others :]
    value = value if others else value[..., None]
    shape = np.broadcast_shapes((*index.shape, *(1,) * max(others, 1)), value.shape)
    value = np.broadcast_to(value, shape)
    index = np.broadcast_to(_in_range(index, size), shape[: len(shape) - max(others, 1)])
    result = np.zeros((size, *core), value.dtype)
    np.add.at(result, index.ravel(), value.reshape(index.size, *core))
    return result
''',
)

BATCH_SUM = Helper(
    "_batch_sum",
    '''\
def _batch_sum(value: np.ndarray, core: int) -> np.ndarray:
    """The sum over all but the last ``core`` axes."""
    return value.sum(axis=tuple(range(value.ndim - core)))
''',
)

BATCH_CONTRACTION = Helper(
    "_batch_contraction",
    '''\
def _batch_contraction(
    left: str, right: str, out: str, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """``np.einsum`` over the last axes, summed over the axes in front of them."""
    core_a, core_b = a.shape[a.ndim - len(left) :], b.shape[b.ndim - len(right) :]
    batch = np.broadcast_shapes(
        a.shape[: a.ndim - len(left)], b.shape[: b.ndim - len(right)]
    )
    count = math.prod(batch)
    a = np.broadcast_to(a, (*batch, *core_a)).reshape(count, *core_a)
    b = np.broadcast_to(b, (*batch, *core_b)).reshape(count, *core_b)
    if len(left) == len(right) == 1 and out in (left + right, right + left):
        return a.T @ b if out == left + right else b.T @ a
    return np.einsum(f"Z{left},Z{right}->{out}", a, b, optimize=True)
''',
    ("import math",),
)

HELPERS = (
    CHECK_SHAPES,
    SPREAD,
    LOGSUMEXP,
    SOFTMAX,
    STACKED,
    WINDOW,
    PADDED_WINDOW,
    IN_RANGE,
    TAKE,
    TAKE_NEAREST,
    GATHER,
    SCATTER_ADD,
    SCATTER_ADD_ALL,
    BATCH_SUM,
    BATCH_CONTRACTION,
)
"""In the order in which a module has them."""
