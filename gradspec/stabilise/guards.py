"""The ``where`` trap: values that a condition excludes are computed all the same.

On arrays both branches of a conditional are evaluated, and every summand of
``sum(exp(x[j] - m) for j if keep[j])``. Non-finite values there make NumPy warn, and in
a framework's second derivative 0 times infinity is NaN. So an operation at fault gets a
harmless operand wherever its value is excluded: ``sqrt(x) if x > 0 else 0`` becomes
``sqrt(x if x > 0 else 1) if x > 0 else 0``. Over the reals nothing changes.

An operation is at fault if it or one of its derivatives is not finite at a point where
the branch is not taken, though all operations below it are. This is found by
evaluation: elementwise rules at their points, indexed ones element by element at a few
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from operator import and_
from typing import Any, TypeAlias

import numpy as np

from gradspec.derive.chain import below
from gradspec.ir.elements import OutOfRange, places
from gradspec.ir.expr import ZERO, Apply, Expr, Reduce, Select, const
from gradspec.ir.rule import Complete, Definition, Rule
from gradspec.ir.tidy import decide, tidy
from gradspec.ir.walk import children, names, nodes, substitute, with_children
from gradspec.lower.module import depth
from gradspec.primitives.lookup import partial as derivative
from gradspec.primitives.lookup import primitive, rows
from gradspec.stabilise.names import Names
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points.measured import Points, Sample, samples, scalar_sample

_REACH = 4096.0
"""Larger inputs may overflow in a product, which is not the concern here."""

_PLAIN = frozenset(
    ["add", "sub", "mul", "neg", "square", *(r.name for r in rows() if r.is_piecewise)]
)
"""Finite wherever their arguments are (within reach), as are their derivatives."""

_SAFE = tuple(
    const(Fraction(text)) for text in ["1", "2", "1/2", "0", "-1", "-2", "3", "10"]
)
"""Numbers tried as harmless operands."""

_MINUS_INFINITY = Apply("neg", (Apply("inf"),))

_ROUNDS = 6
_DEEPEST = 200

Scope: TypeAlias = "Mapping[str, str | int]"
"""The indices in force, each with its axis."""

_Mask: TypeAlias = Any
"""A boolean array over the points, once for every element."""


def with_guards(rule: Complete, points: Points | None = None) -> Complete:
    """The rule with excluded values made harmless; ``points`` are those of an
    elementwise rule.
    """
    if not any(is_at_stake(one.value) for one in rule.values.values()):
        return rule
    found = samples(rule) if points is None else (scalar_sample(rule, points),)
    guard = _Guard(_Elements(rule, found), rule.exacts)
    return rule.redefine(*map(guard.guard, rule.values.values()))


def is_at_stake(*values: Expr) -> bool:
    """True with a condition, and an operation that is not finite everywhere."""
    found = [node for value in values for node in nodes(value)]
    conditional = any(
        isinstance(n, Select) or (isinstance(n, Reduce) and n.where) for n in found
    )
    return conditional and any(map(_may_fail, found))


def _may_fail(node: Expr) -> bool:
    match node:
        case Apply(op=op, args=args):
            return bool(args) and op not in _PLAIN and primitive(op).result != "bool"
        case _:
            return False


class _Elements:
    """Values of expressions at every element, for each sample's sizes and points."""

    def __init__(self, rule: Rule, found: tuple[Sample, ...]) -> None:
        self._known: dict[tuple[Expr, tuple[tuple[str, str | int], ...]], Any] = {}
        self._samples = [
            (
                sample,
                Names(sample.written_out(rule, sample.evaluated)),
                Machine(sample.points.columns),
            )
            for sample in found
        ]

    def value(self, expr: Expr, scope: Scope) -> Any:
        """The columns of all elements, concatenated."""
        key = expr, tuple(scope.items())
        if key not in self._known:
            self._known[key] = self._join(scope, partial(_column, expr))
        return self._known[key]

    def near(self, scope: Scope) -> _Mask:
        """The points that matter, once for each element."""
        return self._join(scope, lambda env, sample, *_: _near(sample.points))

    def _join(self, scope: Scope, column: Callable[..., Any]) -> Any:
        columns = [
            column(dict(zip(scope, place, strict=True)), *parts)
            for parts in self._samples
            for place in places(tuple(scope.values()), parts[0].sizes)
        ]
        return np.concatenate(columns) if columns else np.zeros(0, dtype=bool)


def _near(points: Points) -> _Mask:
    columns = [c for c in points.columns.values() if c.dtype != np.bool_]
    every = np.ones(len(points), dtype=bool)
    return reduce(and_, (np.abs(column) <= _REACH for column in columns), every)


