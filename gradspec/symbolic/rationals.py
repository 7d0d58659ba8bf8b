"""Rational numbers: FLINT's as Python's, their primes, their common measure."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any

from flint import fmpz

from gradspec.symbolic.ring import TooLarge


def primes(number: Fraction) -> list[tuple[int, int]]:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 96:
        raise TooLarge
    above = [(int(p), int(e)) for p, e in fmpz(number.numerator).factor()]
    below = [(int(p), -int(e)) for p, e in fmpz(number.denominator).factor()]
    return above + below


def fraction(value: Any) -> Fraction:
    return (
        Fraction(int(value.p), int(value.q)) if hasattr(value, "p") else Fraction(value)
    )


def common(a: Fraction, b: Fraction) -> Fraction:
    """The largest number of which both are whole multiples."""
    top = gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    return Fraction(top, a.denominator * b.denominator)
