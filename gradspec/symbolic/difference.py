"""Slopes by central differences of exact enclosures: no cancellation to speak of.

With a step of 2**-60 and 400 bits the truncation error is about 1e-36 of the third
derivative, so the quotient is the derivative to all digits of float64 wherever the
function is smooth; one-sided quotients that disagree show a kink.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import enclose

STEP = Fraction(1, 2**60)
PRECISION = 400
AGREEMENT = 1e-9
"""One-sided slopes of a smooth function differ by about the step; at a kink by more."""


def central_difference(
    expression: Expr, point: Mapping[str, Fraction], name: str
) -> float | None:
    """The derivative by ``name`` at ``point``, None at a kink or where undefined."""
    values = []
    for shift in (-STEP, Fraction(0), STEP):
        ball = enclose(expression, {**point, name: point[name] + shift}, PRECISION)
        if ball is None or isinstance(ball, bool) or not ball.is_finite():
            return None
        values.append(ball)
    with ctx.workprec(PRECISION):
        step = arb(fmpq(STEP.numerator, STEP.denominator))
        below = float(((values[1] - values[0]) / step).mid())
        above = float(((values[2] - values[1]) / step).mid())
        middle = float(((values[2] - values[0]) / (2 * step)).mid())
    if abs(below - above) > AGREEMENT * (1.0 + abs(middle)):
        return None
    return middle
