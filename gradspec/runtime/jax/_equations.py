"""Solutions of equations: linear systems, and roots by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ._gradspec import Array

ITERATIONS, STEPS = 16, 50
"""How often a fixed point is iterated, then the most steps of Newton's method."""


def solve(a: Array, b: Array, axes: int = 1) -> Array:
    """``x`` with ``a x = b`` for the vectors that the last ``axes`` axes of ``b`` are;
    all other axes broadcast.
    """
    shape, batch = b.shape[b.ndim - axes :], b.shape[: b.ndim - axes]
    size = math.prod(shape)
    a = a.reshape((*a.shape[: a.ndim - 2 * axes], size, size))
    if a.ndim == 2:  # factored once
        found = jnp.linalg.solve(a, b.reshape(math.prod(batch), size).T)
        return found.T.reshape(b.shape)
    found = solve_columns(a, b.reshape((*batch, size, 1)))
    return found.reshape((*found.shape[:-2], *shape))


def solve_columns(a: Array, b: Array) -> Array:
    """``x`` with ``a x = b`` for matrices, whose other axes broadcast."""
    more = a.ndim - b.ndim  # or older versions take it for vectors
    return jnp.linalg.solve(a, b.reshape((1,) * more + b.shape))


def triangular(a: Array, b: Array, lower: bool = False) -> Array:
    """`solve` for a triangular matrix, of which the other half is not read."""
    return triangular_columns(a, jnp.expand_dims(b, -1), lower)[..., 0]


def triangular_columns(a: Array, b: Array, lower: bool = False) -> Array:
    """`solve_columns` for a triangular matrix, of which the other half is not read."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    found: Array = jax.scipy.linalg.solve_triangular(a, b, lower=lower)
    return found


def root(
    residual: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    start: Array,
    iterate: bool = False,
) -> Array:
    """Where a residual is 0, element by element: Newton's method with its derivative,
    for a fixed point after the iteration. NaN where 50 steps do not lead there.
    """

    def correction(v: Array) -> Array:
        left, by = residual(v), slope(v)
        return left / jnp.where((left == 0.0) & (by == 0.0), 1.0, by)

    def tangent(linear: Callable[[Array], Array], y: Array) -> Array:
        return y / linear(jnp.ones_like(y))

    return _root(residual, correction, tangent, jnp.abs, start, iterate)


def root_of_system(
    residual: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    start: Array,
    axes: int = 1,
    iterate: bool = False,
) -> Array:
    """`root` of equations for all elements along the last ``axes`` axes together, with
    the matrix of their derivatives.
    """

    def quotient(matrix: Array, y: Array) -> Array:
        shape, batch = y.shape[y.ndim - axes :], y.shape[: y.ndim - axes]
        size = math.prod(shape)
        matrix = jnp.broadcast_to(matrix, (*batch, *shape, *shape))
        matrix = matrix.reshape((*batch, size, size))
        return jnp.linalg.solve(matrix, y.reshape((*batch, size, 1))).reshape(y.shape)

    def correction(v: Array) -> Array:
        return quotient(slope(v), residual(v))

    def tangent(linear: Callable[[Array], Array], y: Array) -> Array:
        shape = y.shape[y.ndim - axes :]
        size = math.prod(shape)
        basis = jnp.eye(size, dtype=y.dtype).reshape((size, *shape))
        columns = jax.vmap(lambda one: linear(jnp.broadcast_to(one, y.shape)))(basis)
        columns = jnp.moveaxis(columns, 0, -1)
        return quotient(columns.reshape((*y.shape, *shape)), y)

    def length(v: Array) -> Array:
        return jnp.abs(v).sum(tuple(range(-axes, 0)), keepdims=True)

    return _root(residual, correction, tangent, length, start, iterate)


def _root(
    residual: Callable[[Array], Array],
    correction: Callable[[Array], Array],
    tangent: Callable[[Any, Array], Array],
    length: Callable[[Array], Array],
    start: Array,
    iterate: bool,
) -> Array:
    """The root. A correction whose ``length`` is below the square root of the precision,
    or grows again near 0, is the last but two.
    """
    shaped = jax.eval_shape(lambda v: v - residual(v), start)
    near = jnp.finfo(shaped.dtype).eps ** 0.5

    def is_left(carry: tuple[Array, ...]) -> Array:
        count, _, gap, done = carry
        return (count < STEPS) & ~jnp.all(done | jnp.isnan(gap))

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        count, run, last, done = carry
        gap = correction(run)
        run, gap = run - gap, length(gap)
        size = length(run)
        size = jnp.where(gap < last, size, jnp.maximum(size, 1.0))
        return count + 1, run, gap, done | (gap <= near * size)

    def search(f: Callable[[Array], Array], start: Array) -> Array:
        def moved(_: Array, run: Array) -> Array:
            found = run - f(run)
            return jnp.where(jnp.isfinite(found), found, run)

        run = jax.lax.fori_loop(0, ITERATIONS, moved, start) if iterate else start
        last = jnp.full_like(length(run), jnp.inf)
        carry = (0, run, last, last < 0.0)
        _, run, _, done = jax.lax.while_loop(is_left, step, carry)
        for _ in range(2):
            run = run - correction(run)
        return jnp.where(done, run, jnp.nan)

    start = jnp.broadcast_to(start, shaped.shape).astype(shaped.dtype)
    found: Array = jax.lax.custom_root(residual, start, search, tangent)
    return found
