"""The distance of an input from a number that no format has, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.tidy import fold


def distance(x: Expr, number: Fraction) -> tuple[Expr, Expr]:
    """``x`` less the first part of a number, and less all of it."""
    first = whole = x
    for position, part in enumerate(split(number)):
        whole = fold(Apply("sub", (whole, Const(part))))
        first = whole if position == 0 else first
    return first, whole


def split(number: Fraction) -> tuple[Fraction, ...]:
    """A number in parts: the first is exact in float32, the sum of two in float64.

    ``x`` less the first two is then exact, in either format, wherever it matters."""
    single = Fraction(float(np.float32(float(number))))
    double = Fraction(float(number))
    parts = (single, double - single, Fraction(float(number - double)))
    return tuple(part for part in parts if part)
