"""Operations on named axes, which are the last axes of a tensor.

Sizes are numbers or int64 tensors, positions int64, as TensorFlow mixes no integer
types. No static shape or rank is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

Size: TypeAlias = Any
"""A number, or an int64 tensor of rank 0."""


def _shape(x: tf.Tensor) -> tf.Tensor:
    """The shape of a tensor; in a graph, `tf.shape` fails for one watched by nested
    accumulators.
    """
    return tf.shape(tf.stop_gradient(x), tf.int64)


def spread(x: tf.Tensor, axis: int, size: Size) -> tf.Tensor:
    """``x`` repeated along ``axis``, which has size 1 or does not exist yet."""
    if x.shape.rank is not None and x.shape.rank < -axis:
        x = x[(tf.newaxis,) * (-axis - x.shape.rank)]
    shape = _shape(x)
    return tf.broadcast_to(x, tf.concat([shape[:axis], [size], shape[axis:][1:]], 0))


def softmax(x: tf.Tensor, axis: int) -> tf.Tensor:
    """`tf.nn.softmax`, which must know the rank for any axis but the last."""
    if axis == -1:
        return tf.nn.softmax(x)
    exp = tf.exp(x - tf.reduce_max(x, axis, keepdims=True))
    return exp / tf.reduce_sum(exp, axis, keepdims=True)


def stack_last(*parts: tf.Tensor) -> tf.Tensor:
    """The parts, which broadcast, stacked along a new last axis."""
    shape = tf.shape(parts[0])
    for part in parts[1:]:
        shape = tf.broadcast_dynamic_shape(shape, tf.shape(part))
    return tf.stack([tf.broadcast_to(part, shape) for part in parts], -1)


def permute_last(x: tf.Tensor, order: tuple[int, ...]) -> tf.Tensor:
    """``x`` with its last axes in another order. (`tf.einsum` takes no booleans.)"""
    rank = x.shape.rank
    if rank is None:
        rank = tf.rank(tf.stop_gradient(x))
        before = tf.range(rank - len(order))
        return tf.transpose(x, tf.concat((before, rank + tf.constant(order)), 0))
    before = range(rank - len(order))
    return tf.transpose(x, [*before, *(rank + axis for axis in order)])


def window(x: tf.Tensor, axis: int, start: Size, size: Size) -> tf.Tensor:
    """``size`` positions of an axis from ``start`` on; one outside is an error."""
    shape = _shape(x)
    begin = tf.concat([0 * shape[:axis], [start], 0 * shape[axis:][1:]], 0)
    return tf.slice(x, begin, tf.concat([shape[:axis], [size], shape[axis:][1:]], 0))


def padded_window(x: tf.Tensor, axis: int, start: Size, size: Size) -> tf.Tensor:
    """``size`` positions of an axis from ``start`` on, 0 outside the axis."""
    shape = _shape(x)
    start = tf.cast(start, tf.int64)
    around = [tf.maximum(-start, 0), tf.maximum(start + size - shape[axis], 0)]
    before = tf.zeros([tf.size(shape) + axis, 2], tf.int64)
    paddings = tf.concat([before, [around], tf.zeros([-axis - 1, 2], tf.int64)], 0)
    return window(tf.pad(x, paddings), axis, tf.maximum(start, 0), size)


def windows(
    x: tf.Tensor,
    axis: int,
    start: Size,
    rows: Size,
    columns: Size,
    backward: bool = False,
) -> tf.Tensor:
    """Two axes in place of one: element [i, j] is the one at start + i + j, or at start
    + i - j.
    """
    step = tf.range(columns, dtype=tf.int64)
    positions = start + tf.expand_dims(tf.range(rows, dtype=tf.int64), -1)
    return tf.gather(x, positions - step if backward else positions + step, axis=axis)


def padded_windows(
    x: tf.Tensor,
    axis: int,
    start: Size,
    rows: Size,
    columns: Size,
    backward: bool = False,
) -> tf.Tensor:
    """`windows`, with 0 outside the axis."""
    first = start - columns + 1 if backward else start
    x = padded_window(x, axis, first, rows + columns - 1)
    return windows(x, axis, start - first, rows, columns, backward)


def product_of_others(x: tf.Tensor, axis: int) -> tf.Tensor:
    """For each element the product of all others. (Cumulative products would need less
    work, but TensorFlow's derivative of them divides by the elements, which may be 0.)
    """
    size = tf.shape(x)[axis]
    own = tf.eye(size, dtype=tf.bool)
    own = tf.reshape(own, tf.concat([[size, size], tf.ones([-axis - 1], tf.int32)], 0))
    others = tf.where(own, tf.ones([], x.dtype), tf.expand_dims(x, axis - 1))
    return tf.reduce_prod(others, axis)


def take(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """Elements along ``axis``, which the axes of ``index`` replace."""
    return tf.gather(x, tf.cast(index, tf.int64), axis=axis)


def take_nearest(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """`take`, where a position outside, which is not used, is clipped to the nearest."""
    last = _shape(x)[axis] - 1
    index = tf.clip_by_value(tf.cast(index, tf.int64), 0, last)
    return tf.gather(x, index, axis=axis)


def gather_nearest(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """Elements along ``axis``, a position outside clipped as above; the other axes
    broadcast.
    """
    last = _shape(x)[axis] - 1
    return gather(x, tf.clip_by_value(tf.cast(index, tf.int64), 0, last), axis)


def gather(x: tf.Tensor, index: tf.Tensor, axis: int) -> tf.Tensor:
    """Elements along ``axis``; the other axes broadcast."""
    x, index = _axis_last(x, axis), _axis_last(tf.cast(index, tf.int64), axis)
    rows = tf.broadcast_dynamic_shape(_shape(x)[:-1], _shape(index)[:-1])
    size, count = _shape(x)[-1:], _shape(index)[-1:]
    x = tf.broadcast_to(x, tf.concat([rows, size], 0))
    shape, row = tf.concat([rows, count], 0), tf.reduce_prod(rows, keepdims=True)
    x = tf.reshape(x, tf.concat([row, size], 0))
    index = tf.reshape(tf.broadcast_to(index, shape), tf.concat([row, count], 0))
    taken = tf.reshape(tf.gather(x, index, axis=1, batch_dims=1), shape)
    return _axis_last(taken, axis, back=True)


def _axis_last(x: tf.Tensor, axis: int, back: bool = False) -> tf.Tensor:
    """``x`` with an axis moved to the end, or, with ``back``, from the end to its
    place.
    """
    if axis == -1:
        return x
    axes = tf.range(tf.rank(x))
    if back:
        order = tf.concat([axes[:axis], axes[-1:], axes[axis:-1]], 0)
    else:
        order = tf.concat([axes[:axis], axes[axis + 1 :], axes[axis : axis + 1]], 0)
    return tf.transpose(x, order)


def scatter_add(
    index: tf.Tensor, value: tf.Tensor, size: Size, count: int, others: int
) -> tf.Tensor:
    """Values summed by position; the position axis replaces the ``count`` axes of
    ``index``, before the last ``others`` axes.
    """
    index = tf.cast(index, tf.int64)
    index = tf.reshape(index, tf.concat([_shape(index), [1] * others], 0))
    shape = tf.broadcast_dynamic_shape(_shape(index), _shape(value))
    rank = tf.size(shape)
    batch, after = shape[: rank - count - others], shape[rank - others :]
    index = tf.broadcast_to(index, tf.concat([shape[: rank - others], [1] * others], 0))
    rows = tf.reduce_prod(batch)
    row = tf.reshape(tf.range(rows), tf.concat([batch, [1] * (count + others)], 0))
    places = tf.where((index >= 0) & (index < size), index + row * size, -1)
    places = tf.reshape(places, [-1])
    flat = tf.concat([[tf.size(places, tf.int64)], after], 0)
    value = tf.reshape(tf.broadcast_to(value, shape), flat)
    found = tf.math.unsorted_segment_sum(value, places, rows * size)
    return tf.reshape(found, tf.concat([batch, [size], after], 0))


def scatter_add_all(
    index: tf.Tensor, value: tf.Tensor, size: Size, count: int, others: int
) -> tf.Tensor:
    """`scatter_add`, also summed over batch axes."""
    index = tf.cast(index, tf.int64)
    given = tf.concat([_shape(index), [1] * others], 0)
    shape = tf.broadcast_dynamic_shape(given, _shape(value))
    rank = tf.size(shape)
    index = tf.reshape(tf.broadcast_to(index, shape[: rank - others]), [-1])
    index = tf.where(index < size, index, -1)  # which no sum has
    flat = tf.concat([[tf.size(index, tf.int64)], shape[rank - others :]], 0)
    value = tf.reshape(tf.broadcast_to(value, shape), flat)
    return tf.math.unsorted_segment_sum(value, index, size)


def argsort(x: tf.Tensor, axis: int) -> tf.Tensor:
    """The positions of the elements along ``axis`` in ascending order, equal ones in the
    order in which they stand; NaN, which TensorFlow does not order, as infinity."""
    if x.dtype.is_floating:
        x = tf.where(tf.math.is_nan(x), tf.constant(float("inf"), x.dtype), x)
    return tf.cast(tf.argsort(x, axis, stable=True), tf.int64)


def sum_of_outer(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Outer products along the last axes, summed over all others, which broadcast."""
    m, n = _shape(a)[-1:], _shape(b)[-1:]
    rows = tf.broadcast_dynamic_shape(_shape(a)[:-1], _shape(b)[:-1])
    count = tf.reduce_prod(rows)
    a = tf.reshape(tf.broadcast_to(a, tf.concat([rows, m], 0)), [count, m[0]])
    b = tf.reshape(tf.broadcast_to(b, tf.concat([rows, n], 0)), [count, n[0]])
    return tf.matmul(a, b, transpose_a=True)


def norm(x: tf.Tensor, axis: Any, keepdims: bool = False) -> tf.Tensor:
    """The root of the sum of squares, scaled by the largest element, so that no square
    overflows or is lost. Its gradient at 0 is 0.
    """
    top = tf.reduce_max(tf.abs(tf.stop_gradient(x)), axis, keepdims=True)
    one = tf.ones_like(top)
    scale = tf.where((top > 0.0) & (top < one / 0.0), top, one)
    total = tf.reduce_sum(tf.square(x / scale), axis, keepdims=True)
    is_zero = total == 0.0
    root = tf.sqrt(tf.where(is_zero, one, total))
    length = scale * tf.where(is_zero, tf.zeros_like(root), root)
    return length if keepdims else tf.squeeze(length, axis)


def batch_sum(x: tf.Tensor, core: int) -> tf.Tensor:
    """The sum over all but the last ``core`` axes."""
    if x.shape.rank is None:
        return tf.reduce_sum(x, tf.range(tf.rank(x) - core))
    return tf.reduce_sum(x, [*range(x.shape.rank - core)])


def linear_scan(
    factor: tf.Tensor, term: tf.Tensor, axis: int, reverse: bool = False
) -> tf.Tensor:
    """``h[t] = factor[t] * h[t - 1] + term[t]`` along an axis, from 0, in steps that
    double; with ``reverse`` of ``h[t + 1]``, from the other end.
    """
    shape = tf.broadcast_dynamic_shape(tf.shape(factor), tf.shape(term))
    run = tf.broadcast_to(term, shape)
    size = tf.cast(shape[axis], tf.int64)

    def ends(x: tf.Tensor, step: Size) -> tuple[tf.Tensor, tf.Tensor]:
        return window(x, axis, 0, size - step), window(x, axis, step, size - step)

    def joined(x: tf.Tensor, moved: tf.Tensor, step: Size) -> tf.Tensor:
        if reverse:
            return tf.concat([moved, window(x, axis, size - step, step)], axis)
        return tf.concat([window(x, axis, 0, step), moved], axis)

    def double(
        step: Size, factor: tf.Tensor, run: tf.Tensor
    ) -> tuple[Size, tf.Tensor, tf.Tensor]:
        low, high = ends(factor, step)
        first, last = ends(run, step)
        here, before = (first, last) if reverse else (last, first)
        moved = here + (low if reverse else high) * before
        return 2 * step, joined(factor, low * high, step), joined(run, moved, step)

    known = None if factor.shape.rank is None else factor.shape[axis]
    if known is not None:
        step = 1
        while step < known:
            step, factor, run = double(step, factor, run)
        return run
    loose = tf.TensorShape(None)
    found = tf.while_loop(
        lambda step, *_: step < size,
        double,
        (tf.constant(1, tf.int64), factor, run),
        (tf.TensorShape([]), loose, loose),
    )[2]
    return tf.ensure_shape(found, run.shape)


def _axis_first(x: tf.Tensor, axis: int) -> tf.Tensor:
    """``x`` with an axis in front of all others."""
    place = tf.rank(x) + axis
    others = tf.range(tf.rank(x) - 1)
    return tf.transpose(
        x, tf.concat([[place], others + tf.cast(others >= place, tf.int32)], 0)
    )


def _axis_from_first(x: tf.Tensor, axis: int) -> tf.Tensor:
    """``x`` with its first axis in another place."""
    place, every = tf.rank(x) + axis, tf.range(tf.rank(x))
    order = tf.where(every < place, every + 1, tf.where(every == place, 0, every))
    return tf.transpose(x, order)


def scan(
    steps: Sequence[Callable[..., tf.Tensor]],
    starts: Sequence[tf.Tensor],
    slices: Sequence[tf.Tensor],
    before: Sequence[tuple[int, int]],
    axes: Sequence[int],
    places: Sequence[int],
    reverse: bool = False,
) -> tuple[tf.Tensor, ...]:
    """States computed place by place, by `tf.scan`: each step takes some ``before``
    (which, and how many places before), what ``slices`` have at the place, and the
    states that it has already. Their axis is the one of ``axes``, and in the results
    that of ``places``.
    """
    given = [_axis_first(one, axis) for one, axis in zip(slices, axes, strict=True)]
    count = len(steps)

    def run(carry: Sequence[tf.Tensor], here: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        was = [carry[count * (lag - 1) + state] for state, lag in before]
        now: list[tf.Tensor] = []
        for step in steps:
            now.append(step(was, here, now))
        return [*now, *carry[:-count]]

    def held(carry: Sequence[tf.Tensor], here: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        moved = zip(run(carry, here), carry, strict=True)
        return [tf.ensure_shape(one, old.shape) for one, old in moved]

    carry = [*starts] * max((lag for _, lag in before), default=1)
    empty = [tf.zeros(tf.shape(one)[1:], one.dtype) for one in given]
    for _ in steps:  # a state may get its batch axes from another one
        ends = run(carry, empty)[:count]
        carry = [
            tf.broadcast_to(one, tf.shape(ends[place % count]))
            for place, one in enumerate(carry)
        ]
    if given[0].shape.rank is not None and given[0].shape[0] == 0:
        found = [tf.expand_dims(end, 0)[:0] for end in ends]
    else:
        found = tf.scan(held, given, carry, reverse=reverse)
    return tuple(
        _axis_from_first(one, place)
        for one, place in zip(found[:count], places, strict=True)
    )
