"""Operations on named axes, which are the last axes of an array."""

# mypy: disable-error-code="no-any-return"
# NumPy's type stubs give Any for operations on arrays of any type.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._gradspec import Array


def spread(value: Array, axis: int, size: int) -> Array:
    """``value`` repeated along ``axis``, which has size 1, without a copy."""
    shape = [1] * (-axis - value.ndim) + list(value.shape)
    shape[axis] = size
    return np.broadcast_to(value, shape)


def stack_last(*parts: ArrayLike) -> Array:
    """The parts stacked along a new last axis."""
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def window(value: Array, axis: int, start: int, size: int) -> Array:
    """``size`` positions of an axis from ``start`` on."""
    if start < 0 or start + size > value.shape[axis]:
        raise IndexError(
            f"positions {start} to {start + size - 1} of an axis of size "
            f"{value.shape[axis]}"
        )
    return np.moveaxis(np.moveaxis(value, axis, 0)[start : start + size], 0, axis)


def padded_window(value: Array, axis: int, start: int, size: int) -> Array:
    """``size`` positions of an axis from ``start`` on, 0 outside the axis."""
    value = np.moveaxis(value, axis, 0)
    result = np.zeros((size, *value.shape[1:]), value.dtype)
    first, last = max(start, 0), min(start + size, value.shape[0])
    if first < last:
        result[first - start : last - start] = value[first:last]
    return np.moveaxis(result, 0, axis)


