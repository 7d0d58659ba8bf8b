"""The coefficients of the special functions that targets lack, or do badly.

    python benchmarks/special_coefficients.py            what each fit reaches
    python benchmarks/special_coefficients.py --table    the coefficients, too

Each is a polynomial, or a quotient of two, that meets a function at Chebyshev's points of
an interval, found in ball arithmetic from the exact function. So that little is lost in
Horner's rule, in float32 as in float64, what is fitted has its zeros divided out, and it
is either positive with positive coefficients or a small part of a value: what a constant
and a simple weight, or a first guess, leave of it. Told are the largest error at 300
points, relative to the whole value, and a bound of the rounding errors in units in the
last place.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flint import arb, arb_mat, ctx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks.special_fits import BITS, MODULES, TINY, Ball, Fit  # noqa: E402


@dataclass(frozen=True, slots=True)
class Fitted:
    """Coefficients from the highest power down."""

    over: tuple[float, ...]
    under: tuple[float, ...]
    error: float
    rounding: float


def points(fit: Fit, count: int) -> list[Ball]:
    """Chebyshev's points of the interval."""
    low, high = arb(fit.low), arb(fit.high)
    if fit.low < 0:  # -1 is infinity
        low = arb(-1) + arb(TINY)
    angles = [(2 * k + 1) * arb.pi() / (2 * count) for k in range(count)]
    shares = [(1 - angle.cos()) / 2 for angle in angles]
    found = [low + (high - low) * s / (1 + fit.crowded * (1 - s)) for s in shares]
    return [arb(x.mid()) for x in found]


def solve(fit: Fit) -> Fitted:
    """The quotient that meets the function at as many points as it has coefficients."""
    size = fit.over + fit.under + 1
    rows: list[Ball] = []
    values: list[Ball] = []
    for x in points(fit, size):
        y = fit.function(x)
        rows += [x**i for i in range(fit.over + 1)]
        rows += [-y * x**i for i in range(1, fit.under + 1)]
        values.append(y)
    solved = arb_mat(size, size, rows).solve(arb_mat(size, 1, values))
    found = [float(solved[i, 0].mid()) for i in range(size)]
    over = tuple(reversed(found[: fit.over + 1]))
    under = (*reversed(found[fit.over + 1 :]), 1.0)
    return Fitted(over, under, *quality(fit, over, under))


def quality(
    fit: Fit, over: tuple[float, ...], under: tuple[float, ...]
) -> tuple[float, float]:
    """The largest relative error, and the bound of the rounding errors (Higham, Accuracy
    and Stability of Numerical Algorithms, 2002, section 5.1)."""
    error = rounding = 0.0
    for x in points(fit, 300):
        p, q, share = horner(over, x), horner(under, x), fit.share(x)
        error = max(error, share * abs(float((p / q / fit.function(x) - 1).mid())))
        sums = [grown(over, x) / abs(p), grown(under, x) / abs(q)]
        rounding = max(rounding, share * float((sums[0] + sums[1]).mid()) / 2)
    return error, rounding


def horner(coefficients: tuple[float, ...], x: Ball) -> Ball:
    total = arb(0)
    for c in coefficients:
        total = total * x + arb(c)
    return total


def grown(coefficients: tuple[float, ...], x: Ball) -> Ball:
    """The sum of the terms' magnitudes, each times the roundings that it meets."""
    powers = range(len(coefficients) - 1, -1, -1)
    return sum(
        (
            (2 * k + 1) * abs(arb(c) * x**k)
            for k, c in zip(powers, coefficients, strict=True)
        ),
        arb(0),
    )


# --- the tables --------------------------------------------------------------------------


@cache
def fitted(module: str) -> tuple[tuple[Fit, Fitted], ...]:
    """All fits of a table, in order."""
    ctx.prec = BITS
    return tuple((fit, solve(fit)) for fit in MODULES[module][1]())


def entry(fit: Fit, done: Fitted) -> str:
    """The fit as the runtimes' `_coefficients.py` has it."""
    return f"{fit.name} = {(done.over, done.under) if fit.under else done.over}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the coefficients")
    shown = parser.parse_args().table
    for module in MODULES:
        for fit, done in fitted(module):
            print(f"{fit.name:18} {done.error:8.1e}  {done.rounding:5.1f} ULP")
            if shown:
                print(entry(fit, done))


if __name__ == "__main__":
    main()
