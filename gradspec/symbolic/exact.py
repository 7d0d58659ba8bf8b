"""Values at one point, exact wherever they are rational.

At a breakpoint everything depends on which side of a comparison holds. ``x > 0.7`` at
``x = 0.7`` cannot be decided by balls, for 0.7 has no exact ball; here numbers stay
fractions as long as they are rational, and become balls where they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Any

from flint import arb

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.ir.tidy import decide, fold
from gradspec.primitives.balls import truth
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.enclose import UNDEFINED, Program

_PRECISION = 256
_LONGEST = 2048
"""Bits of a numerator beyond which an exact ball stays a ball."""


def exactly(expr: Expr, point: Mapping[str, Fraction]) -> Any:
    """A `Fraction`, a ball that is no known fraction (perhaps undefined), or a truth
    value; None for a condition that is not decided.
    """
    return evaluate(expr, _Exact(point), {})


def as_fraction(ball: Any) -> Any:
    """The fraction that an exact ball is, else the ball."""
    if not isinstance(ball, arb) or not ball.is_finite() or not ball.is_exact():
        return ball
    man, exp = ball.man_exp()
    if int(man).bit_length() + abs(int(exp)) > _LONGEST:
        return ball
    return Fraction(int(man)) * Fraction(2) ** int(exp)


class _Exact:
    """Fractions, and balls where there is none."""

    def __init__(self, point: Mapping[str, Fraction]) -> None:
        self._point = point

    def constant(self, value: Fraction) -> Any:
        return value

    def variable(self, name: str) -> Any:
        return Fraction(self._point[name])

    def operation(self, op: str) -> Callable[..., Any]:
        return partial(_applied, op)

    def decided(self, condition: Any) -> bool | None:
        if isinstance(condition, Fraction):
            return condition != 0
        known = truth(condition)
        return known if known is True or known is False else None

    def select(self, condition: Any, then: Any, other: Any) -> Any:
        same = isinstance(then, Fraction) and isinstance(other, Fraction)
        return then if same and then == other else UNDEFINED


def _applied(op: str, *values: Any) -> Any:
    if all(isinstance(value, Fraction) for value in values):
        node = Apply(op, tuple(Const(value) for value in values))
        folded = fold(node)
        if isinstance(folded, Const):
            return folded.value
        decided = decide(node)
        if decided is not None:
            return decided
        meant = _by_meaning(op, values)
        if isinstance(meant, Fraction):
            return meant
    if any(value is None for value in values):
        return None
    names = [f"v{number}" for number in range(len(values))]
    (value,) = _template(op, len(values)).run(
        dict(zip(names, values, strict=True)), _PRECISION
    )
    return as_fraction(value)


def _by_meaning(op: str, values: tuple[Any, ...]) -> Any:
    """Of a function that is made of others: ``clip`` of numbers that have no ball."""
    row = primitive(op)
    if row.meaning is None:
        return None
    return exactly(formula(row.meaning), dict(zip(row.params, values, strict=True)))


@cache
def _template(op: str, arity: int) -> Program:
    return Program((Apply(op, tuple(Ref(f"v{n}") for n in range(arity))),))
