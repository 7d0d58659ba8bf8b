"""The behaviour of expressions next to a point: kinks, jumps, limits.

A step of 2**-200 of the variable's size at 640 bits stands for the limit: a function
that is smooth on that side differs from its limit by about the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from flint import arb, ctx

from gradspec.ir.expr import ONE, ZERO, Apply, Expr
from gradspec.ir.tidy import fold
from gradspec.ir.walk import memo, transform
from gradspec.primitives.lookup import elementary
from gradspec.symbolic.borders.bounds import borders
from gradspec.symbolic.enclose import (
    Point,
    Program,
    Value,
    enclose,
    is_defined,
    program,
    to_ball,
)

STEP = Fraction(1, 2**200)
PRECISION = 640
FINE = 2048
"""Second derivatives near a removable singularity cancel all but a few of these
bits."""


def on_border(expressions: tuple[Expr, ...], point: Point) -> bool:
    """True if one of the expressions changes its form at the point (a comparison that
    is an equality there, ``abs`` of zero, a tie in ``max``, a step), also inside the
    meaning of a built-in (``i0e`` has the kink of ``exp(-abs(x))``)."""
    return bool(borders_at(expressions, point))


def borders_at(
    expressions: tuple[Expr, ...], point: Point
) -> tuple[tuple[Expr, Expr], ...]:
    """The pairs that are equal at the point, where the branch changes."""
    pairs = _pairs(expressions)
    gaps = program(*(Apply("sub", pair) for pair in pairs)) if pairs else None
    values = gaps.run(point, 256) if gaps else ()
    return tuple(
        pair
        for pair, value in zip(pairs, values, strict=True)
        if is_defined(value) and value.contains(0)
    )


@memo(64)
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
    return tuple(value for value in values if is_defined(value))


def lies_between(value: Any, ends: tuple[Any, ...]) -> bool:
    """True if a ball may lie in the hull of others (a hair of slack for the step)."""
    with ctx.workprec(PRECISION):
        hull = ends[0]
        for end in ends[1:]:
            hull = hull.union(end)
        slack = (1 + abs(hull).upper()) * arb(2) ** -90
        return not (value < hull.lower() - slack or value > hull.upper() + slack)


def meet(values: tuple[Any, ...]) -> bool:
    """True if values close to a point are one limit, as far as the steps show."""
    with ctx.workprec(FINE):
        return all(
            bool(abs(a - values[0]) < (1 + abs(values[0])) * arb(2) ** -90)
            for a in values
        )


# --- several kinks in one point ------------------------------------------------------
# A sum of rectifiers that all turn at the same input (``relu(a * x) + relu(b * x)`` at
# ``x = 0``) has slopes on either side of that input, but what frameworks and people take
# there is a slope of each rectifier, chosen without regard to the others. Those are the
# values of the derivative with every comparison that is an equality decided by itself.


_MOST = 7
"""Kinks in one point: each doubles the number of choices."""

_TRUE, _FALSE = Apply("lt", (ZERO, ONE)), Apply("lt", (ONE, ZERO))
_HOLDS = {
    "lt": (True, False),
    "le": (True, False),
    "gt": (False, True),
    "ge": (False, True),
    "eq": (False, False),
    "ne": (True, True),
}
"""The truth of a comparison for a smaller and for a larger left side."""

Pair = tuple[Expr, Expr]


def choices(expr: Expr, point: Mapping[str, Fraction]) -> tuple[Any, ...] | None:
    """The finite values of ``expr`` at a point, its kinks there decided one by one;
    none where no two kinks meet, None where too many do to try them all.
    """
    own = frozenset(borders(expr))  # not those of its built-ins' meanings again
    pairs = _distinct(tuple(p for p in borders_at((expr,), point) if p in own))
    if len(pairs) < 2:
        return ()
    if len(pairs) > _MOST:
        return None
    sides = product((False, True), repeat=len(pairs))
    decided = (_decide(expr, dict(zip(pairs, side, strict=True))) for side in sides)
    values = (enclose(one, point, PRECISION) for one in dict.fromkeys(decided))
    return tuple(value for value in values if is_defined(value))


def _distinct(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Conditions without duplicates: ``a < b`` and ``b < a`` are decided together."""
    kept: dict[Pair, None] = {}
    for a, b in pairs:
        if (b, a) not in kept:
            kept[a, b] = None
    return tuple(kept)


def _decide(expr: Expr, is_larger: Mapping[Pair, bool]) -> Expr:
    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(a, b)) if op in _HOLDS:
                if (a, b) in is_larger:
                    return _TRUE if _HOLDS[op][is_larger[a, b]] else _FALSE
                if (b, a) in is_larger:
                    return _TRUE if _HOLDS[op][not is_larger[b, a]] else _FALSE
            case Apply(op="sign", args=(a,)) if (a, ZERO) in is_larger:
                return ONE if is_larger[a, ZERO] else Apply("neg", (ONE,))
        return fold(node)

    return transform(expr, visit)


# --- limits from one side ------------------------------------------------------------
# Three steps, each the square of the one before, tell them apart: a limit is approached
# faster and faster, a pole runs away, a logarithm runs away by as much as it has before.


_STEPS = tuple(Fraction(1, 2**k) for k in (64, 128, 256))
_BETWEEN = tuple(Fraction(1, 2**k) for k in (96, 192))
"""Steps more for what is approached slowly: to be on the way, not to oscillate."""

_PRECISION = 1280
_LEAST = 1e-300
_TINY = -48
"""Binary digits to which the last two values agree at a limit that is plainly one."""


