"""Does a ball agree with a number to the digits that were written of it?"""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.symbolic.enclose import defined

_SINGLE = Fraction(1, 2**22)
"""Relative error that a float32 computation of a few steps may leave in a number."""


class Agreement(Enum):
    YES = "yes"
    SINGLE = "to the precision of float32 only"
    NO = "no"
    UNKNOWN = "not to be decided"


def agreement(ball: Any, expected: Fraction | float, unit: Fraction) -> Agreement:
    """Rounded to the last digit written, or cut off there."""
    if isinstance(expected, float):
        return _special(ball, expected)
    if not defined(ball):
        return Agreement.NO if _is_infinite(ball) else Agreement.UNKNOWN
    with ctx.workprec(256):
        exact = arb(fmpq(expected.numerator, expected.denominator))
        off = abs(_number(ball) - exact)
        last = arb(fmpq(unit.numerator, unit.denominator))
        if not off > last / 2:
            return Agreement.YES
        if (
            not off >= last
            and abs(_number(ball)) > abs(exact)
            and _is_long(exact, last)
        ):
            return Agreement.YES
        rough = abs(exact) * arb(fmpq(_SINGLE.numerator, _SINGLE.denominator))
        return Agreement.NO if off > rough else Agreement.SINGLE


def _special(ball: Any, expected: float) -> Agreement:
    if math.isinf(expected) and _is_infinite(ball):
        same = (ball > 0) == (expected > 0)
        return Agreement.YES if same else Agreement.NO
    if defined(ball):
        return Agreement.NO
    return Agreement.UNKNOWN


def _is_infinite(ball: Any) -> bool:
    if ball is None or ball is True or ball is False:
        return False
    return bool(ball.is_exact() and not ball.is_finite() and not ball.is_nan())


def _is_long(exact: Any, last: Any) -> bool:
    """Four digits or more: who writes 3.1415 has cut off, who writes 3 has rounded."""
    return bool(abs(exact) >= 1000 * last)


def _number(ball: Any) -> Any:
    return arb(int(ball)) if ball is True or ball is False else ball
