"""The ``where`` trap in indexed rules (see :mod:`gradspec.stabilise.branch_guards`).

A condition stands in a choice, or in a reduction: ``sum(exp(x[j] - m) for j if
keep[j])``. What it excludes is computed all the same, and where that is not finite,
second derivatives are NaN in the frameworks. So an operand that is at fault becomes a
harmless number there: ``exp(x[j] - m if keep[j] else 0)``. What is at fault is found by
evaluating each operation, element by element, at a few small sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.elements import Axes, OutOfRange, places
from gradspec.ir.expr import ZERO, Apply, Call, Expr, Reduce, Select
from gradspec.ir.rule import Backward, Declared, Derived, Let, Override, Rule
from gradspec.ir.tidy import decide
from gradspec.ir.unroll import unrolled
from gradspec.ir.walk import children, names, nodes, substitute, with_children
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.branch_guards import PLAIN, REACH, SAFE, partials
from gradspec.stabilise.indexed_points import Sample, samples
from gradspec.stabilise.matching import replaced
from gradspec.stabilise.names import Names

_ROUNDS = 6

MINUS_INFINITY = Apply("neg", (Apply("inf"),))

Scope: TypeAlias = "Mapping[str, str | int]"
"""The indices in force, each with its axis."""


def indexed_guarded(rule: Rule) -> Rule:
    """The rule with what its conditions exclude made harmless."""
    if not any(_is_at_stake(value) for value in _values(rule)):
        return rule
    guards = [_Elements(rule, sample) for sample in samples(rule)]
    guard = _Guard(tuple(guards))
    return replace(
        rule,
        forward=tuple(map(guard.let, rule.forward)),
        backward_locals=tuple(map(guard.let, rule.backward_locals)),
        backward=tuple(
            guard.entry(entry, variable.shape.axes)
            for variable, entry in zip(rule.inputs, rule.backward, strict=True)
        ),
    )


def _values(rule: Rule) -> Iterator[Expr]:
    yield from (let.value for let in (*rule.forward, *rule.backward_locals))
    for entry in rule.backward:
        if isinstance(entry, Derived | Declared | Override):
            yield entry.value


def _is_at_stake(value: Expr) -> bool:
    """A condition, and an operation that is not finite everywhere."""
    found = list(nodes(value))
    conditional = any(
        isinstance(n, Select) or (isinstance(n, Reduce) and n.where) for n in found
    )
    return conditional and any(_may_fail(n) for n in found)


def _may_fail(node: Expr) -> bool:
    match node:
        case Apply(op=op, args=args):
            return bool(args) and op not in PLAIN and primitive(op).result != "bool"
        case _:
            return isinstance(node, Call)


class _Elements:
    """Every element of a value at one sample's sizes, at all of its points."""

    def __init__(self, rule: Rule, sample: Sample) -> None:
        self._names = Names(unrolled(rule, sample.evaluated).rule)
        self._machine = Machine(sample.points.columns)
        self._expansion = sample.evaluated
        self._sizes, self._given = sample.sizes, frozenset(sample.points.columns)
        self._known: dict[tuple[Expr, tuple[tuple[str, str | int], ...]], Any] = {}
        columns = [c for c in sample.points.columns.values() if c.dtype != np.bool_]
        self._near = np.ones(len(sample.points), dtype=bool)
        for column in columns:
            self._near &= np.abs(column) <= REACH

    def near(self, scope: Scope) -> Any:
        """The points that matter, once for each element."""
        return np.tile(self._near, sum(1 for _ in self._places(scope)))

    def value(self, expr: Expr, scope: Scope) -> Any:
        """Each element's column, one after the other. What is beyond an axis is 0, as
        it is where arrays are padded."""
        key = expr, tuple(scope.items())
        if key not in self._known:
            parts = [self._column(expr, env) for env in self._places(scope)]
            self._known[key] = np.concatenate(parts) if parts else np.zeros(0)
        return self._known[key]

    def _places(self, scope: Scope) -> Iterator[Mapping[str, int]]:
        axes: Axes = tuple(scope.values())
        for place in places(axes, self._sizes):
            yield dict(zip(scope, place, strict=True))

    def _column(self, expr: Expr, env: Mapping[str, int]) -> Any:
        try:
            scalar = self._expansion.expand(expr, env)
        except OutOfRange:
            return np.zeros_like(self._near, dtype=np.float32)
        decided = decide(scalar)
        if decided is not None:
            return np.full_like(self._near, decided)
        closed = self._names.close(scalar)
        missing = {n: ZERO for n in names(closed) if n not in self._given}
        return self._machine.run(substitute(closed, missing) if missing else closed)


