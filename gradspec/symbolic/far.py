"""What a function does as an input goes to plus or minus infinity.

The input becomes ``±c/u`` and ``u`` goes to 0 from above (`sides.approach`). The steps of
``u`` are powers of two, so without ``c`` the input would be a whole number at each of them,
and an even one: ``cos(pi * x)`` would be 1 all the way. A few steps may look like a limit
by chance, ``sin(x)`` at four of them rises once in some twenty: what is a limit is one on
two ways, with two numbers for ``c``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.ir.walk import substitute
from gradspec.symbolic.enclose import Program, program
from gradspec.symbolic.limit import in_time
from gradspec.symbolic.sides import (
    OUTSIDE,
    UNKNOWN,
    Limit,
    Trend,
    approach,
    same,
)

_NEAR = "u_"
"""No name of a rule ends like this."""

_ASIDE = (Fraction(1000, 1009), Fraction(1000, 1019))
"""``c``. Modulo the primes 1009 and 1019, 2 has the orders 504 and 1018, which none of the
steps differ by: a function whose period is a simple number is at another place of it at
each step."""

_SECONDS = 1.0
_NONE = 1e-30
"""What decays as slowly as a cube root is smaller at the last step: its limit is 0."""

_WAY = tuple(Fraction(1, 2**k) for k in (64, 80, 96, 128))
_PRECISION = 640


def far(
    exprs: tuple[Expr, ...],
    point: Mapping[str, Fraction],
    name: str,
    sign: int,
    assumed: tuple[Expr, ...],
) -> tuple[Limit, ...]:
    """The limit of each expression as ``name`` goes to ``sign`` times infinity, the other
    inputs as in ``point``; `OUTSIDE` where the assumptions do not hold on the way.
    """
    start = {**point, _NEAR: Fraction(0)}

    def along(aside: Fraction) -> tuple[Limit, ...]:
        there = {name: Apply("div", (Const(sign * aside), Ref(_NEAR)))}
        compiled = program(*(substitute(expr, there) for expr in exprs))
        conditions = tuple(substitute(condition, there) for condition in assumed)
        return _followed(compiled, start, conditions)

    found = in_time(_SECONDS, lambda: tuple(map(_agreed, *map(along, _ASIDE))))
    return (UNKNOWN,) * len(exprs) if found is None else found


def _agreed(one: Limit, other: Limit) -> Limit:
    """What two ways lead to, if it is the same."""
    if one.trend is not other.trend:
        return UNKNOWN
    match one.trend:
        case Trend.FINITE:
            return one if same(one, other) else UNKNOWN
        case Trend.INFINITE if one.value != other.value:
            return UNKNOWN
        case _:
            return one


def _followed(
    compiled: Program, start: Mapping[str, Fraction], conditions: tuple[Expr, ...]
) -> tuple[Limit, ...]:
    found = approach(compiled, start, _NEAR, 1, conditions)
    if found is None:
        return (OUTSIDE,) * len(compiled.run({**start, _NEAR: _WAY[0]}, _PRECISION))
    rows = [compiled.run({**start, _NEAR: near}, _PRECISION) for near in _WAY]
    return tuple(map(_judged, found, zip(*rows, strict=True)))


def _judged(limit: Limit, way: tuple[Any, ...]) -> Limit:
    """What oscillates runs nowhere; what is next to nothing is 0."""
    match limit.trend:
        case Trend.FINITE if abs(float(limit.value.mid())) < _NONE:
            return Limit(Trend.FINITE, arb(0))
        case Trend.INFINITE if not _runs_away(list(_numbers(way))):
            return UNKNOWN
        case _:
            return limit


def _numbers(way: tuple[Any, ...]) -> Iterator[Any]:
    """The values up to the first that is beyond any exponent."""
    for value in way:
        if value is None or value is True or value is False or not value.is_finite():
            return
        yield value


def _runs_away(values: list[Any]) -> bool:
    pairs = list(pairwise(values))
    rises = all(one < other for one, other in pairs)
    falls = all(one > other for one, other in pairs)
    return rises or falls
