"""Exact values of expressions, as balls that are certain to hold them.

An expression is compiled once into a flat list of steps (shared nodes once), which
then runs at any number of points: a step costs about half a microsecond.

A value is one of

* a finite ``arb``: the real value is inside;
* a non-finite ``arb``: undefined here (the logarithm of a negative number, a division
  by a ball that holds zero), or not to be decided at this precision;
* ``True``, ``False``, or ``None`` for a condition that the balls do not decide.

Conditions follow Kleene's logic; a comparison with an undefined number is undefined
itself (a non-finite ``arb``), and so is what depends on it: NaN in, NaN out. Where a
conditional's condition is not decided the value is the hull of both branches if both
are defined, otherwise undefined. Where it is decided the other branch has no say.

Points may bind names to fractions, integers, floats (``inf`` and ``nan`` too), booleans
or balls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any, TypeAlias

from flint import arb, ctx, fmpq

from gradspec.ir.evaluate import Steps
from gradspec.ir.expr import Expr
from gradspec.primitives.balls import truth
from gradspec.primitives.lookup import primitive

Value: TypeAlias = Any
"""An ``arb``, a bool, or None (flint has no types to check against)."""

Point: TypeAlias = Mapping[str, Any]
"""A name's value: Fraction, int, float, bool or ``arb``."""


class Program:
    """One or several expressions compiled for evaluation at many points."""

    __slots__ = ("_compiled", "_known", "names")

    def __init__(self, roots: tuple[Expr, ...]) -> None:
        self._compiled = Steps(roots, operation, _select)
        self._known: dict[int, list[Value]] = {}
        self.names = self._compiled.names

    def run(self, point: Point, precision: int = 128) -> tuple[Value, ...]:
        """The values of the roots at a point, computed with ``precision`` bits."""
        values = self._values(point, precision)
        return tuple(map(values.__getitem__, self._compiled.roots))

    def is_singular(self, point: Point, precision: int = 256) -> bool:
        """True if a root is certainly undefined at a point, and not merely too hard to
        enclose at this precision: the operation that fails has arguments known well.
        """
        values = self._values(point, precision)
        with ctx.workprec(precision):
            return any(
                _is_undefined(values[root]) and self._fails(root, values)
                for root in self._compiled.roots
            )

    def _fails(self, slot: int, values: list[Value]) -> bool:
        """True if an undefined value stems from an operation with well-known
        arguments."""
        steps = {slot: (step, args) for slot, step, _, _, args in self._compiled.steps}
        while slot in steps:
            step, args = steps[slot]
            if step is _select:
                known = truth(values[args[0]])
                if known is None:
                    return False
                args = (
                    args[1:2]
                    if known is True
                    else args[2:]
                    if known is False
                    else args[:1]
                )
            bad = [a for a in args if _is_undefined(values[a])]
            if not bad:
                found = [values[a] for a in args]
                certain = all(map(_is_known, found)) and not _is_overflow(values[slot])
                return certain and not _reaches_inside(step, found)
            slot = bad[0]
        return True

    def _values(self, point: Point, precision: int) -> list[Value]:
        before = ctx.prec
        ctx.prec = precision
        try:
            values = (self._known.get(precision) or self._start(precision)).copy()
            for name, slot in self.names.items():
                value = point[name]
                values[slot] = arb(value) if type(value) is float else to_ball(value)
            self._compiled.run(values, (ArithmeticError, ValueError), UNDEFINED)
            return values
        finally:
            ctx.prec = before

    def _start(self, precision: int) -> list[Value]:
        """A row of slots with the constants in place, kept per precision."""
        values: list[Value] = [None] * len(self._compiled.slots)
        for slot, value in self._compiled.constants:
            values[slot] = value() if callable(value) else to_ball(value)
        self._known[precision] = values
        return values


@lru_cache(maxsize=1024)
def program(*roots: Expr) -> Program:
    """The compiled form of expressions, kept: checks ask for the same ones often."""
    return Program(roots)


def enclose(expr: Expr, point: Point, precision: int = 128) -> Value:
    """A ball that holds the value of ``expr`` at ``point`` (or a condition's truth)."""
    return program(expr).run(point, precision)[0]


def is_defined(value: Value) -> bool:
    """True of a finite ball and of a decided condition."""
    if value is None:
        return False
    return value is True or value is False or bool(value.is_finite())


def _is_undefined(value: Value) -> bool:
    return value is not None and not is_defined(value)


def _reaches_inside(step: Callable[..., Value], arguments: list[Value]) -> bool:
    """True if the operation is defined at an end of inexact arguments: ``atanh`` of
    ``tanh(1000)``, which is less than 1 by too little to be seen."""
    if all(isinstance(a, bool) or a.is_exact() for a in arguments):
        return False
    ends = [(a,) if isinstance(a, bool) else (a.lower(), a.upper()) for a in arguments]
    for corner in product(*ends):
        try:
            if is_defined(step(*corner)):
                return True
        except (ArithmeticError, ValueError):
            continue
    return False


def _is_overflow(value: Value) -> bool:
    """True for ``[± inf]``: too large for the exponent range, but a number."""
    return not value.is_nan() and not value.is_exact()


def _is_known(value: Value) -> bool:
    """True if exact, or with enough right bits to be no zero in disguise."""
    if value is True or value is False:
        return True
    return value is not None and (value.is_exact() or value.rel_accuracy_bits() > 24)


def total(values: Iterable[Value]) -> Value:
    """The sum of balls, with room for many of them."""
    with ctx.workprec(1024):
        return sum((_number(value) for value in values), arb(0))


def to_ball(value: Any) -> Value:
    """A point's value as a ball; exact whenever it fits the working precision."""
    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(*value.as_integer_ratio()))
    return arb(int(value) if isinstance(value, bool) else value)


_FAR = 1 << 14
"""A power of 2 beyond all floating-point formats (float64 has 1024, quadruple 16384)."""


def middle(ball: Any) -> Fraction:
    """The centre of a finite ball; ``exp(±1e30)``, whose digits fill no memory, is
    brought nearer."""
    man, exp = map(int, ball.mid().man_exp())
    size = man.bit_length()
    return Fraction(man) * Fraction(2) ** (max(-_FAR, min(exp + size, _FAR)) - size)


def ball_around(value: float, radius: float) -> Value:
    """The ball of all numbers that are at most ``radius`` from ``value``."""
    return arb(value, radius)


# --- operations ----------------------------------------------------------------------

UNDEFINED: Value = arb.nan()


def operation(op: str) -> Callable[..., Value]:
    """A primitive on balls."""
    row = primitive(op)
    return row.ball if row.params else partial(row.ball, UNDEFINED)


def _number(value: Value) -> Value:
    return arb(int(value)) if value is True or value is False else value


def _select(condition: Value, then: Value, other: Value) -> Value:
    known = truth(condition)
    if known is True:
        return then
    if known is False:
        return other
    if known is not None:
        return UNDEFINED
    return _hull(then, other)


def _hull(left: Value, right: Value) -> Value:
    if not (isinstance(left, arb) and isinstance(right, arb)):
        return left if left is right else None
    if left.is_finite() and right.is_finite():
        return left.union(right)
    return UNDEFINED
