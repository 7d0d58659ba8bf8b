"""The coefficients of the special functions that targets lack, or do badly.

    python benchmarks/special_coefficients.py            what each fit reaches
    python benchmarks/special_coefficients.py --write    the tables of gradspec/primitives

Each is a polynomial, or a quotient of two, that meets a function at Chebyshev's points of
an interval, found in ball arithmetic from the exact function. So that little is lost in
Horner's rule, in float32 as in float64, what is fitted has its zeros divided out, and it
is either positive with positive coefficients or a small part of a value: what a constant
and a simple weight, or a first guess, leave of it. Told are the largest error at 300 points, relative to the
whole value, and a bound of the rounding errors in units in the last place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec.primitives import balls  # noqa: E402

FOLDER = ROOT / "gradspec" / "primitives"
BITS = 900
TINY = 2.0**-70
"""In place of 0, where a formula divides by it."""

Ball: TypeAlias = Any
Function: TypeAlias = Callable[[Ball], Ball]


@dataclass(frozen=True, slots=True)
class Fit:
    """A function on an interval as P / Q of the degrees ``over`` and ``under``. If it is
    ``whole`` less ``constant``, divided by the argument, errors are told of the whole.
    """

    name: str
    meaning: str
    whole: Function
    over: int
    under: int
    low: float
    high: float
    constant: Ball | None = None
    crowded: float = 0.0
    """How much denser the points are at the lower end."""
    part: Function | None = None
    """How much of a value it makes, where not all."""

    def function(self, x: Ball) -> Ball:
        """What is fitted."""
        if self.constant is None:
            return self.whole(x)
        return (self.whole(x) - self.constant) / x

    def share(self, x: Ball) -> float:
        """How much of the whole is what was fitted."""
        if self.part is not None:
            return abs(float(self.part(x).mid()))
        if self.constant is None:
            return 1.0
        whole = self.whole(x)
        return abs(float(((whole - self.constant) / whole).mid()))


@dataclass(frozen=True, slots=True)
class Fitted:
    """Coefficients from the highest power down."""

    over: tuple[float, ...]
    under: tuple[float, ...]
    error: float
    rounding: float


# --- the functions -----------------------------------------------------------------------


def zero(function: Function, low: str, high: str) -> Ball:
    """The one zero of an increasing or decreasing function between two numbers."""
    left, right = arb(low), arb(high)
    rises = function(right) > 0
    for _ in range(BITS // 2):
        middle = arb(((left + right) / 2).mid())
        above = function(middle) > 0
        left, right = (left, middle) if above == rises else (middle, right)
    return arb(((left + right) / 2).mid())


def scaled(order: int, x: Ball) -> Ball:
    return x.bessel_i(arb(order), scaled=True)


def i0e_slope(x: Ball) -> Ball:
    """With the sign changed."""
    return scaled(0, x) - scaled(1, x)


def i1e_slope(x: Ball) -> Ball:
    return (scaled(0, x) + scaled(2, x)) / 2 - scaled(1, x)


def i1_slope(x: Ball) -> Ball:
    """Times exp(-x)."""
    return (scaled(0, x) + scaled(2, x)) / 2


def erfcx_slope(x: Ball) -> Ball:
    """With the sign changed."""
    return -balls.scaled_erfc_slope(x)


def stirling(x: Ball) -> Ball:
    """What is left of gamma by Stirling's formula: DLMF 5.11.3."""
    return x.gamma() * x.exp() * x ** (arb(1) / 2 - x)


def digamma_tail(x: Ball) -> Ball:
    """(log(x) - 1 / (2 x) - digamma(x)) * x**2: DLMF 5.11.2."""
    return (x.log() - 1 / (2 * x) - x.digamma()) * x * x


def even(function: Function) -> Function:
    """``function(x) / x`` in x**2."""
    return lambda u: function(u.sqrt()) / u.sqrt()


def far(function: Function, power: int) -> Function:
    """``function(x) * x**power`` in 1 / x**2."""
    return lambda u: function(1 / u.sqrt()) / u.sqrt() ** power


# --- what is fitted ----------------------------------------------------------------------


