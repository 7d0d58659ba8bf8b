"""A short polynomial for a function in a window, with a bound of its error that is proved.

The Taylor model's polynomial loses its highest powers one by one to those of Chebyshev's
polynomials (economisation: Lanczos, Applied analysis, 1956, chapter 7), each of which
changes it by at most ``|a| / 2**(n - 1)`` in the window. All of that is exact arithmetic;
what it adds to the model's own rest is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.symbolic.chebyshev import economised
from gradspec.symbolic.jets import NoSeries
from gradspec.symbolic.taylor_models import PRECISION, Model, is_zero

CLOSE = Fraction(1, 2**60)
"""How far the polynomial may be from the function, relatively."""

_DIGITS = 80  # bits of a coefficient


@dataclass(frozen=True, slots=True)
class Short:
    """``u**power * (c0 + c1 t + …)`` with ``t`` the square of ``u`` if ``is_even``, else
    ``u``; off by ``bound`` of the function at most, relatively."""

    power: int
    coefficients: tuple[Fraction, ...]
    is_even: bool
    bound: Fraction


def shortened(model: Model, close: Fraction = CLOSE) -> Short:
    """The shortest polynomial of this kind; :class:`NoSeries` if the model itself is not
    close enough, or has a zero beside the point."""
    with ctx.workprec(PRECISION):
        power = model.valuation
        if power > model.order:
            raise NoSeries("zero everywhere")
        factor = model.without_powers(power)
        least = _fraction(factor.least())
        if least <= 0:
            raise NoSeries("another zero in the window")
        return _shortened(factor, power, least, close)


def _shortened(factor: Model, power: int, least: Fraction, close: Fraction) -> Short:
    width = _fraction(factor.width.mid())
    middles, off = _middles(factor)
    is_even = not any(middles[1::2])
    step = width * width if is_even else width
    scaled = [c * step**n for n, c in enumerate(middles[:: 2 if is_even else 1])]
    room = close * least - off
    kept, lost = economised(scaled, room)
    found = tuple(_rounded(c / step**n) for n, c in enumerate(kept))
    lost += sum(
        abs(c - f * step**n) for n, (c, f) in enumerate(zip(kept, found, strict=True))
    )
    bound = (off + lost) / least
    if bound > 2 * close:
        raise NoSeries("the rest is too large")
    return Short(power, found, is_even, bound)


def _middles(factor: Model) -> tuple[list[Fraction], Fraction]:
    """The coefficients' middles, and how much is left out by taking those."""
    width = factor.width
    off = abs(factor.rest) * width ** (factor.order + 1)
    found: list[Fraction] = []
    for n, a in enumerate(factor.coefficients):
        if isinstance(a, fmpq):
            found.append(Fraction(int(a.p), int(a.q)))
        else:
            found.append(Fraction(0) if is_zero(a) else _fraction(a.mid()))
            off += arb(a.rad()) * width**n
    return found, _fraction(off.upper())


def _rounded(value: Fraction) -> Fraction:
    """To so many bits: doubles are made of it later."""
    if value == 0:
        return value
    size = abs(value.numerator).bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (size - _DIGITS)
    return Fraction(round(value / unit)) * unit


def _fraction(value: Any) -> Fraction:
    """An exact ball."""
    mantissa, exponent = value.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
