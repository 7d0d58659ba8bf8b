"""The value of an expression to more digits than a format has, as two doubles.

An error is measured against the exact value and not against its rounding, so a double
nearest to it (``high``) and what is then left (``low``) are kept: together at least
eleven bits beyond the format's last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from flint import arb

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Point, Program, program
from gradspec.symbolic.truth import CAP, FORMATS, Format

_EXTRA = 14
ROOM = 40
"""Bits with which the first attempt is made, beyond those of the format."""

_SIDES = 100
"""Bits more where a value may be a power of two."""

UNKNOWN = (math.nan, 0.0)


def pairs(
    expr: Expr, points: Iterable[Point], dtype: str, room: int = ROOM
) -> list[tuple[float, float]]:
    """``(high, low)`` of ``expr`` at each point: nan where it is undefined or cannot be
    told, inf where it is infinite or beyond the range of doubles, 0 where all that can be
    told is that it rounds to 0.
    """
    compiled, form = program(expr), FORMATS[dtype]
    return [pair(compiled, point, form, room) for point in points]


def pair(
    compiled: Program, point: Point, form: Format, room: int = ROOM
) -> tuple[float, float]:
    """:func:`pairs` for one point of a compiled expression."""
    precision = form.bits + room
    while True:
        ball = compiled.run(point, precision)[0]
        found = _split(ball, form)
        if found is not None:
            return found
        if precision >= CAP or _is_hopeless(compiled, ball, point):
            return (0.0, 0.0) if _is_nothing(ball, form) else UNKNOWN
        precision *= 2


def _is_nothing(ball: Any, form: Format) -> bool:
    """Whether all of a ball rounds to 0 in the format: ``log(1 + exp(x)) - x`` at 1e10."""
    if not isinstance(ball, arb) or not ball.is_finite():
        return False
    return bool(abs(ball) < arb(2) ** (form.least - 1))


def _split(ball: Any, form: Format) -> tuple[float, float] | None:
    """A ball that is narrow enough as two doubles; None if it is not."""
    if ball is None or ball is True or ball is False:
        return None if ball is None else (float(ball), 0.0)
    if not ball.is_finite():
        exact = not ball.is_nan() and ball.is_exact()
        return (math.copysign(math.inf, 1 if ball > 0 else -1), 0.0) if exact else None
    if not ball.is_exact() and ball.rel_accuracy_bits() < form.bits + _EXTRA:
        return None
    middle = ball.mid()
    high = float(middle)
    if math.isinf(high) or high == 0.0:
        return high, 0.0
    if not ball.is_exact() and _is_open(high, ball, form):
        return None
    return high, float(middle - arb(high))


def _is_open(high: float, ball: Any, form: Format) -> bool:
    """Whether it is not known on which side of a power of two the value lies, where a
    unit in the last place is another; what is as near to one as `_SIDES` is equal to it.
    """
    mantissa = abs(math.frexp(high)[0])
    distance = min(mantissa - 0.5, 1.0 - mantissa)
    if distance > 2.0 ** (1 - form.bits - _EXTRA):
        return False
    return bool(ball.rel_accuracy_bits() < form.bits + _EXTRA + _SIDES)


def _is_hopeless(compiled: Program, ball: Any, point: Point) -> bool:
    """Undefined, and not for want of precision: no more of it will help."""
    return ball is not None and not ball.is_finite() and compiled.is_singular(point)
