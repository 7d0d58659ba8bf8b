"""Operations on named axes, which are the last axes of an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ._gradspec import Array


def spread(x: Array, axis: int, size: int) -> Array:
    """``x`` with an axis of size 1 repeated."""
    shape = [1] * (-axis - x.ndim) + list(x.shape)
    shape[axis] = size
    return jnp.broadcast_to(x, shape)


def stack_last(*parts: ArrayLike) -> Array:
    """The parts stacked along a new last axis."""
    return jnp.stack(jnp.broadcast_arrays(*parts), -1)


def window(x: Array, axis: int, start: int, size: int) -> Array:
    """``size`` positions of an axis from ``start`` on; one outside is an error."""
    if start < 0 or start + size > x.shape[axis]:
        raise ValueError(
            f"positions {start} to {start + size - 1} of an axis of size {x.shape[axis]}"
        )
    return jax.lax.slice_in_dim(x, start, start + size, axis=axis)


def padded_window(x: Array, axis: int, start: int, size: int) -> Array:
    """``size`` positions of an axis from ``start`` on, 0 outside the axis."""
    around = [(0, 0, 0)] * x.ndim
    around[axis] = (-start, start + size - x.shape[axis], 0)
    return jax.lax.pad(x, jnp.zeros((), x.dtype), around)


def windows(
    x: Array, axis: int, start: int, rows: int, columns: int, backward: bool = False
) -> Array:
    """Two axes in place of one: element [i, j] is the one at start + i + j, or at start
    + i - j; one outside is an error.
    """
    if not rows or not columns:  # the axis may be shorter than a window
        return _elements(x, jnp.zeros((rows, columns), int), axis)
    first = start - (columns - 1) * backward
    x = window(x, axis, first, rows + columns - 1)
    step = -jnp.arange(columns) if backward else jnp.arange(columns)
    positions = start - first + jnp.arange(rows)[:, None] + step
    return _elements(x, positions, axis)


def padded_windows(
    x: Array, axis: int, start: int, rows: int, columns: int, backward: bool = False
) -> Array:
    """`windows`, with 0 outside the axis."""
    first = start - (columns - 1) * backward
    x = padded_window(x, axis, first, max(rows + columns - 1, 0))
    return windows(x, axis, start - first, rows, columns, backward)


def product_of_others(x: Array, axis: int) -> Array:
    """For each element the product of all others: of those before and after it."""
    x = jnp.moveaxis(x, axis, -1)
    one, back = jnp.ones_like(x[..., :1]), jnp.flip(x[..., 1:], -1)
    before = jnp.cumprod(jnp.concatenate([one, x[..., :-1]], -1), -1)
    behind = jnp.cumprod(jnp.concatenate([one, back], -1), -1)
    return jnp.moveaxis(before * jnp.flip(behind, -1), -1, axis)


def _in_range(index: Array, size: int) -> Array:
    """``index`` if all of it is in 0 … ``size`` - 1. A traced one cannot raise an error:
    a negative position is one behind the end there."""
    if index.size and not isinstance(index, jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            low, high = int(index.min()), int(index.max())
        if low < 0 or high >= size:
            raise IndexError(f"positions {low} to {high} of an axis of size {size}")
    return jnp.where(index < 0, size, index).astype(int)


def take(x: Array, index: Array, axis: int) -> Array:
    """Elements of ``x`` at positions of an axis; one outside is an error, NaN if it is
    traced."""
    return _elements(x, _in_range(index, x.shape[axis]), axis, "fill")


def take_nearest(x: Array, index: Array, axis: int) -> Array:
    """`take`, where a position outside, which is not used, is clipped to the nearest."""
    return _elements(x, index.astype(int), axis, "clip")


def _elements(x: Array, index: Array, axis: int, mode: str | None = None) -> Array:
    """`jnp.take`, which gives ``x`` itself if no element of an empty axis is taken."""
    if x.shape[axis] == index.size == 0:
        before, after = x.shape[: x.ndim + axis], x.shape[x.ndim + axis + 1 :]
        return jnp.zeros((*before, *index.shape, *after), x.dtype)
    return jnp.take(x, index, axis=axis, mode=mode)


def gather(x: Array, index: Array, axis: int) -> Array:
    """Elements as `take` gives them; all other axes broadcast."""
    given, wanted = list(x.shape), list(index.shape)
    size, count = given[axis], wanted[axis]
    given[axis] = wanted[axis] = 1
    shape = list(jnp.broadcast_shapes(given, wanted))
    x = jnp.broadcast_to(x, (*shape[:axis], size, *shape[axis:][1:]))
    index = jnp.broadcast_to(index, (*shape[:axis], count, *shape[axis:][1:]))
    index = _in_range(index, size)
    return jnp.take_along_axis(x, index, axis, mode="fill")


def gather_nearest(x: Array, index: Array, axis: int) -> Array:
    """`gather`, where a position outside, which is not used, is clipped to the nearest."""
    return gather(x, jnp.clip(index, 0, x.shape[axis] - 1), axis)


def scatter_add(
    index: Array, value: Array, size: int, count: int, others: int
) -> Array:
    """Sums of ``value`` by position, for each batch index: ``count`` axes of positions
    become one of ``size``, before the last ``others`` axes.
    """
    index = index.reshape((*index.shape, *[1] * others))
    shape = jnp.broadcast_shapes(index.shape, value.shape)
    first, last = len(shape) - count - others, len(shape) - others
    batch, after = shape[:first], shape[last:]
    flat = (math.prod(batch), math.prod(shape[first:last]))
    index = jnp.broadcast_to(index, (*shape[:last], *[1] * others)).reshape(flat)
    value = jnp.broadcast_to(value, shape).reshape((*flat, *after))
    rows = jnp.arange(flat[0])[:, None]
    empty = jnp.zeros((flat[0], size, *after), value.dtype)
    index = jnp.where(index < 0, size, index).astype(int)
    found = empty.at[rows, index].add(value, mode="drop")
    return found.reshape((*batch, size, *after))


def scatter_add_all(
    index: Array, value: Array, size: int, count: int, others: int
) -> Array:
    """Sums of ``value`` by position, over all batch axes and ``count`` further axes,
    before the last ``others`` axes.
    """
    shape = jnp.broadcast_shapes((*index.shape, *[1] * others), value.shape)
    before, after = shape[: len(shape) - others], shape[len(shape) - others :]
    value = jnp.broadcast_to(value, shape).reshape((math.prod(before), *after))
    index = jnp.broadcast_to(index, before).reshape(-1)
    index = jnp.where(index < 0, size, index).astype(int)
    return jnp.zeros((size, *after), value.dtype).at[index].add(value, mode="drop")


def batch_sum(x: Array, rank: int) -> Array:
    """The sum over all but the last ``rank`` axes."""
    return jnp.sum(x, tuple(range(x.ndim - rank)))


def norm(x: Array, axis: int | tuple[int, ...], keepdims: bool = False) -> Array:
    """The root of the sum of squares, scaled by the largest element, so that no square
    overflows or is lost. Its gradient at 0 is 0.
    """
    top = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), axis, keepdims=True, initial=0.0)
    scale = jnp.where((top > 0.0) & (top < jnp.inf), top, 1.0)
    total = jnp.sum(jnp.square(x / scale), axis, keepdims=True)
    is_zero = total == 0.0
    length = scale * jnp.where(is_zero, 0.0, jnp.sqrt(jnp.where(is_zero, 1.0, total)))
    return length if keepdims else length.squeeze(axis)


def cumsum_back(x: Array, axis: int) -> Array:
    """Sums from each position to the end of an axis."""
    return jnp.flip(jnp.cumsum(jnp.flip(x, axis), axis), axis)


def linear_scan(factor: Array, term: Array, axis: int, reverse: bool = False) -> Array:
    """``h[t] = factor[t] * h[t - 1] + term[t]`` along an axis, from 0, by
    `jax.lax.associative_scan`; with ``reverse`` of ``h[t + 1]``, from the other end.
    """
    shape = jnp.broadcast_shapes(factor.shape, term.shape)
    if shape[axis] == 0:
        return jnp.zeros(shape, term.dtype)

    def join(
        early: tuple[Array, Array], late: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        return early[0] * late[0], late[0] * early[1] + late[1]

    parts = jnp.broadcast_to(factor, shape), jnp.broadcast_to(term, shape)
    found: Array = jax.lax.associative_scan(join, parts, reverse, len(shape) + axis)[1]
    return found


def scan(
    steps: Sequence[Callable[..., Array]],
    starts: Sequence[Array],
    slices: Sequence[Array],
    before: Sequence[tuple[int, int]],
    axes: Sequence[int],
    places: Sequence[int],
    reverse: bool = False,
) -> tuple[Array, ...]:
    """States computed place by place, by `jax.lax.scan`: each step takes some ``before``
    (which, and how many places before), what ``slices`` have at the place, and the
    states that it has already. Their axis is the one of ``axes``, and in the results
    that of ``places``.
    """
    given = [jnp.moveaxis(one, axis, 0) for one, axis in zip(slices, axes, strict=True)]
    longest = max((lag for _, lag in before), default=1)
    Carry: TypeAlias = "list[list[Array]]"

    def run(carry: Carry, here: list[Array]) -> tuple[Carry, list[Array]]:
        was, ends = [carry[state][lag - 1] for state, lag in before], list[Array]()
        for step in steps:
            ends.append(step(was, here, ends))
        return [[e, *c[:-1]] for e, c in zip(ends, carry, strict=True)], ends

    carry = [[start] * longest for start in starts]
    shaped = [jnp.zeros(one.shape[1:], one.dtype) for one in given]
    for _ in steps:  # a state may get its batch axes from another one
        ends = jax.eval_shape(run, carry, shaped)[1]
        carry = [
            [jnp.broadcast_to(c, e.shape).astype(e.dtype) for c in some]
            for some, e in zip(carry, ends, strict=True)
        ]
    found = jax.lax.scan(run, carry, given, reverse=reverse)[1]
    return tuple(
        jnp.moveaxis(one, 0, place) for one, place in zip(found, places, strict=True)
    )