def error_fits() -> Iterator[Fit]:
    erfcx, root = balls.scaled_erfc, 1 / arb.pi().sqrt()
    yield Fit(
        "ERFCX",
        "(1 + 2 x) erfcx(x) = 1 + x R(x), x <= 2",
        lambda x: (1 + 2 * x) * erfcx(x),
        *(7, 7, TINY, 2, arb(1)),
    )
    yield Fit(
        "ERFCX_FAR",
        "x erfcx(x) = 1 / sqrt(pi) + u R(u), u = 1 / x**2 <= 1/4",
        far(erfcx, 1),
        *(7, 7, TINY, 0.25, root),
    )
    yield Fit(
        "ERFCX_SLOPE",
        "-(1 + x)**2 erfcx'(x) = 2 / sqrt(pi) + x R(x), x <= 2",
        lambda x: (1 + x) ** 2 * erfcx_slope(x),
        *(7, 8, TINY, 2, 2 * root),
    )
    yield Fit(
        "ERFCX_SLOPE_FAR",
        "-x**2 erfcx'(x) = 1 / sqrt(pi) + u R(u), u = 1 / x**2 <= 1/4",
        far(erfcx_slope, 2),
        *(8, 8, TINY, 0.25, root),
    )
    yield Fit(
        "ERF",
        "erf(x) / x = 2 / sqrt(pi) + u R(u), u = x**2 <= 1/4",
        even(lambda x: x.erf()),
        *(3, 3, TINY, 0.25, 2 * root),
    )
    yield Fit(
        "TANH",
        "tanh(x) / x = 1 + u R(u), u = x**2 <= 1/2",
        even(lambda x: x.tanh()),
        *(3, 3, TINY, 0.5, arb(1)),
    )


def inverse_fits() -> Iterator[Fit]:
    most, least = arb("0.75") ** 2, arb("1.125")
    root = arb.pi().sqrt() / 2

    def ratio(r: Ball) -> Ball:
        u = (most - r).sqrt()
        return u.erfinv() / u

    yield Fit(
        "ERFINV",
        "erfinv(u) / u = sqrt(pi) / 2 + u**2 R(r), r = 0.75**2 - u**2 >= 0",
        lambda r: (ratio(r) - root) / (most - r),
        *(6, 7, 0, 0.5625 - TINY),
        part=lambda r: 1 - root / ratio(r),
    )

    def inverse(t: Ball) -> Ball:
        return (-t * t).exp().erfcinv()

    for name, low, high, over, crowded in (
        ("ERFCINV", least, 4, 9, 1.0),
        ("ERFCINV_FAR", arb(4), 27.5, 8, 2.0),
    ):
        yield Fit(
            name,
            f"t - erfcinv(exp(-t**2)) in t - {float(low)}, t <= {high}",
            lambda s, a=low: s + a - inverse(s + a),
            *(over, 9, 0, high - float(low), None, crowded),
            part=lambda s, a=low: 1 - (s + a) / inverse(s + a),
        )


def single_fits() -> Iterator[Fit]:
    """As good as float32 is, and no better."""
    yield Fit(
        "MILLS",
        "(1 + x) exp(x**2 / 2) ndtr(-x) = 1/2 + x R(x), x <= 15",
        lambda x: (1 + x) * balls.scaled_erfc(x / arb(2).sqrt()) / 2,
        *(4, 5, TINY, 15, arb(1) / 2, 5.0),
    )


def gamma_fits() -> Iterator[Fit]:
    root = zero(lambda x: x.digamma(), "1.4", "1.5")
    half = arb(1) / 2
    first = half.lgamma() * 2
    yield Fit(
        "DIGAMMA",
        "x digamma(x) / (x - zero) = 1 / zero + x R(x), x <= 2",
        lambda x: x * x.digamma() / (x - root),
        *(6, 6, TINY, 2, 1 / root),
    )
    yield Fit(
        "DIGAMMA_FAR",
        "x**2 (log(x) - 1 / (2 x) - digamma(x)) in 1 / x**2 <= 1/4",
        lambda u: digamma_tail(1 / u.sqrt()),
        *(6, 6, TINY, 0.25),
    )
    yield Fit(
        "GAMMA",
        "gamma(x) e**x x**(1/2 - x) = sqrt(2 pi) + u R(u), u = 1 / x <= 1",
        lambda u: stirling(1 / u),
        *(8, 8, TINY, 1, (2 * arb.pi()).sqrt()),
    )
    yield Fit(
        "LGAMMA",
        "(x + 1) lgamma(x) / ((x - 1) (x - 2)) = its value at 1/2 + u R(u),"
        " u = x - 1/2 <= 2",
        lambda u: (u + 3 * half) * (u + half).lgamma() / ((u - half) * (u - 3 * half)),
        *(8, 8, TINY, 2, first),
    )


