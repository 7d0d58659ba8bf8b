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
        if position == 0:
            first = whole = _less(x, Const(part))
        else:
            whole = fold(Apply("sub", (whole, Const(part))))
    return first, whole


def _less(x: Expr, part: Const) -> Expr:
    """``x - part``; within the bounds of ``x``, where it has some: XLA makes one constant
    of two that are added in turn, and the second would be lost in the first.
    """
    match x:
        case Apply(op="min" | "max" | "clip" as op, args=(inner, *ends)) if all(
            isinstance(end, Const) for end in ends
        ):
            moved = (fold(Apply("sub", (value, part))) for value in (inner, *ends))
            return Apply(op, tuple(moved))
    return fold(Apply("sub", (x, part)))


def split(number: Fraction) -> tuple[Fraction, ...]:
    """A number in parts: the first is exact in float32, the sum of two in float64.

    ``x`` less the first two is then exact, in either format, wherever it matters."""
    single = Fraction(float(np.float32(float(number))))
    double = Fraction(float(number))
    parts = (single, double - single, Fraction(float(number - double)))
    return tuple(part for part in parts if part)
