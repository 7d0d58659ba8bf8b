"""Fits `gradspec/primitives/coefficients_gelu.py`, and prints it.

    python benchmarks/gelu_coefficients.py

With a = -x > 0 the slope of x * ndtr(x) is ndtr(-a) * (p - a) * V(a), p its zero; V is
a + 1 / p + a * R(a), and R a quotient of polynomials, found by Lawson's weights: where an
error is large, it counts for more in the next round of least squares.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfcx

ZERO = 0.75179152469356444577
FAR, POINTS, ROUNDS, SCALE = 14.0, 2000, 600, 2.0
OVER, UNDER = 3, 4

Array = Any


def main() -> None:
    first = float(np.float32(ZERO))
    error, over, under = fitted()
    print(f"ZERO = ({first!r}, {ZERO - first!r})")
    print(f"# {error:.1e} relative\nSLOPE_OVER = {tuple(over[::-1].tolist())}")
    print(f"SLOPE_UNDER = {tuple(under[::-1].tolist())}")


def factor(a: Array) -> Array:
    """V, but next to the zero, where it cannot be computed so."""
    tail = 0.5 * erfcx(a / math.sqrt(2))  # over exp(-a**2 / 2)
    return (1 - a / (math.sqrt(2 * math.pi) * tail)) / (ZERO - a)


def fitted() -> tuple[float, Array, Array]:
    """The largest relative error of V, and R's polynomials, the lowest powers first."""
    a = FAR * (1 - np.cos(np.linspace(0, np.pi / 2, POINTS)))
    a = a[(np.abs(a - ZERO) > 1e-3) & (a > 1e-3)]
    u, value = a / SCALE, factor(a)
    rest, size = (value - a - 1 / ZERO) / a, value / a
    p, q = (np.vander(u, n + 1, increasing=True) for n in (OVER, UNDER))
    below, weight = (1 + u) ** UNDER, np.ones_like(a)
    best = (math.inf, u, u)
    for _ in range(ROUNDS):
        row = np.sqrt(weight) / (below * size)
        matrix = np.hstack([p * row[:, None], -q[:, 1:] * (rest * row)[:, None]])
        norms = np.linalg.norm(matrix, axis=0)
        found = np.linalg.lstsq(matrix / norms, rest * row, rcond=None)[0] / norms
        over, under = found[: OVER + 1], np.append(1.0, found[OVER + 1 :])
        below = q @ under
        error = np.abs(p @ over / below - rest) / size
        best = min(best, (float(error.max()), over, under), key=lambda b: b[0])
        weight = np.maximum(weight * (error + 1e-15), 1e-12)
        weight /= weight.max()
    error, over, under = best
    powers = SCALE ** np.arange(UNDER + 1)
    return error, over / powers[: OVER + 1], under / powers


if __name__ == "__main__":
    main()
