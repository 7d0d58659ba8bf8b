"""NumPy: the private functions of rules over named axes."""

from __future__ import annotations

from gradspec.primitives.row import Helper
from gradspec.targets.numpy_sums_texts import LOGSUMEXP, SOFTMAX, SUMS

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
    shape = [1] * (-axis - value.ndim) + list(value.shape)
    shape[axis] = size
    return np.broadcast_to(value, shape)
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

WINDOWS = Helper(
    "_windows",
    '''\
def _windows(
    value: np.ndarray,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> np.ndarray:
    """Two axes in place of one, without a copy: at [i, j] is what was at start + i + j,
    or at start + i - j.
    """
    first = start - (columns - 1) * backward
    last = first + rows + columns - 2
    if not rows or not columns:
        return np.take(value, np.zeros((rows, columns), int), axis=axis)
    if first < 0 or last >= value.shape[axis]:
        raise IndexError(
            f"positions {first} to {last} of an axis of size {value.shape[axis]}"
        )
    views = np.lib.stride_tricks.sliding_window_view(value, columns, axis=axis)
    views = _window(np.moveaxis(views, -1, axis), axis - 1, first, rows)
    return np.flip(views, axis) if backward else views
''',
)

PADDED_WINDOWS = Helper(
    "_padded_windows",
    '''\
def _padded_windows(
    value: np.ndarray,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> np.ndarray:
    """The same; outside there are zeros."""
    first = start - (columns - 1) * backward
    value = _padded_window(value, axis, first, max(rows + columns - 1, 0))
    return _windows(value, axis, start - first, rows, columns, backward)
''',
)

PRODUCT_OF_OTHERS = Helper(
    "_product_of_others",
    '''\
def _product_of_others(value: np.ndarray, axis: int) -> np.ndarray:
    """For each element the product of all others: of those before and those behind."""
    value = np.moveaxis(value, axis, -1)
    before, behind = np.ones_like(value), np.ones_like(value)
    np.cumprod(value[..., :-1], axis=-1, out=before[..., 1:])
    np.cumprod(value[..., :0:-1], axis=-1, out=behind[..., -2::-1])
    return np.moveaxis(before * behind, -1, axis)
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
    """The sum over all but the last ``core`` axes; of many short rows, eight in one run,
    which takes half the time.
    """
    rows = math.prod(value.shape[:-1]) if core == 1 else 0
    if rows < 64 or value.shape[-1] > 128 or not value.flags.c_contiguous:
        return value.sum(axis=tuple(range(value.ndim - core)))
    flat, rest = value.reshape(rows, -1), rows % 8
    eights = flat[: rows - rest].reshape(rows // 8, -1).sum(axis=0)
    return eights.reshape(8, -1).sum(axis=0) + flat[rows - rest :].sum(axis=0)
''',
    ("import math",),
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
    *SUMS,
    LOGSUMEXP,
    SOFTMAX,
    STACKED,
    WINDOW,
    PADDED_WINDOW,
    WINDOWS,
    PADDED_WINDOWS,
    PRODUCT_OF_OTHERS,
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
