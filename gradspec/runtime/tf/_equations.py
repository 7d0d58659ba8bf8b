"""Solutions of equations: linear systems, and roots by Newton's method. No static shape
or rank is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

ITERATIONS, STEPS = 16, 50
"""How often a fixed point is iterated, then the most steps of Newton's method."""

_EPSILON = {tf.float64: 2.0**-52, tf.float32: 2.0**-23}


def _shape(x: tf.Tensor) -> tf.Tensor:
    return tf.shape(tf.stop_gradient(x))


def _nan(like: tf.Tensor) -> tf.Tensor:
    return tf.constant(float("nan"), like.dtype)


def solve(a: tf.Tensor, b: tf.Tensor, axes: int = 1) -> tf.Tensor:
    """``x`` with ``a x = b`` for the vectors that the last ``axes`` axes of ``b`` are;
    all other axes broadcast.
    """
    shape = _shape(b)[tf.rank(b) - axes :]
    batch, size = _shape(b)[: tf.rank(b) - axes], tf.reduce_prod(shape)
    others = _shape(a)[: tf.rank(a) - 2 * axes]
    a = tf.reshape(a, tf.concat([others, [size, size]], 0))
    found = solve_columns(a, tf.reshape(b, tf.concat([batch, [size, 1]], 0)))
    return tf.reshape(found, tf.concat([_shape(found)[:-2], shape], 0))


def solve_columns(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """``x`` with ``a x = b`` for matrices, whose other axes broadcast."""
    batch = tf.broadcast_dynamic_shape(_shape(a)[:-2], _shape(b)[:-2])
    a = tf.broadcast_to(a, tf.concat([batch, _shape(a)[-2:]], 0))
    b = tf.broadcast_to(b, tf.concat([batch, _shape(b)[-2:]], 0))
    return tf.linalg.solve(a, b)


def root(
    residual: Callable[[tf.Tensor], tf.Tensor],
    slope: Callable[[tf.Tensor], tf.Tensor],
    start: tf.Tensor,
    iterate: bool = False,
) -> tf.Tensor:
    """Where a residual is 0, element by element: Newton's method with its derivative,
    for a fixed point after the iteration. NaN where 50 steps do not lead there.
    """

    def correction(v: tf.Tensor) -> tf.Tensor:
        left, by = residual(v), slope(v)
        return left / tf.where((left == 0.0) & (by == 0.0), tf.ones_like(left), by)

    return _root(residual, correction, tf.abs, start, iterate)


def root_of_system(
    residual: Callable[[tf.Tensor], tf.Tensor],
    slope: Callable[[tf.Tensor], tf.Tensor],
    start: tf.Tensor,
    axes: int = 1,
    iterate: bool = False,
) -> tf.Tensor:
    """`root` of equations for all elements along the last ``axes`` axes together, with
    the matrix of their derivatives.
    """

    def correction(v: tf.Tensor) -> tf.Tensor:
        left, matrix = residual(v), slope(v)
        shape = _shape(left)
        own, batch = shape[tf.size(shape) - axes :], shape[: tf.size(shape) - axes]
        size = tf.reduce_prod(own)
        matrix = tf.broadcast_to(matrix, tf.concat([shape, own], 0))
        matrix = tf.reshape(matrix, tf.concat([batch, [size, size]], 0))
        column = tf.reshape(left, tf.concat([batch, [size, 1]], 0))
        # `tf.linalg.solve` raises where a matrix is not finite
        is_good = tf.reduce_all(tf.math.is_finite(matrix), (-2, -1), keepdims=True)
        matrix = tf.where(is_good, matrix, tf.eye(size, dtype=matrix.dtype))
        found = tf.where(is_good, tf.linalg.solve(matrix, column), _nan(column))
        return tf.reshape(found, shape)

    def length(v: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.abs(v), [*range(-axes, 0)], keepdims=True)

    return _root(residual, correction, length, start, iterate)


def _root(
    residual: Callable[[tf.Tensor], tf.Tensor],
    correction: Callable[[tf.Tensor], tf.Tensor],
    length: Callable[[tf.Tensor], tf.Tensor],
    start: tf.Tensor,
    iterate: bool,
) -> tf.Tensor:
    """The root. A correction whose ``length`` is below the square root of the precision,
    or grows again near 0, is the last but two.
    """
    run = tf.broadcast_to(start, tf.shape(start - residual(start)))
    for _ in range(ITERATIONS if iterate else 0):
        moved = run - residual(run)
        run = tf.where(tf.math.is_finite(moved), moved, run)
    shape = run.shape
    near = _EPSILON[run.dtype] ** 0.5

    def is_left(
        count: tf.Tensor, run: tf.Tensor, gap: tf.Tensor, done: tf.Tensor
    ) -> tf.Tensor:
        return (count < STEPS) & ~tf.reduce_all(done | tf.math.is_nan(gap))

    def step(
        count: tf.Tensor, run: tf.Tensor, last: tf.Tensor, done: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        gap = correction(run)
        run, gap = run - gap, length(gap)
        size = length(run)
        size = tf.where(gap < last, size, tf.maximum(size, 1.0))
        return count + 1, run, gap, done | (gap <= near * size)

    last = tf.fill(tf.shape(length(run)), tf.constant(float("inf"), run.dtype))
    loose = tf.TensorShape(None)
    _, run, _, done = tf.while_loop(
        is_left,
        step,
        (tf.constant(0), run, last, last < 0.0),
        (tf.TensorShape([]), loose, loose, loose),
    )
    run = tf.where(done, run, _nan(run))
    run = tf.stop_gradient(tf.ensure_shape(run, shape))
    for _ in range(2):  # to full precision; a derivative sees these steps
        run = run - correction(run)
    return run
