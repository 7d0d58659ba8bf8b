"""Fits `gradspec/primitives/coefficients_loops.py`, and prints it.

    python benchmarks/loop_coefficients.py

With a = abs(x) the slope of x * ndtr(x) is T(a) or 1 - T(a), T being exp(-a**2 / 2) times
(p - a) * (1 / 2 + R(a)), p its zero; R is a quotient of polynomials, found by Lawson's
weights: where an error is large, it counts for more in the next round of least squares.
The slope of silu over the distance from its zero is interpolated at Chebyshev's places.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfcx

GELU_ZERO, SILU_ZERO = 0.75179152469356444577, -1.278464542761073795
FAR, POINTS, ROUNDS, SCALE, DEGREE = 14.4, 2000, 600, 2.0, 4
NEAR, TERMS = 0.35, 7

Array = Any


def main() -> None:
    error, over, under = gelu()
    print(f"GELU_ZERO = {_parts(GELU_ZERO)}\n# {error:.1e} relative")
    print(f"GELU_OVER = {tuple(over[::-1].tolist())}")
    print(f"GELU_UNDER = {tuple(under[::-1].tolist())}")
    error, polynomial = silu()
    print(f"SILU_ZERO = {_parts(SILU_ZERO)}\nSILU_NEAR = {NEAR}")
    print(f"# {error:.1e} relative\nSILU_SERIES = {tuple(polynomial[::-1].tolist())}")


def _parts(zero: float) -> tuple[float, float]:
    first = float(np.float32(zero))
    return first, zero - first


def gelu() -> tuple[float, Array, Array]:
    """The largest relative error of 1 / 2 + R, and R's polynomials, the lowest powers
    first."""
    a = FAR * (1 - np.cos(np.linspace(0, np.pi / 2, POINTS)))
    a = a[np.abs(a - GELU_ZERO) > 1e-3]
    bell = a / math.sqrt(2 * math.pi)  # over exp(-a**2 / 2), as all else
    size = (0.5 * erfcx(a / math.sqrt(2)) - bell) / (GELU_ZERO - a)
    rest, u = size - 0.5, a / SCALE
    powers = np.vander(u, DEGREE + 1, increasing=True)
    below, weight = (1 + u) ** DEGREE, np.ones_like(a)
    best = (math.inf, u, u)
    for _ in range(ROUNDS):
        row = np.sqrt(weight) / (below * size)
        matrix = np.hstack(
            [powers * row[:, None], -powers[:, 1:] * (rest * row)[:, None]]
        )
        norms = np.linalg.norm(matrix, axis=0)
        found = np.linalg.lstsq(matrix / norms, rest * row, rcond=None)[0] / norms
        over, under = found[: DEGREE + 1], np.append(1.0, found[DEGREE + 1 :])
        below = powers @ under
        error = np.abs(powers @ over / below - rest) / size
        best = min(best, (float(error.max()), over, under), key=lambda b: b[0])
        weight = np.maximum(weight * (error + 1e-15), 1e-12)
        weight /= weight.max()
    error, over, under = best
    scales = SCALE ** np.arange(DEGREE + 1)
    return error, over / scales, under / scales


def silu() -> tuple[float, Array]:
    """The largest relative error, and the polynomial, the lowest power first."""
    places = NEAR * np.cos((2 * np.arange(TERMS) + 1) / (2 * TERMS) * np.pi)
    powers = np.vander(places, TERMS, increasing=True)
    found = np.linalg.solve(powers, _silu_over(places))
    d = np.linspace(-NEAR, NEAR, POINTS)
    error = np.vander(d, TERMS, increasing=True) @ found / _silu_over(d) - 1
    return float(np.abs(error).max()), found


def _silu_over(d: Array) -> Array:
    """The slope at a distance from its zero, over the distance: with c the exponential
    at the zero it is d + c * (exp(d) - 1) over 1 + c * exp(d), times the logistic function.
    """
    d, c = np.where(d == 0, 1e-20, d), math.exp(SILU_ZERO)
    e = c * np.exp(d)
    return e * (1 + c * np.expm1(d) / d) / (1 + e) ** 2


if __name__ == "__main__":
    main()