class _Guard:
    def __init__(self, elements: tuple[_Elements, ...]) -> None:
        self._elements = elements

    def let(self, let: Let) -> Let:
        scope = dict(zip(let.indices, let.axes, strict=True))
        return replace(let, value=self._run(let.value, scope))

    def entry(self, entry: Backward, axes: Axes) -> Backward:
        if not isinstance(entry, Derived | Declared):
            return entry
        scope = dict(zip(entry.indices, axes, strict=True))
        return replace(entry, value=self._run(entry.value, scope))

    def _run(self, expr: Expr, scope: Scope) -> Expr:
        """``expr`` with everything guarded, what is inside of a branch first: it may be
        of use as it stands where the branch is at fault."""
        if not _is_at_stake(expr):
            return expr
        try:
            return self._inside(expr, scope)
        except NotImplementedError:  # a part that the model does not know
            return expr

    def _inside(self, expr: Expr, scope: Scope) -> Expr:
        match expr:
            case Select(condition=condition, then=then, other=other):
                then = self._inside(then, scope)
                other = self._inside(other, scope)
                then = self._harmless(then, _Side(condition, True, scope))
                other = self._harmless(other, _Side(condition, False, scope))
                return with_children(expr, (condition, then, other))
            case Reduce(op=op, bounds=bounds, body=body, where=where):
                inner = {**scope, **{b.index: b.axis for b in bounds}}
                body = self._inside(body, inner)
                if where is not None:
                    body = self._harmless(body, _Side(where, True, inner))
                return Reduce(op, bounds, body, where, span=expr.span)
            case _:
                parts = tuple(self._inside(c, scope) for c in children(expr))
                return with_children(expr, parts)

    def _harmless(self, branch: Expr, side: _Side) -> Expr:
        """A branch that is finite, with its derivatives, where it is not taken."""
        for _ in range(_ROUNDS):
            guilty = next(
                (n for n in _operations(branch) if self._is_guilty(n, side)), None
            )
            if guilty is None:
                return branch
            cured = self._cured(guilty, side)
            if cured is None:
                return branch
            branch = replaced(branch, guilty, cured)
        return branch

    def _cured(self, guilty: Expr, side: _Side) -> Expr | None:
        """The operation on operands that are replaced; of a quotient the divisor."""
        first = 1 if isinstance(guilty, Apply) and guilty.op == "div" else 0
        parts = children(guilty)
        for safe in _safe(guilty):
            changed = (side.choice(p, safe) if names(p) else p for p in parts[first:])
            cured = with_children(guilty, (*parts[:first], *changed))
            if not self._is_guilty(cured, side):
                return cured
        return None

    def _is_guilty(self, node: Expr, side: _Side) -> bool:
        """Whether the operation, or a derivative of it, is not finite where the branch
        is not taken, though what may fail below it has not."""
        below = [n for n in _operations(node) if n != node]
        own = (node, *_slopes(node))
        return any(
            bool((outside & _finite(e, below, side) & ~_finite(e, own, side)).any())
            for e in self._elements
            if (outside := _outside(e, side)).any()
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A branch that is taken where the condition is ``taken``."""

    condition: Expr
    taken: bool
    scope: Scope

    def choice(self, value: Expr, safe: Expr) -> Expr:
        """``value`` where the branch is taken, else ``safe``."""
        if self.taken:
            return Select(self.condition, value, safe)
        return Select(self.condition, safe, value)


def _safe(guilty: Expr) -> tuple[Expr, ...]:
    """What to try. An exponential is best 0 where it does not count."""
    is_exponential = isinstance(guilty, Apply) and guilty.op == "exp"
    return (MINUS_INFINITY,) if is_exponential else (ZERO, *SAFE)


def _slopes(node: Expr) -> list[Expr]:
    """The derivatives by those arguments that depend on data."""
    if not isinstance(node, Apply):
        return []
    found = partials(node)
    if len(found) != len(node.args):
        return found
    return [slope for slope, arg in zip(found, node.args, strict=True) if names(arg)]


def _outside(elements: _Elements, side: _Side) -> Any:
    condition = elements.value(side.condition, side.scope).astype(bool)
    return elements.near(side.scope) & (condition != side.taken)


def _finite(elements: _Elements, exprs: Iterable[Expr], side: _Side) -> Any:
    mask = np.ones_like(elements.near(side.scope))
    for expr in exprs:
        mask &= np.isfinite(elements.value(expr, side.scope))
    return mask


def _operations(branch: Expr) -> Iterator[Expr]:
    """What may fail on the way of a derivative, operands first. A reduction is an
    operand: what is inside of it has indices of its own."""
    seen: set[Expr] = set()
    todo: list[tuple[Expr, bool]] = [(branch, False)]
    while todo:
        node, is_below_done = todo.pop()
        if is_below_done:
            if _may_fail(node):
                yield node
        elif node not in seen:
            seen.add(node)
            todo.append((node, True))
            match node:
                case Apply(args=parts) | Call(args=parts):
                    todo += [(part, False) for part in reversed(parts)]
                case Select(then=then, other=other):
                    todo += [(other, False), (then, False)]
                case _:
                    continue
