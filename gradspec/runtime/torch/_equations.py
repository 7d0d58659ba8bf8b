"""Solutions of equations: linear systems, and roots by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

ITERATIONS, STEPS = 16, 50
"""How often a fixed point is iterated, then the most steps of Newton's method."""


def solve(a: Tensor, b: Tensor, axes: int = 1) -> Tensor:
    """``x`` with ``a x = b`` for the vectors that the last ``axes`` axes of ``b`` are;
    all other axes broadcast.
    """
    shape, batch = b.shape[b.dim() - axes :], b.shape[: b.dim() - axes]
    size = math.prod(shape)
    a = a.reshape(*a.shape[: a.dim() - 2 * axes], size, size)
    if a.dim() == 2:  # factored once
        found = torch.linalg.solve(a, b.reshape(math.prod(batch), size).mT)
        return found.mT.reshape(b.shape)
    found = solve_columns(a, b.reshape(*batch, size, 1))
    return found.reshape(*found.shape[:-2], *shape)


def solve_columns(a: Tensor, b: Tensor) -> Tensor:
    """``x`` with ``a x = b`` for matrices, whose other axes broadcast."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return torch.linalg.solve(
        a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    )


def root(
    residual: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor], Tensor],
    start: Tensor,
    iterate: bool = False,
) -> Tensor:
    """Where a residual is 0, element by element: Newton's method with its derivative,
    for a fixed point after the iteration. NaN where 50 steps do not lead there.
    """

    def correction(v: Tensor) -> Tensor:
        left, by = residual(v), slope(v)
        return left / torch.where((left == 0.0) & (by == 0.0), 1.0, by)

    return _root(residual, correction, torch.abs, start, iterate)


def root_of_system(
    residual: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor], Tensor],
    start: Tensor,
    axes: int = 1,
    iterate: bool = False,
) -> Tensor:
    """`root` of equations for all elements along the last ``axes`` axes together, with
    the matrix of their derivatives.
    """

    def correction(v: Tensor) -> Tensor:
        left = residual(v)
        shape, batch = left.shape[left.dim() - axes :], left.shape[: left.dim() - axes]
        size = math.prod(shape)
        matrix = slope(v).expand(*batch, *shape, *shape).reshape(*batch, size, size)
        column = left.reshape(*batch, size, 1)
        return torch.linalg.solve_ex(matrix, column)[0].reshape(left.shape)

    def length(v: Tensor) -> Tensor:
        return torch.abs(v).sum(tuple(range(-axes, 0)), keepdim=True)

    return _root(residual, correction, length, start, iterate)


def _root(
    residual: Callable[[Tensor], Tensor],
    correction: Callable[[Tensor], Tensor],
    length: Callable[[Tensor], Tensor],
    start: Tensor,
    iterate: bool,
) -> Tensor:
    """The root. A correction whose ``length`` is below the square root of the precision,
    or grows again near 0, is the last but two.
    """
    with torch.no_grad():
        run = start.detach()
        for _ in range(ITERATIONS if iterate else 0):
            moved = (run - residual(run)).detach()
            run = torch.where(torch.isfinite(moved), moved, run)
        last = torch.full_like(length(run), math.inf)
        done = last < 0.0
        near = torch.finfo(run.dtype).eps ** 0.5
        for _ in range(STEPS):
            gap = correction(run).detach()
            run, gap = run - gap, length(gap)
            size = length(run)
            size = torch.where(gap < last, size, torch.clamp_min(size, 1.0))
            done, last = done | (gap <= near * size), gap
            if _is_known(torch.all(done | torch.isnan(gap))):
                break
        run = torch.where(done, run, math.nan)
    for _ in range(1 + torch.is_grad_enabled()):  # a derivative sees these steps
        run = run - correction(run)
    return run


def _is_known(condition: Tensor) -> bool:
    """True if a condition holds, and is no compiler's or transform's symbol."""
    try:
        return bool(condition)
    except RuntimeError:
        return False
