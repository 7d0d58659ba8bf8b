"""Exact numbers as Python source, rounded once."""

from __future__ import annotations

from fractions import Fraction

_PRODUCT, _UNARY, _ATOM = 10, 11, 14
_EXACT = 2**53


def numeral(value: Fraction) -> tuple[str, int]:
    """The shortest text that evaluates to the nearest double, and its precedence.

    A third is ``1.0 / 3.0``: both parts are exact, so the quotient is rounded once.
    """
    if value < 0:
        text, precedence = numeral(-value)
        return f"-{text}", min(precedence, _UNARY)
    shortest = _decimal(value)
    if Fraction(shortest) == value or not _is_plain_ratio(value):
        return shortest, _ATOM
    return f"{_decimal(Fraction(value.numerator))} / {value.denominator}.0", _PRODUCT


def _is_plain_ratio(value: Fraction) -> bool:
    return max(value.numerator, value.denominator) <= 10**6


def _decimal(value: Fraction) -> str:
    """``repr`` of the nearest double with a short exponent: ``1e-5``, ``1e16``."""
    try:
        text = repr(float(value))
    except OverflowError:
        return "1e999"  # reads as infinity, as the number rounds
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text
