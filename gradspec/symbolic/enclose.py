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
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.walk import children
from gradspec.primitives.lookup import primitive

Value: TypeAlias = Any
"""An ``arb``, a bool, or None (flint has no types to check against)."""

Point: TypeAlias = Mapping[str, Any]
"""A name's value: Fraction, int, float, bool or ``arb``."""


class Program:
    """One or several expressions compiled for evaluation at many points."""

    __slots__ = ("_constants", "_known", "_roots", "_slots", "_steps", "names")

    def __init__(self, roots: tuple[Expr, ...]) -> None:
        self._slots: dict[Expr, int] = {}
        self._constants: list[tuple[int, Fraction | str]] = []
        self._steps: list[tuple[int, Callable[..., Value], tuple[int, ...]]] = []
        self._known: dict[int, list[Value]] = {}
        self.names: dict[str, int] = {}
        for root in roots:
            self._add(_without_calls(root))
        self._roots = tuple(self._slots[_without_calls(root)] for root in roots)

    def _add(self, root: Expr) -> None:
        """Give each new node a slot, children first (no recursion: trees are deep)."""
        stack = [root]
        while stack:
            node = stack[-1]
            waiting = [c for c in children(node) if c not in self._slots]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if node not in self._slots:
                self._slots[node] = slot = len(self._slots)
                self._compile(node, slot)

    def _compile(self, node: Expr, slot: int) -> None:
        match node:
            case Const(value=value):
                self._constants.append((slot, value))
            case Apply(op="pi" | "inf" as name):
                self._constants.append((slot, name))
            case Ref(name=name, indices=()):
                self.names[name] = slot
            case Apply(op=op, args=args):
                step = _LOGIC.get(op) or primitive(op).ball
                if step is None:
                    raise NotImplementedError(f"no exact evaluation of '{op}'")
                self._steps.append((slot, step, tuple(self._slots[a] for a in args)))
            case Select(condition=c, then=t, other=o):
                parts = (self._slots[c], self._slots[t], self._slots[o])
                self._steps.append((slot, _select, parts))
            case _:
                raise NotImplementedError("exact evaluation of indexed expressions")

    def run(self, point: Point, precision: int = 128) -> tuple[Value, ...]:
        """The values of the roots at a point, computed with ``precision`` bits."""
        values = self._values(point, precision)
        return tuple(values[root] for root in self._roots)

    def is_singular(self, point: Point, precision: int = 256) -> bool:
        """Whether a root is certainly undefined at a point, and not merely too hard to
        enclose at this precision: the operation that fails has arguments known well.
        """
        values = self._values(point, precision)
        with ctx.workprec(precision):
            return any(
                _is_undefined(values[root]) and self._fails(root, values)
                for root in self._roots
            )

    def _fails(self, slot: int, values: list[Value]) -> bool:
        """Follow an undefined value down to the operation where it arose."""
        arguments = {step_slot: args for step_slot, _, args in self._steps}
        steps = {step_slot: step for step_slot, step, _ in self._steps}
        selects = {step_slot for step_slot, step in steps.items() if step is _select}
        while slot in arguments:
            args = arguments[slot]
            if slot in selects:
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
                return certain and not _reaches_inside(steps[slot], found)
            slot = bad[0]
        return True

    def _values(self, point: Point, precision: int) -> list[Value]:
        before = ctx.prec
        ctx.prec = precision
        try:
            values = list(self._known.get(precision) or self._start(precision))
            for name, slot in self.names.items():
                value = point[name]
                values[slot] = arb(value) if type(value) is float else to_ball(value)
            for slot, step, args in self._steps:
                try:
                    if (
                        len(args) == 2
                    ):  # nearly always, and cheaper than the general case
                        values[slot] = step(values[args[0]], values[args[1]])
                    else:
                        values[slot] = step(*[values[a] for a in args])
                except (ArithmeticError, ValueError):
                    values[slot] = UNDEFINED
            return values
        finally:
            ctx.prec = before

    def _start(self, precision: int) -> list[Value]:
        """A row of slots with the constants in place, kept per precision."""
        values: list[Value] = [None] * len(self._slots)
        for slot, value in self._constants:
            values[slot] = _constant(value)
        self._known[precision] = values
        return values


@lru_cache(maxsize=1024)
def program(*roots: Expr) -> Program:
    """The compiled form of expressions, kept: checks ask for the same ones often."""
    return Program(roots)


def enclose(expr: Expr, point: Point, precision: int = 128) -> Value:
    """A ball that holds the value of ``expr`` at ``point`` (or a condition's truth)."""
    return program(expr).run(point, precision)[0]