class Trend(Enum):
    FINITE = "finite"
    INFINITE = "infinite"
    UNDEFINED = "undefined"
    UNKNOWN = "unknown"
    """Balls do not decide it."""

    OUTSIDE = "outside"
    """The assumptions do not hold there."""


@dataclass(frozen=True, slots=True)
class Limit:
    """``value``: a ball about a limit that is finite, with ``slack`` for what is left
    of the way; of an infinite one the sign (0 where it is not known).
    """

    trend: Trend
    value: Any = None
    slack: float = 0.0

    @property
    def is_finite(self) -> bool:
        return self.trend is Trend.FINITE

    @property
    def is_inside(self) -> bool:
        """True if there is anything on that side."""
        return self.trend in (Trend.FINITE, Trend.INFINITE)


OUTSIDE, UNDEFINED = Limit(Trend.OUTSIDE), Limit(Trend.UNDEFINED)
UNKNOWN = Limit(Trend.UNKNOWN)


def approach(
    compiled: Program,
    point: Mapping[str, Fraction],
    name: str,
    side: int,
    assumed: tuple[Expr, ...],
) -> tuple[Limit, ...] | None:
    """The limit of each root as ``name`` goes to its value in ``point`` from below
    (``side`` -1) or above; None where that side is not assumed.
    """
    rows = []
    for near in _way(point, name, side, _STEPS):
        if not all(program(c).run(near, _PRECISION)[0] is True for c in assumed):
            return None
        rows.append(compiled.run(near, _PRECISION))
    with ctx.workprec(_PRECISION):
        found = tuple(_limit(*values) for values in zip(*rows, strict=True))
    if not any(limit.slack for limit in found):
        return found
    more = (
        compiled.run(near, _PRECISION) for near in _way(point, name, side, _BETWEEN)
    )
    way = zip(rows[0], *more, rows[2], strict=True)
    pairs = zip(found, way, strict=True)
    return tuple(_steady(limit, values) for limit, values in pairs)


def at(value: Any) -> Limit:
    """An exact value, or a ball, at the point itself."""
    if isinstance(value, Fraction):
        return Limit(Trend.FINITE, to_ball(value))
    if value is True or value is False:
        return Limit(Trend.FINITE, arb(int(value)))
    if value is None:
        return UNKNOWN
    if not is_defined(value):
        return UNDEFINED
    return UNKNOWN if _is_wide(value) else Limit(Trend.FINITE, value)


def same(one: Limit, other: Limit) -> bool:
    """True if two finite limits may be equal."""
    with ctx.workprec(_PRECISION):
        gap = abs(one.value - other.value)
        return not gap > _room(one, other)


def is_between(value: Limit, ends: tuple[Limit, ...]) -> bool:
    """True if a finite value may lie in the hull of finite ends."""
    with ctx.workprec(_PRECISION):
        room = _room(value, *ends)
        below = all(value.value < end.value - room for end in ends)
        above = all(value.value > end.value + room for end in ends)
        return not (below or above)


def _room(*limits: Limit) -> Any:
    """The uncertainty: the slack, and a small multiple of the size for the last
    step."""
    size = sum((abs(limit.value).upper() for limit in limits), arb(1))
    slack = sum((arb(limit.slack) for limit in limits), arb(0))
    return size * arb(2) ** _TINY + slack


def _way(
    point: Mapping[str, Fraction], name: str, side: int, steps: tuple[Fraction, ...]
) -> Iterator[dict[str, Fraction]]:
    size = max(abs(point[name]), Fraction(1))
    for step in steps:
        yield {**point, name: point[name] + side * step * size}


def _limit(first: Value, second: Value, third: Value) -> Limit:
    if any(value is None for value in (first, second, third)):
        return UNKNOWN
    values = [_number(value) for value in (first, second, third)]
    if any(value is None for value in values):
        return UNDEFINED
    if not values[2].is_finite():
        return _beyond(values)
    if any(_is_wide(value) for value in values):
        return UNKNOWN
    early, late = abs(values[1] - values[0]), abs(values[2] - values[1])
    size = abs(values[2])
    if not late > arb(2) ** _TINY * (1 + size):
        return Limit(Trend.FINITE, values[2])
    if not late < early * 0.9:
        return Limit(Trend.INFINITE, _sign(values[2]))
    if late < early * 0.1:
        return Limit(Trend.FINITE, values[2], max(float(late * late / early), _LEAST))
    return Limit(Trend.FINITE, _accelerate(values), float(late) / 64)


def _steady(limit: Limit, values: tuple[Value, ...]) -> Limit:
    """A limit that is approached slowly, if all steps go in the same direction."""
    if not limit.slack:
        return limit
    pairs = list(pairwise(values))
    with ctx.workprec(_PRECISION):
        rises = all(one < other for one, other in pairs)
        falls = all(one > other for one, other in pairs)
    return limit if rises or falls else UNDEFINED


def _is_wide(ball: Any) -> bool:
    """True if too wide to determine the value: a comparison in it was not decided."""
    return bool(ball.rad() > arb(2) ** _TINY * (1 + abs(ball).upper()))


def _number(value: Value) -> Any:
    if value is True or value is False:
        return arb(int(value))
    return None if value.is_nan() and not value.is_finite() else value


def _beyond(values: list[Any]) -> Limit:
    """Too large for an exponent: on the way to infinity, if the sign is kept."""
    return Limit(Trend.INFINITE, _sign(values[0]) if values[0].is_finite() else 0)


def _sign(value: Any) -> int:
    return 1 if value > 0 else -1 if value < 0 else 0


def _accelerate(values: list[Any]) -> Any:
    """Aitken's method: each step is a fraction of the last, as for 1 / log(x)."""
    first, second, third = values
    bend = (third - second) - (second - first)
    return third - (third - second) ** 2 / bend
