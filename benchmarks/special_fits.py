"""What `special_coefficients.py` fits: functions in ball arithmetic, on intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from flint import arb

from gradspec.primitives import balls

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
