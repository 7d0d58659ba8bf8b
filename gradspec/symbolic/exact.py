"""Values at one point, exact wherever they are rational.

At a breakpoint everything depends on which side of a comparison holds. ``x > 0.7`` at
``x = 0.7`` cannot be decided by balls, for 0.7 has no exact ball; here numbers stay
fractions as long as they are rational, and become balls where they are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from flint import arb

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import nodes
from gradspec.symbolic.enclose import UNDEFINED, Program, truth

_PRECISION = 256
_LONGEST = 2048
"""Bits of a numerator beyond which an exact ball stays a ball."""


def exactly(expr: Expr, point: Mapping[str, Fraction]) -> Any:
    """A `Fraction`, a ball that is no known fraction (perhaps undefined), or a truth
    value; None for a condition that is not decided.
    """
    known: dict[Expr, Any] = {}
    for node in nodes(expr):
        known[node] = _value(node, known, point)
    return known[expr]


def as_fraction(ball: Any) -> Any:
    """The fraction that an exact ball is, else the ball."""
    if not isinstance(ball, arb) or not ball.is_finite() or not ball.is_exact():
        return ball
    man, exp = ball.man_exp()
    if int(man).bit_length() + abs(int(exp)) > _LONGEST:
        return ball
    return Fraction(int(man)) * Fraction(2) ** int(exp)


def _value(node: Expr, known: Mapping[Expr, Any], point: Mapping[str, Fraction]) -> Any:
    match node:
        case Const(value=value):
            return value
        case Ref(name=name, indices=()):
            return Fraction(point[name])
        case Select(condition=condition, then=then, other=other):
            return _chosen(known[condition], known[then], known[other])
        case Apply(op=op, args=args):
            return _applied(op, [known[arg] for arg in args])
        case _:
            raise NotImplementedError(f"no value of {type(node).__name__}")


def _chosen(condition: Any, then: Any, other: Any) -> Any:
    if isinstance(condition, Fraction):
        condition = condition != 0
    known = truth(condition)
    if known is True:
        return then
    if known is False:
        return other
    same = isinstance(then, Fraction) and isinstance(other, Fraction) and then == other
    return then if same else UNDEFINED


def _applied(op: str, values: list[Any]) -> Any:
    if all(isinstance(value, Fraction) for value in values):
        node = Apply(op, tuple(Const(value) for value in values))
        folded = fold(node)
        if isinstance(folded, Const):
            return folded.value
        decided = decide(node)
        if decided is not None:
            return decided
        if op in _PIECES:
            return Fraction(_PIECES[op](*values))
    if any(value is None for value in values):
        return None
    names = [f"v{number}" for number in range(len(values))]
    (value,) = _template(op, len(values)).run(
        dict(zip(names, values, strict=True)), _PRECISION
    )
    return as_fraction(value)


_PIECES: dict[str, Callable[..., Fraction | int]] = {
    "clip": lambda x, low, high: min(max(x, low), high),
    "relu": lambda x: max(x, 0),
    "sign": lambda x: (x > 0) - (x < 0),
    "heaviside": lambda x, middle: 1 if x > 0 else 0 if x < 0 else middle,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
}
"""What balls would make inexact, of numbers that have no exact ball."""


@cache
def _template(op: str, arity: int) -> Program:
    return Program((Apply(op, tuple(Ref(f"v{n}") for n in range(arity))),))
