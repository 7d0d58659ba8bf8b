"""The correctly rounded value of an expression: what a perfect target would return.

Precision is raised until both ends of the ball round to the same value of the format.
Fixed precision, or "raise it until two runs agree", accuse right code (NUMERICS).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import ctx

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Point, Program, program

CAP = 4096
"""Bits at which we stop. A ball that is defined but still holds the middle between two
neighbours is then a true tie (to about 1200 digits) and goes to the even one; one that
is still undefined or wide (a jump at a point that is not exact) is nan."""

_ENDS = 128
"""Bits that the ends of a ball are told with. (They are rounded outwards: with the 53 of
flint's context they would never round to one float64.)"""

_TIE = 2000  # bits of relative accuracy that a ball must have to be called a tie


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: bits of the significand, exponents of the least
    subnormal's unit and of the overflow threshold (values are below 2**top)."""

    bits: int
    least: int
    top: int


FORMATS = {
    "float16": Format(11, -24, 16),
    "bfloat16": Format(8, -133, 128),
    "float32": Format(24, -149, 128),
    "float64": Format(53, -1074, 1024),
}


def nearest(expr: Expr, points: Sequence[Point], dtype: str = "float32") -> list[float]:
    """The value of ``expr`` at each point, rounded once to ``dtype``.

    Correct rounding, subnormal results and overflow to inf included; a limit at ±inf is
    a value like another; nan where the expression is undefined (see :data:`CAP`).
    """
    compiled, form = program(expr), FORMATS[dtype]
    return [nearest_of(compiled, point, form) for point in points]


def nearest_of(compiled: Program, point: Point, form: Format) -> float:
    """:func:`nearest` for one point of a compiled expression."""
    precision = 64 if form.bits <= 24 else 96
    while True:
        ball = compiled.run(point, precision)[0]
        value = _rounded(ball, form)
        if value is not None:
            return value
        if precision >= CAP:
            return _tie(ball, form)
        precision *= 2


def _rounded(ball: Any, form: Format) -> float | None:
    """The one value to which all of the ball rounds; None when there are several."""
    if ball is None or ball is True or ball is False:
        return None if ball is None else float(ball)
    if not ball.is_finite():
        return _infinite(ball)
    if ball.is_exact():
        return round_exact(ball, form)
    if form.bits <= 24 and ball.rel_accuracy_bits() > 52:
        value = _narrowed(float(ball), form)
        if value is not None:
            return value
    before, ctx.prec = ctx.prec, _ENDS  # a million times in a compile: no `with`
    low, high = ball.lower(), ball.upper()
    ctx.prec = before
    low, high = round_exact(low, form), round_exact(high, form)
    # A ball about zero has ends -0.0 and 0.0: equal, and the truth is then 0.0.
    return low + 0.0 if low == high else None


def _infinite(ball: Any) -> float | None:
    """Exact infinities are limits; everything else that is not finite is undecided."""
    if ball.is_nan() or not ball.is_exact():
        return None
    return math.inf if ball > 0 else -math.inf


def _tie(ball: Any, form: Format) -> float:
    if ball is None or not ball.is_finite() or ball.rel_accuracy_bits() < _TIE:
        return math.nan
    return round_exact(ball.mid(), form)


def round_exact(value: Any, form: Format) -> float:
    """An exact ball rounded to a format, half to even (the result as a double)."""
    near = _narrowed(float(value), form)
    return _by_integers(value, form) if near is None else near


def _narrowed(double: float, form: Format) -> float | None:
    """What was rounded to a double, half to even, rounded to ``form``: the same as
    rounded once, except about the middle between two of its numbers (None), where the
    double doesn't say on which side the number was."""
    if form.bits == 53 or double == 0 or math.isinf(double):
        return double
    unit = max(math.frexp(double)[1] - form.bits, form.least)
    units = math.ldexp(double, -unit)
    kept = round(units)
    if abs(units - kept) > 0.5 - 2.0**-20:  # a double has 28 bits more, or is as exact
        return None
    if kept.bit_length() + unit > form.top:
        return math.copysign(math.inf, double)
    return math.copysign(math.ldexp(kept, unit), double)


def _by_integers(value: Any, form: Format) -> float:
    man, exp = value.man_exp()
    mantissa, exponent = int(man), int(exp)
    magnitude = abs(mantissa)
    sign = -1 if mantissa < 0 else 1  # the mantissa itself may be beyond a double
    if magnitude == 0:
        return 0.0
    top = magnitude.bit_length() + exponent
    if top > form.top:
        return math.copysign(math.inf, sign)
    unit = max(top - form.bits, form.least)
    shift = unit - exponent
    if shift > magnitude.bit_length() + 1:
        return math.copysign(0.0, sign)
    kept = _shift_even(magnitude, shift)
    if kept.bit_length() + unit > form.top:
        return math.copysign(math.inf, sign)
    return math.copysign(math.ldexp(kept, unit), sign)


def _shift_even(magnitude: int, shift: int) -> int:
    """``magnitude / 2**shift`` to the nearest integer, half to even."""
    if shift <= 0:
        return magnitude << -shift
    kept, rest = magnitude >> shift, magnitude & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return kept + (rest > half or (rest == half and kept & 1 == 1))