def bessel_fits() -> Iterator[Fit]:
    def over_x(x: Ball) -> Ball:
        return scaled(1, x) / x

    for name, function, in_x, meaning in (
        ("I0", lambda x: scaled(0, x), lambda x: scaled(0, x), "I0(x)"),
        ("I1", over_x, lambda x: scaled(1, x), "I1(x) / x"),
        ("I1_SLOPE", i1_slope, i1_slope, "I1'(x)"),
    ):
        yield Fit(
            name,
            f"{meaning} in x**2, x <= 6",
            lambda u, f=function: f(u.sqrt()) * u.sqrt().exp(),
            *(14, 0, TINY, 36),
        )
        yield between(name, in_x, 0, 6, 0, 28)


def slope_fits() -> Iterator[Fit]:
    root = zero(i1e_slope, "1.5", "1.6")

    def anchored(x: Ball) -> Ball:
        return i1e_slope(x) / (root - x) * (2 * x).exp()

    yield Fit(
        "I0E_SLOPE",
        "e**x (I0(x) - I1(x)), x <= 3",
        lambda x: i0e_slope(x) * (2 * x).exp(),
        *(21, 0, 0, 3),
    )
    yield between("I0E_SLOPE", i0e_slope, 1, 3, 8, 23)
    yield between("I0E_SLOPE", i0e_slope, 1, 8, 0, 28)
    yield Fit(
        "I1E_SLOPE",
        "e**(2 x) (e**-x I1(x))' / (zero - x), x <= 3",
        anchored,
        21,
        0,
        0,
        3,
    )
    yield between("I1E_SLOPE", lambda x: -i1e_slope(x), 1, 3, 8, 23)
    yield between("I1E_SLOPE", lambda x: -i1e_slope(x), 1, 8, 0, 28)


def between(
    name: str, function: Function, power: int, low: int, high: int, degree: int
) -> Fit:
    """``function(x) * x**(power + 1/2)`` from ``low`` to ``high`` (0: to infinity), in
    what 1 / x is of that interval, from -1 to 1."""
    first = arb(1) / high if high else arb(0)
    last = arb(1) / low

    def whole(w: Ball) -> Ball:
        x = 2 / (first + last + w * (last - first))
        return function(x) * x**power * x.sqrt()

    kind = "MIDDLE" if high else "FAR"
    said = f"times x**{power}.5, x >= {low}" + (f" and x <= {high}" if high else "")
    return Fit(f"{name}_{kind}", said, whole, degree, 0, -1 + (0 if high else TINY), 1)


MODULES = {
    "coefficients_error": ("error functions", error_fits),
    "coefficients_inverse": ("inverse error functions", inverse_fits),
    "coefficients_single": ("error functions in float32", single_fits),
    "coefficients_gamma": ("gamma functions", gamma_fits),
    "coefficients_bessel": ("modified Bessel functions", bessel_fits),
    "coefficients_slopes": ("scaled Bessel functions' derivatives", slope_fits),
}


# --- how ---------------------------------------------------------------------------------


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


def text(module: str) -> str:
    """The text of a table."""
    head = f'"""Coefficients of the {MODULES[module][0]}, the highest power first.\n\n'
    head += 'Written by benchmarks/special_coefficients.py.\n"""\n\n'
    entries = (entry(*pair) for pair in fitted(module))
    return head + "from __future__ import annotations\n" + "".join(entries)


def entry(fit: Fit, done: Fitted) -> str:
    comment = f"\n# {fit.meaning}: {done.error:.0e} relative.\n"
    if not fit.under:
        return f"{comment}{fit.name} = {listed(done.over)}\n"
    name, other = f"{fit.name}_OVER", f"{fit.name}_UNDER"
    return f"{comment}{name} = {listed(done.over)}\n{other} = {listed(done.under)}\n"


def listed(coefficients: tuple[float, ...]) -> str:
    return "(\n" + "".join(f"    {c!r},\n" for c in coefficients) + ")"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    for module in MODULES:
        for fit, done in fitted(module):
            print(f"{fit.name:18} {done.error:8.1e}  {done.rounding:5.1f} ULP")
        if write:
            (FOLDER / f"{module}.py").write_text(text(module), encoding="utf-8")


if __name__ == "__main__":
    main()
