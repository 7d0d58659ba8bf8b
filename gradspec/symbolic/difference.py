"""Slopes by differences of exact enclosures: no cancellation to speak of.

With a step of 2**-60 and 400 bits the truncation error of the central quotient is about
1e-36 of the third derivative, so it is the derivative to all digits of float64 wherever
the function is smooth.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import enclose

FINE = Fraction(1, 2**60)
COARSE = Fraction(1, 2**17)
"""Several times the step of the frameworks' own difference quotients (1e-6)."""

PRECISION = 400
AGREEMENT = 1e-3
"""One-sided slopes over a coarse step differ by its size times the curvature; a kink or a
jump within the step makes them differ by more."""


def slope(expression: Expr, point: Mapping[str, Fraction], name: str) -> float | None:
    """The derivative by ``name`` at ``point``; None where the expression is undefined or
    has a kink or a jump within a coarse step, or bends too much for difference quotients.
    """
    fine = _one_sided(expression, point, name, FINE)
    coarse = _one_sided(expression, point, name, COARSE)
    if fine is None or coarse is None:
        return None
    middle = 0.5 * (fine[0] + fine[1])
    room = AGREEMENT * (1.0 + abs(middle))
    if any(abs(value - middle) > room for value in (*fine, *coarse)):
        return None
    return middle


def _one_sided(
    expression: Expr, point: Mapping[str, Fraction], name: str, step: Fraction
) -> tuple[float, float] | None:
    """The quotients to the left and to the right."""
    values = []
    for shift in (-step, Fraction(0), step):
        ball = enclose(expression, {**point, name: point[name] + shift}, PRECISION)
        if ball is None or isinstance(ball, bool) or not ball.is_finite():
            return None
        values.append(ball)
    with ctx.workprec(PRECISION):
        width = arb(fmpq(step.numerator, step.denominator))
        below = float(((values[1] - values[0]) / width).mid())
        above = float(((values[2] - values[1]) / width).mid())
    return below, above


def bend(
    expression: Expr,
    point: Mapping[str, Fraction],
    name: str,
    along: Mapping[str, Fraction],
) -> float | None:
    """The derivative by ``name`` of the derivative along a direction, at a point near
    which `slope` has found the function smooth; None where it is undefined.
    """
    total = arb(0)
    for near, far in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = {n: point[n] + far * FINE * step for n, step in along.items()}
        there = {**point, **moved}
        there[name] = there[name] + near * FINE
        ball = enclose(expression, there, PRECISION)
        if ball is None or isinstance(ball, bool) or not ball.is_finite():
            return None
        with ctx.workprec(PRECISION):
            total += near * far * ball
    with ctx.workprec(PRECISION):
        return float((total / arb(fmpq(4, 1) * fmpq(1, FINE.denominator**2))).mid())