def _column(
    expr: Expr,
    env: Mapping[str, int],
    sample: Sample,
    values: Names,
    machine: Machine,
) -> Any:
    """An element at the points; 0 beyond an axis, where arrays are padded."""
    try:
        scalar = sample.evaluated.expand(expr, env)
    except OutOfRange:
        return np.zeros(len(sample.points), dtype=np.float32)
    decided = decide(scalar)
    if decided is not None:
        return np.full(len(sample.points), decided)
    closed = values.close(scalar)
    missing = dict.fromkeys(names(closed) - sample.points.columns.keys(), ZERO)
    return machine.run(substitute(closed, missing) if missing else closed)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One side of a condition: its value counts where the condition is ``taken``, and
    does not at the points ``outside``.
    """

    condition: Expr
    taken: bool
    scope: Scope
    outside: _Mask

    def choice(self, value: Expr, safe: Expr) -> Expr:
        """``value`` where the branch is taken, else ``safe``."""
        if self.taken:
            return Select(self.condition, value, safe)
        return Select(self.condition, safe, value)


class _Guard:
    def __init__(self, elements: _Elements, exacts: tuple[str, ...]) -> None:
        self._elements, self._exacts = elements, exacts
        self._done: dict[tuple[Expr, tuple[str, ...]], Expr] = {}

    def guard(self, let: Definition) -> Definition:
        if let.name in self._exacts:
            return let
        scope = dict(zip(let.indices, let.axes, strict=True))
        return replace(let, value=self._run(let.value, scope))

    def _run(self, expr: Expr, scope: Scope) -> Expr:
        """A value with everything in it guarded."""
        if not is_at_stake(expr) or depth(expr, {}) > _DEEPEST:
            return expr
        try:
            return self._inside(expr, scope)
        except NotImplementedError:  # a part that the model does not know
            return expr

    def _inside(self, expr: Expr, scope: Scope) -> Expr:
        """Guard the parts of a branch first: they may serve where the branch itself is
        at fault. (A part may occur in many places.)
        """
        key = expr, (*scope, *map(str, scope.values()))
        if key not in self._done:
            self._done[key] = self._guard(expr, scope)
        return self._done[key]

    def _guard(self, expr: Expr, scope: Scope) -> Expr:
        match expr:
            case Select(condition=condition, then=then, other=other):
                then = self._harmless(self._inside(then, scope), condition, True, scope)
                other = self._inside(other, scope)
                other = self._harmless(other, condition, False, scope)
                return with_children(expr, (condition, then, other))
            case Reduce(bounds=bounds, body=body, where=where):
                inner = {**scope, **{b.index: b.axis for b in bounds}}
                body = self._inside(body, inner)
                if where is None:
                    return with_children(expr, (body,))
                body = self._harmless(body, where, True, inner)
                return with_children(expr, (body, where))
            case _:
                parts = tuple(self._inside(c, scope) for c in children(expr))
                return with_children(expr, parts)

    def _harmless(
        self, branch: Expr, condition: Expr, taken: bool, scope: Scope
    ) -> Expr:
        """A branch made finite, with its derivatives, where it is not taken."""
        if not any(map(_may_fail, nodes(branch))):
            return branch
        holds = self._elements.value(condition, scope).astype(bool)
        outside = self._elements.near(scope) & (holds != taken)
        side = _Side(condition, taken, scope, outside)
        for _ in range(_ROUNDS if outside.any() else 0):
            guilty = self._first_at_fault(branch, side)
            cured = None if guilty is None else self._cure(guilty, side)
            if guilty is None or cured is None:
                return branch
            branch = _with_cure(branch, guilty, cured)
        return branch

    def _cure(self, guilty: Apply, side: _Side) -> Expr | None:
        """The operation with replaced operands; for a quotient the divisor only."""
        first = 1 if guilty.op == "div" else 0
        parts = guilty.args
        for safe in _safe(guilty, side.scope):
            changed = (side.choice(p, safe) if names(p) else p for p in parts[first:])
            cured = with_children(guilty, (*parts[:first], *changed))
            if self._first_at_fault(cured, side) != cured:
                return cured
        return None

    def _first_at_fault(self, branch: Expr, side: _Side) -> Apply | None:
        """The first operation at fault on the path of derivatives, operands first."""
        sound: dict[Expr, _Mask] = {}
        for node in _on_the_way(branch):
            mask = reduce(and_, (sound[part] for part in _operands(node)), side.outside)
            if isinstance(node, Apply) and _may_fail(node):
                whole = (self._is_finite(expr, side) for expr in _with_slopes(node))
                if (mask & ~reduce(and_, whole)).any():
                    return node
                mask = mask & self._is_finite(node, side)
            sound[node] = mask
        return None

    def _is_finite(self, expr: Expr, side: _Side) -> _Mask:
        return np.isfinite(self._elements.value(expr, side.scope))


def _with_cure(expr: Expr, guilty: Expr, cured: Expr) -> Expr:
    """``expr`` with the cured operation, but for conditions, which keep their values
    (those of earlier cures among them)."""
    done: dict[Expr, Expr] = {guilty: cured}
    for node in nodes(expr):
        if node not in done:
            parts = [done[child] for child in children(node)]
            match node:
                case Select(condition=condition):
                    parts[0] = condition
                case Reduce(where=where) if where is not None:
                    parts[1] = where
            done[node] = with_children(node, tuple(parts))
    return done[expr]


def _safe(guilty: Apply, scope: Scope) -> tuple[Expr, ...]:
    """The operands to try. The exponential of an element, which may be summed, is best
    0 where it does not count.
    """
    if guilty.op == "exp" and scope:
        return (_MINUS_INFINITY,)
    return (ZERO, *_SAFE) if guilty.op in ("exp", "expm1") else _SAFE


def _with_slopes(node: Apply) -> list[Expr]:
    """The operation, and its derivatives by the arguments that depend on data."""
    row = primitive(node.op)
    values = {**dict(zip(row.params, node.args, strict=True)), "out": node}
    moving = (n for n, arg in enumerate(node.args) if names(arg))
    forms = (derivative(node.op, position) for position in moving)
    return [node, *(tidy(substitute(f, values)) for f in forms if f is not None)]


def _operands(node: Expr) -> tuple[Expr, ...]:
    """The operands through which a derivative flows. A reduction has none, because its
    body has indices of its own.
    """
    return () if isinstance(node, Reduce) else below(node)


def _on_the_way(branch: Expr) -> tuple[Expr, ...]:
    """The nodes of a branch through which derivatives flow, operands first; conditions
    are computed in any case."""
    found: set[Expr] = set()
    todo = [branch]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += _operands(node)
    return tuple(node for node in nodes(branch) if node in found)
