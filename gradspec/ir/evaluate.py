"""The interpreter of expressions: an algebra says what their operations are.

Balls, fractions, columns of floats, Taylor models, normal forms and SymPy's
terms are algebras; each reads its operations from the rows of primitives.

* :func:`evaluate` finds the value of an expression at one point and keeps the values of
  its nodes for the next expression. A branch that is not taken is not looked at.
* :class:`Steps` compiles expressions, once, to be run at many points by an algebra whose
  operations have a value for "undefined". A step costs a fraction of a microsecond.

Neither recurses: sums are deep trees. Calls of rules are expanded.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from gradspec.ir.expr import Apply, Call, Const, Expr, Key, Ref, Select
from gradspec.ir.walk import expand, nodes

Value: TypeAlias = Any
"""A value of the algebra."""

Known: TypeAlias = "dict[Key, Value]"
"""Values at one point, by node."""


class Algebra(Protocol):
    """Constants, variables and operations for one kind of value, at one point."""

    def constant(self, value: Fraction) -> Value: ...

    def variable(self, name: str) -> Value: ...

    def operation(self, op: str) -> Callable[..., Value]:
        """The operation of a primitive; NotImplementedError where there is none."""

    def truth_of(self, condition: Value) -> bool | None:
        """The truth of a condition; None: both branches are evaluated."""

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        """A choice by a condition that is not decided."""


def evaluate(expr: Expr, algebra: Algebra, known: Known) -> Value:
    """The value of ``expr``; ``known`` gains those of the nodes that it needs.

    NotImplementedError for indices, reductions and what the algebra does not have.
    """
    todo = [expr]
    while todo:
        node = todo[-1]
        if node.key in known:
            todo.pop()
            continue
        needed = _needed_parts(node, algebra, known)
        missing = [part for part in needed if part.key not in known]
        if missing:
            todo += reversed(missing)
        else:
            todo.pop()
            known[node.key] = _value(node, needed, algebra, known)
    return known[expr.key]


def _needed_parts(node: Expr, algebra: Algebra, known: Known) -> tuple[Expr, ...]:
    """The parts that a node's value depends on, as far as conditions are known."""
    match node:
        case Apply(op="and" | "or" as op, args=(first, _)):
            if first.key not in known:
                return (first,)
            settles = algebra.truth_of(known[first.key]) is (op == "or")
            return (first,) if settles else node.args
        case Apply(args=args):
            return args
        case Select(condition=condition, then=then, other=other):
            if condition.key not in known:
                return (condition,)
            taken = algebra.truth_of(known[condition.key])
            if taken is None:
                return condition, then, other
            return (then,) if taken else (other,)
        case Call():
            return (expand(node),)
        case _:
            return ()


def _value(
    node: Expr, needed: tuple[Expr, ...], algebra: Algebra, known: Known
) -> Value:
    match node:
        case Const(value=value):
            return algebra.constant(value)
        case Ref(name=name, indices=()):
            return algebra.variable(name)
        case Apply(op=op, args=args) if len(needed) == len(args):
            return algebra.operation(op)(*[known[part.key] for part in needed])
        case Select() if len(needed) == 3:
            return algebra.select(*[known[part.key] for part in needed])
        case Apply() | Select() | Call():
            return known[needed[0].key]
        case _:
            raise NotImplementedError("an index, a size or a reduction")


class Steps:
    """Expressions as a list of steps over numbered slots, shared nodes once.

    A step is ``(slot, operation, first, second, all)``: the slots of its one or two
    operands (-1: there is none), and those of all, which are looked at if there are
    more. ``constants`` are slots with a number, or with an operation without operands.
    """

    __slots__ = ("constants", "names", "roots", "slots", "steps")

    def __init__(
        self,
        roots: tuple[Expr, ...],
        operation: Callable[[str], Callable[..., Value]],
        select: Callable[[Value, Value, Value], Value],
    ) -> None:
        self.slots: dict[Key, int] = {}
        self.constants: list[tuple[int, Fraction | Callable[[], Value]]] = []
        self.names: dict[str, int] = {}
        self.steps: list[
            tuple[int, Callable[..., Value], int, int, tuple[int, ...]]
        ] = []
        whole = tuple(map(expand, roots))
        for root in whole:
            for node in nodes(root):
                if node.key not in self.slots:
                    self._add(node, operation, select)
        self.roots = tuple(self.slots[root.key] for root in whole)

    def _add(
        self,
        node: Expr,
        operation: Callable[[str], Callable[..., Value]],
        select: Callable[[Value, Value, Value], Value],
    ) -> None:
        slot = len(self.slots)
        match node:
            case Const(value=value):
                self.constants.append((slot, value))
            case Apply(op=op, args=()):
                self.constants.append((slot, operation(op)))
            case Ref(name=name, indices=()):
                self.names[name] = slot
            case Apply(op=op, args=args):
                self._step(slot, operation(op), args)
            case Select():
                self._step(slot, select, node.below)
            case _:
                raise NotImplementedError("an index, a size or a reduction")
        self.slots[node.key] = slot

    def _step(
        self, slot: int, operation: Callable[..., Value], args: tuple[Expr, ...]
    ) -> None:
        places = tuple([self.slots[arg.key] for arg in args])
        first = places[0] if len(places) < 3 else -1
        second = places[1] if len(places) == 2 else -1
        self.steps.append((slot, operation, first, second, places))

    def run(
        self, values: list[Value], failures: tuple[type[Exception], ...], lost: Value
    ) -> None:
        """Fill the slots of all steps; an operation that fails gives ``lost``."""
        for slot, step, first, second, places in self.steps:
            try:
                if second >= 0:
                    values[slot] = step(values[first], values[second])
                elif first >= 0:
                    values[slot] = step(values[first])
                else:
                    values[slot] = step(*[values[place] for place in places])
            except failures:
                values[slot] = lost