def defined(value: Value) -> bool:
    """Whether an enclosure is a finite ball (or a decided condition)."""
    if value is None:
        return False
    return value is True or value is False or bool(value.is_finite())


def _is_undefined(value: Value) -> bool:
    return value is not None and not defined(value)


def _reaches_inside(step: Callable[..., Value], arguments: list[Value]) -> bool:
    """Whether the operation is defined at an end of inexact arguments: ``atanh`` of
    ``tanh(1000)``, which is less than 1 by too little to be seen."""
    if all(isinstance(a, bool) or a.is_exact() for a in arguments):
        return False
    ends = [(a,) if isinstance(a, bool) else (a.lower(), a.upper()) for a in arguments]
    for corner in product(*ends):
        try:
            if defined(step(*corner)):
                return True
        except (ArithmeticError, ValueError):
            continue
    return False


def _is_overflow(value: Value) -> bool:
    """``[± inf]``: too large for the exponent range, but a number."""
    return not value.is_nan() and not value.is_exact()


def _is_known(value: Value) -> bool:
    """Exact, or with enough right bits that it is not a zero in disguise."""
    if value is True or value is False:
        return True
    return value is not None and (value.is_exact() or value.rel_accuracy_bits() > 24)


def total(values: Iterable[Value]) -> Value:
    """The sum of balls, with room for many of them."""
    with ctx.workprec(1024):
        return sum((_number(value) for value in values), arb(0))


def to_ball(value: Any) -> Value:
    """A point's value as a ball; exact whenever it fits the working precision."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, arb):
        return value
    return arb(int(value) if isinstance(value, bool) else value)


def ball_around(value: float, radius: float) -> Value:
    """The ball of all numbers that are at most ``radius`` from ``value``."""
    return arb(value, radius)


def _constant(value: Fraction | str) -> Value:
    if value == "pi":
        return arb.pi()
    if value == "inf":
        return arb.pos_inf()
    return to_ball(value)


def _without_calls(expr: Expr) -> Expr:
    stack, seen = [expr], {expr}
    while stack:
        node = stack.pop()
        if isinstance(node, Call):
            from gradspec.ir.calls import expand

            return expand(expr)
        fresh = [c for c in children(node) if c not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return expr


# --- conditions ----------------------------------------------------------------------

UNDEFINED: Value = arb.nan()


def truth(value: Value) -> Value:
    """A value in the place of a condition: True, False, None, or undefined."""
    if value is None or value is True or value is False:
        return value
    if value.is_nan():
        return UNDEFINED
    if value.is_zero():
        return False
    return None if value.contains(0) else True


def _number(value: Value) -> Value:
    return arb(int(value)) if value is True or value is False else value


def _comparison(
    yes: Callable[[Value, Value], bool], no: Callable[[Value, Value], bool]
) -> Callable[[Value, Value], Value]:
    """Three values from two tests, each of which is true only when it is certain."""

    def compare(left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        left, right = _number(left), _number(right)
        if yes(left, right):
            return True
        if no(left, right):
            return False
        return UNDEFINED if left.is_nan() or right.is_nan() else None

    return compare


def _not(value: Value) -> Value:
    known = truth(value)
    return not known if known is True or known is False else known


def _and(*values: Value) -> Value:
    known = [truth(v) for v in values]
    if any(k is False for k in known):
        return False
    return _weakest(known, True)


def _or(*values: Value) -> Value:
    known = [truth(v) for v in values]
    if any(k is True for k in known):
        return True
    return _weakest(known, False)


def _weakest(known: list[Value], settled: bool) -> Value:
    """``settled`` if all are decided; undefined beats undecided."""
    open_ones = [k for k in known if k is not True and k is not False]
    if not open_ones:
        return settled
    return next((k for k in open_ones if k is not None), None)


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


_LOGIC: dict[str, Callable[..., Value]] = {
    "lt": _comparison(lambda a, b: a < b, lambda a, b: a >= b),
    "le": _comparison(lambda a, b: a <= b, lambda a, b: a > b),
    "gt": _comparison(lambda a, b: a > b, lambda a, b: a <= b),
    "ge": _comparison(lambda a, b: a >= b, lambda a, b: a < b),
    "eq": _comparison(lambda a, b: a == b, lambda a, b: a != b),
    "ne": _comparison(lambda a, b: a != b, lambda a, b: a == b),
    "and": _and,
    "or": _or,
    "not": _not,
}
