"""What an expression does right beside a point: kinks, jumps, removable singularities.

A step of 2**-200 of the variable's size at 640 bits stands for the limit: a function
that is smooth on that side differs from its limit by about the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Apply, Expr
from gradspec.symbolic.enclose import Point, defined, enclose, program
from gradspec.symbolic.isolate import borders
from gradspec.symbolic.meaning import elementary

STEP = Fraction(1, 2**200)
PRECISION = 640
FINE = 2048
"""Second derivatives near a removable singularity cancel all but a few of these bits."""


def on_border(expressions: tuple[Expr, ...], point: Point) -> bool:
    """Whether one of the expressions changes its form at the point (a comparison that
    is an equality there, ``abs`` of zero, a tie in ``max``, a step), also inside the
    meaning of a built-in (``i0e`` has the kink of ``exp(-abs(x))``)."""
    return bool(borders_at(expressions, point))


def borders_at(
    expressions: tuple[Expr, ...], point: Point
) -> tuple[tuple[Expr, Expr], ...]:
    """The pairs that are equal at the point, where the form changes."""
    pairs = _pairs(expressions)
    gaps = program(*(Apply("sub", pair) for pair in pairs)) if pairs else None
    values = gaps.run(point, 256) if gaps else ()
    return tuple(
        pair
        for pair, value in zip(pairs, values, strict=True)
        if defined(value) and value.contains(0)
    )


@lru_cache(maxsize=64)
def _pairs(expressions: tuple[Expr, ...]) -> tuple[tuple[Expr, Expr], ...]:
    plain = (*expressions, *(elementary(expr) for expr in expressions))
    return tuple({pair: None for expr in plain for pair in borders(expr)})


def beside(
    point: Mapping[str, Fraction], name: str, assumed: tuple[Expr, ...]
) -> Iterator[Mapping[str, Fraction]]:
    """The point a little to either side in one variable, if the assumptions hold."""
    size = max(abs(point[name]), Fraction(1))
    for side in (-STEP, STEP):
        near = {**point, name: point[name] + side * size}
        if all(enclose(c, near, PRECISION) is True for c in assumed):
            yield near


def limits(
    expr: Expr,
    point: Mapping[str, Fraction],
    name: str,
    assumed: tuple[Expr, ...],
) -> tuple[Any, ...]:
    """The one-sided limits of ``expr`` in one variable, those that are finite."""
    values = (enclose(expr, p, PRECISION) for p in beside(point, name, assumed))
    return tuple(value for value in values if defined(value))


def lies_between(value: Any, ends: tuple[Any, ...]) -> bool:
    """Whether a ball may lie in the hull of others (a hair of slack for the step)."""
    with ctx.workprec(PRECISION):
        hull = ends[0]
        for end in ends[1:]:
            hull = hull.union(end)
        slack = (1 + abs(hull).upper()) * arb(2) ** -90
        return not (value < hull.lower() - slack or value > hull.upper() + slack)


def meet(values: tuple[Any, ...]) -> bool:
    """Whether values close to a point are one limit, up to what the steps leave open."""
    with ctx.workprec(FINE):
        return all(
            bool(abs(a - values[0]) < (1 + abs(values[0])) * arb(2) ** -90)
            for a in values
        )


def central_slope(expr: Expr, point: Mapping[str, Fraction], name: str) -> float | None:
    """The derivative in one variable from three enclosures; None at a kink or where one
    of them is undefined."""
    near = beside(point, name, ())
    values = [enclose(expr, p, PRECISION) for p in (*near, point)]
    if not all(defined(value) for value in values):
        return None
    below, above, here = values
    size = max(abs(point[name]), Fraction(1))
    with ctx.workprec(PRECISION):
        step = arb(fmpq(size.numerator, size.denominator)) * arb(2) ** -200
        left, right = (here - below) / step, (above - here) / step
        bend = abs(right - left)
        if not bend < arb(2) ** -90 * (1 + abs(left) + abs(right)):
            return None
        return float(((left + right) / 2).mid())
