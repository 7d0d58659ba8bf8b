"""What a function does on the way to a point from one side: a limit, or none.

Three steps, each the square of the one before, tell them apart: a limit is approached
faster and faster, a pole runs away, a logarithm runs away by as much as it has before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Program, Value, defined, program

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
    """``value``: a ball about a limit that is finite, with ``slack`` for what is left of
    the way; of an infinite one the sign (0 where it is not known).
    """

    trend: Trend
    value: Any = None
    slack: float = 0.0

    @property
    def is_finite(self) -> bool:
        return self.trend is Trend.FINITE

    @property
    def is_inside(self) -> bool:
        """Whether there is anything on that side."""
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
        return Limit(Trend.FINITE, arb(fmpq(value.numerator, value.denominator)))
    if value is True or value is False:
        return Limit(Trend.FINITE, arb(int(value)))
    if value is None:
        return UNKNOWN
    if not defined(value):
        return UNDEFINED
    return UNKNOWN if _is_wide(value) else Limit(Trend.FINITE, value)


def same(one: Limit, other: Limit) -> bool:
    """Whether two finite limits may be equal."""
    with ctx.workprec(_PRECISION):
        gap = abs(one.value - other.value)
        return not gap > _room(one, other)


def is_between(value: Limit, ends: tuple[Limit, ...]) -> bool:
    """Whether a finite value may lie in the hull of finite ends."""
    with ctx.workprec(_PRECISION):
        room = _room(value, *ends)
        below = all(value.value < end.value - room for end in ends)
        above = all(value.value > end.value + room for end in ends)
        return not (below or above)


def _room(*limits: Limit) -> Any:
    """What is left open: the slack, and a hair of the size for the last step."""
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
    return Limit(Trend.FINITE, _accelerated(values), float(late) / 64)


def _steady(limit: Limit, values: tuple[Value, ...]) -> Limit:
    """A limit that is approached slowly, if all steps lead the same way."""
    if not limit.slack:
        return limit
    pairs = list(pairwise(values))
    with ctx.workprec(_PRECISION):
        rises = all(one < other for one, other in pairs)
        falls = all(one > other for one, other in pairs)
    return limit if rises or falls else UNDEFINED


def _is_wide(ball: Any) -> bool:
    """Too wide to say what the value is: a comparison in it was not decided."""
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


def _accelerated(values: list[Any]) -> Any:
    """Aitken's: where each way is a part of the last, as of 1 / log(x)."""
    first, second, third = values
    bend = (third - second) - (second - first)
    return third - (third - second) ** 2 / bend