def windows(
    value: Array,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> Array:
    """Two axes in place of one, without a copy: element [i, j] is the one at start + i
    + j, or at start + i - j.
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
    views = window(np.moveaxis(views, -1, axis), axis - 1, first, rows)
    return np.flip(views, axis) if backward else views


def padded_windows(
    value: Array,
    axis: int,
    start: int,
    rows: int,
    columns: int,
    backward: bool = False,
) -> Array:
    """`windows`, with 0 outside the axis."""
    first = start - (columns - 1) * backward
    value = padded_window(value, axis, first, max(rows + columns - 1, 0))
    return windows(value, axis, start - first, rows, columns, backward)


def product_of_others(value: Array, axis: int) -> Array:
    """For each element the product of all others: of those before and after it."""
    value = np.moveaxis(value, axis, -1)
    before, behind = np.ones_like(value), np.ones_like(value)
    np.cumprod(value[..., :-1], axis=-1, out=before[..., 1:])
    np.cumprod(value[..., :0:-1], axis=-1, out=behind[..., -2::-1])
    return np.moveaxis(before * behind, -1, axis)


def _in_range(index: Array, size: int) -> Array:
    """``index`` if all of it is in 0 … ``size`` - 1: negative positions are errors."""
    index = index.astype(np.intp, copy=False)
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError(
            f"positions {index.min()} to {index.max()} of an axis of size {size}"
        )
    return index


def take(value: Array, index: Array, axis: int) -> Array:
    """Elements along ``axis``, which the axes of ``index`` replace."""
    return np.take(value, _in_range(index, value.shape[axis]), axis=axis)


def take_nearest(value: Array, index: Array, axis: int) -> Array:
    """`take`, where a position outside, which is not used, is clipped to the nearest."""
    return np.take(value, index.astype(np.intp, copy=False), axis=axis, mode="clip")


def gather(value: Array, index: Array, axis: int) -> Array:
    """Elements along ``axis``; the other axes broadcast."""
    index = _in_range(index, value.shape[axis])
    ndim = max(value.ndim, index.ndim)
    value = value.reshape((1,) * (ndim - value.ndim) + value.shape)
    index = index.reshape((1,) * (ndim - index.ndim) + index.shape)
    return np.take_along_axis(value, index, axis=axis)


def gather_nearest(value: Array, index: Array, axis: int) -> Array:
    """`gather`, where a position outside, which is not used, is clipped to the nearest."""
    return gather(value, np.clip(index, 0, value.shape[axis] - 1), axis)


def _or_last(index: Array, size: int) -> Array:
    """``index`` with ``size``, one row more, for positions outside of 0 … ``size`` - 1."""
    index = index.astype(np.intp, copy=False)
    return np.where((index >= 0) & (index < size), index, size)


def scatter_add(
    index: Array, value: Array, size: int, count: int, others: int
) -> Array:
    """Values summed by position, none for one outside; the position axis replaces the
    ``count`` axes of ``index``, before the last ``others`` axes.
    """
    core = value.shape[value.ndim - others :]
    ends = index.ndim - count, value.ndim - count - others
    batch = np.broadcast_shapes(index.shape[: ends[0]], value.shape[: ends[1]])
    own = np.broadcast_shapes(index.shape[ends[0] :], value.shape[ends[1] :][:count])
    index = np.broadcast_to(_or_last(index, size), (*batch, *own))
    value = np.broadcast_to(value, (*batch, *own, *core))
    index = index.reshape(*batch, math.prod(own))
    value = value.reshape(*batch, math.prod(own), *core)
    result = np.zeros((*batch, size + 1, *core), value.dtype)
    rows = np.indices((*batch, 1), sparse=True)[:-1]
    np.add.at(result, (*rows, index), value)
    return window(result, -1 - others, 0, size)


def scatter_add_all(
    index: Array, value: Array, size: int, count: int, others: int
) -> Array:
    """`scatter_add`, also summed over batch axes."""
    core = value.shape[value.ndim - others :]
    value = value if others else value[..., None]
    shape = np.broadcast_shapes((*index.shape, *(1,) * max(others, 1)), value.shape)
    value = np.broadcast_to(value, shape)
    index = np.broadcast_to(_or_last(index, size), shape[: len(shape) - max(others, 1)])
    result = np.zeros((size + 1, *core), value.dtype)
    np.add.at(result, index.ravel(), value.reshape(index.size, *core))
    return result[:size]


def batch_sum(value: Array, core: int) -> Array:
    """The sum over all but the last ``core`` axes."""
    total: Array = value.sum(axis=tuple(range(value.ndim - core)))
    return total


def batch_contraction(left: str, right: str, out: str, a: Array, b: Array) -> Array:
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


@np.errstate(divide="ignore", over="ignore")
def logsumexp(
    value: Array, axis: int | tuple[int, ...], keepdims: bool = False
) -> Array:
    """log(sum(exp(value))), shifted by the largest value, so that no sum overflows."""
    top = value.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0.0, top).astype(value.dtype)
    total = np.exp(value - top).sum(axis=axis, keepdims=True)
    result: Array = np.log(total) + top
    return result if keepdims else result.squeeze(axis=axis)


def norm(value: Array, axis: int | tuple[int, ...], keepdims: bool = False) -> Array:
    """The root of the sum of squares, scaled by the largest element, so that no square
    overflows or is lost."""
    top = np.abs(value).max(axis=axis, keepdims=True, initial=0.0)
    scale = np.where((top > 0.0) & (top < math.inf), top, 1.0).astype(value.dtype)
    result: Array = scale * np.sqrt(
        np.square(value / scale).sum(axis=axis, keepdims=True)
    )
    return result if keepdims else result.squeeze(axis=axis)


def softmax(value: Array, axis: int) -> Array:
    """Exponentials divided by their sum, shifted so that none overflows."""
    shifted: Array = value - value.max(axis=axis, keepdims=True, initial=-np.inf)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=axis, keepdims=True)
    return shifted


def linear_scan(factor: Array, term: Array, axis: int, reverse: bool = False) -> Array:
    """``h[t] = factor[t] * h[t - 1] + term[t]`` along an axis, from 0, in steps that
    double; with ``reverse`` of ``h[t + 1]``, from the other end.
    """
    shape = np.broadcast_shapes(factor.shape, term.shape)
    run = np.array(np.broadcast_to(term, shape), np.result_type(factor, term))
    factor, step = factor.copy(), 1
    rest: tuple[Any, ...] = (slice(None),) * (-axis - 1)
    while step < shape[axis]:
        late, early = (..., slice(step, None), *rest), (..., slice(None, -step), *rest)
        here, before = (early, late) if reverse else (late, early)
        run[here] += factor[here] * run[before]
        factor[here] = factor[here] * factor[before]
        step *= 2
    return run


def scan(
    steps: Sequence[Callable[..., Array]],
    starts: Sequence[Array],
    slices: Sequence[Array],
    before: Sequence[tuple[int, int]],
    axes: Sequence[int],
    places: Sequence[int],
    reverse: bool = False,
) -> tuple[Array, ...]:
    """States computed place by place: each step takes some ``before`` (which, and how
    many places before), what ``slices`` have at the place, and the states that it has
    already. Their axis is the one of ``axes``, and in the results that of ``places``.
    """
    given = [np.moveaxis(one, axis, 0) for one, axis in zip(slices, axes, strict=True)]
    size = given[0].shape[0]
    found: list[list[Array]] = [[] for _ in steps]
    for t in reversed(range(size)) if reverse else range(size):
        was = [
            found[state][-lag] if lag <= len(found[state]) else starts[state]
            for state, lag in before
        ]
        now: list[Array] = []
        for step, run in zip(steps, found, strict=True):
            now.append(step(was, [one[t] for one in given], now))
            run.append(now[-1])
    if size == 0:
        was = [starts[state] for state, _ in before]
        at = [np.zeros(one.shape[1:], one.dtype) for one in given]
        ends: list[Array] = []
        for step in steps:
            ends.append(step(was, at, ends))
        return tuple(
            np.moveaxis(np.zeros((0, *end.shape), end.dtype), 0, place)
            for end, place in zip(ends, places, strict=True)
        )
    order = -1 if reverse else 1
    return tuple(
        np.moveaxis(np.stack(np.broadcast_arrays(*run[::order])), 0, place)
        for run, place in zip(found, places, strict=True)
    )
