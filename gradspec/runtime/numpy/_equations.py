"""Solutions of equations: linear systems, and roots by Newton's method."""

# mypy: disable-error-code="no-any-return"
# NumPy's type stubs give Any for operations on arrays of any type.

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

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
        found = np.linalg.solve(a, b.reshape(math.prod(batch), size).T)
        return found.T.reshape(b.shape)
    found = solve_columns(a, b.reshape((*batch, size, 1)))
    return found.reshape((*found.shape[:-2], *shape))


def solve_columns(a: Array, b: Array) -> Array:
    """``x`` with ``a x = b`` for matrices, whose other axes broadcast."""
    more = a.ndim - b.ndim  # or older versions take it for vectors
    return np.linalg.solve(a, b.reshape((1,) * more + b.shape))


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
        return left / np.where((left == 0.0) & (by == 0.0), 1.0, by)

    return _root(residual, correction, np.abs, start, iterate)


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

    def correction(v: Array) -> Array:
        left, matrix = residual(v), slope(v)
        shape, batch = left.shape[left.ndim - axes :], left.shape[: left.ndim - axes]
        size = math.prod(shape)
        matrix = np.broadcast_to(matrix, (*batch, *shape, *shape))
        matrix = matrix.reshape(*batch, size, size)
        try:
            found = np.linalg.solve(matrix, left.reshape(*batch, size, 1))
        except np.linalg.LinAlgError:
            found = np.full_like(left, np.nan)
        return found.reshape(left.shape)

    def length(v: Array) -> Array:
        return np.abs(v).sum(tuple(range(-axes, 0)), keepdims=True)

    return _root(residual, correction, length, start, iterate)


def _root(
    residual: Callable[[Array], Array],
    correction: Callable[[Array], Array],
    length: Callable[[Array], Array],
    start: Array,
    iterate: bool,
) -> Array:
    """The root. A correction whose ``length`` is below the square root of the precision,
    or grows again near 0, is the last but two.
    """
    run = start
    with np.errstate(all="ignore"):
        for _ in range(ITERATIONS if iterate else 0):
            moved = run - residual(run)
            run = np.where(np.isfinite(moved), moved, run)
        last = np.full_like(length(run), np.inf)
        done = last < 0.0
        near = np.finfo(run.dtype).eps ** 0.5
        for _ in range(STEPS):
            gap = correction(run)
            run, gap = run - gap, length(gap)
            size = length(run)
            size = np.where(gap < last, size, np.maximum(size, 1.0))
            done, last = done | (gap <= near * size), gap
            if np.all(done | np.isnan(gap)):
                break
        for _ in range(2):
            run = run - correction(run)
        return np.where(done, run, np.nan)
