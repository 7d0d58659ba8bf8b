"""Polynomials shortened by those of Chebyshev, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache


def economised(
    scaled: Sequence[Fraction], room: Fraction
) -> tuple[list[Fraction], Fraction]:
    """Coefficients for ``|s| <= 1`` without the highest powers, and what that changes."""
    kept, lost = list(scaled), Fraction(0)
    while len(kept) > 1:
        degree = len(kept) - 1
        change = abs(kept[-1]) / 2 ** (degree - 1)
        if lost + change > room:
            break
        lost += change
        top = kept[-1] / 2 ** (degree - 1)
        pairs = zip(kept, chebyshev(degree), strict=True)
        kept = [_shortly(a - top * t) for a, t in pairs][:-1]
    return kept, lost + len(scaled) ** 2 * _UNSEEN


_UNSEEN = Fraction(1, 2**250)


def _shortly(value: Fraction) -> Fraction:
    """To 2**-250, so that fractions do not grow."""
    return Fraction(round(value / _UNSEEN)) * _UNSEEN


@cache
def chebyshev(degree: int) -> tuple[int, ...]:
    """The coefficients of Chebyshev's polynomial, the constant first."""
    if degree < 2:
        return (1,) if degree == 0 else (0, 1)
    one, two = chebyshev(degree - 1), (*chebyshev(degree - 2), 0, 0)
    return tuple(2 * a - b for a, b in zip((0, *one), two, strict=True))
