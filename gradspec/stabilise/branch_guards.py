"""The ``where`` trap: a branch that is not taken is computed all the same.

On arrays both branches of a conditional are evaluated. A square root of -1 in the one
not taken makes NumPy warn, and in a framework's second derivative 0 times infinity is
NaN. So what would not be finite there gets a harmless operand wherever the branch is not
taken: ``sqrt(x) if x > 0 else 0`` becomes ``sqrt(x if x > 0 else 1) if x > 0 else 0``.
Where nothing is at risk nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from gradspec.derive.regions import below
from gradspec.ir.expr import ONE, Apply, Call, Expr, Ref, Select, const
from gradspec.ir.rule import Backward, Declared, Derived, Kind, Override, Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, names, nodes, substitute, with_children
from gradspec.primitives.formula import partial
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.matching import replaced
from gradspec.stabilise.names import Names
from gradspec.stabilise.sampling import Points

REACH = 4096.0
"""Inputs beyond this may overflow in a product; that is not what this is about."""

_HALF = Fraction(1, 2)
SAFE = tuple(const(v) for v in (1, 2, _HALF, 0, -1, -2, -_HALF, 3, _HALF / 2, 10))
_ROUNDS = 4
_DEEPEST = 200

PLAIN = frozenset(
    ["add", "sub", "mul", "neg", "square", "max", "min", "clip", "relu", "abs"]
)
"""Finite wherever their arguments are (within reach), derivatives too."""

_Mask: TypeAlias = Any
"""A boolean array over the points."""


def guarded(rule: Rule, sample: Points) -> Rule:
    """The rule with its conditionals' branches made harmless where not taken."""
    guard = _Guard(rule, sample)
    return replace(
        rule,
        forward=tuple(replace(x, value=guard.run(x.value)) for x in rule.forward),
        backward_locals=tuple(
            replace(x, value=guard.run(x.value)) for x in rule.backward_locals
        ),
        backward=tuple(guard.entry(entry) for entry in rule.backward),
    )


class _Guard:
    def __init__(self, rule: Rule, sample: Points) -> None:
        self._names = Names(rule)
        self._machine = Machine(sample.columns)
        self._safe: dict[Expr, Expr] = {}
        discrete = (Kind.INT, Kind.BOOL)
        self._discrete = frozenset(i.name for i in rule.inputs if i.kind in discrete)
        self._near = np.ones(len(sample), dtype=bool)
        for variable in rule.inputs:
            column = sample.columns[variable.name]
            if column.dtype != np.bool_:
                self._near &= np.abs(column) <= REACH

    def entry(self, entry: Backward) -> Backward:
        match entry:
            case Derived(value=value) | Declared(value=value) | Override(value=value):
                return replace(entry, value=self.run(value))
            case _:
                return entry

    def run(self, expr: Expr) -> Expr:
        """``expr`` with every conditional guarded, outer ones first."""
        if not any(isinstance(node, Select) for node in nodes(expr)):
            return expr
        if _depth(expr) > _DEEPEST:
            return expr
        try:
            return self._inside(expr)
        except NotImplementedError:  # a part that the model does not know
            return expr

    def _inside(self, expr: Expr) -> Expr:
        """The same of a part, which may stand in many places."""
        if expr not in self._safe:
            self._safe[expr] = self._guarded(expr)
        return self._safe[expr]

    def _guarded(self, expr: Expr) -> Expr:
        match expr:
            case Select(condition=condition, then=then, other=other):
                then = self._inside(self._harmless(then, condition, True))
                other = self._inside(self._harmless(other, condition, False))
                return with_children(expr, (condition, then, other))
            case _:
                parts = tuple(self._inside(child) for child in children(expr))
                return with_children(expr, parts)

    def _harmless(self, branch: Expr, condition: Expr, taken: bool) -> Expr:
        """A branch that is finite, with its derivatives, where it is not taken."""
        outside = self._near & (self._value(condition).astype(bool) != taken)
        if not outside.any():
            return branch
        side = _Side(condition, taken, outside)
        for _ in range(_ROUNDS):
            guilty = [n for n in _on_the_way(branch) if self._is_guilty(n, outside)]
            if not guilty:
                return branch
            cured = self._cured(branch, guilty, side)
            if cured is None:
                return branch
            branch = cured
        return branch

    # --- what is at risk -------------------------------------------------------------

    def _is_guilty(self, node: Expr, outside: _Mask) -> bool:
        """Whether a primitive, or a derivative of it, is not finite though its
        arguments are."""
        match node:
            case Apply(op=op, args=args) if args and op not in PLAIN:
                if primitive(op).result == "bool":
                    return False
                sound = outside & self._finite(args)
                return bool((sound & ~self._finite((node, *partials(node)))).any())
            case Call(args=args):
                sound = outside & self._finite(args)
                return bool((sound & ~self._finite((node,))).any())
            case _:
                return False

    def _finite(self, exprs: Iterable[Expr]) -> _Mask:
        mask = np.ones_like(self._near)
        for expr in exprs:
            mask &= np.isfinite(self._value(expr))
        return mask

    def _value(self, expr: Expr) -> Any:
        return self._machine.run(self._names.close(expr))

    # --- what to do about it ---------------------------------------------------------

    def _cured(self, branch: Expr, guilty: list[Expr], side: _Side) -> Expr | None:
        """The branch with an input replaced below all guilty primitives, or else with
        the operands of the innermost one replaced."""
        for name in _suspects(guilty, side.condition):
            if name in self._discrete:  # no number can stand for it
                continue
            for safe in (*SAFE, *_values_beside(name, side.condition)):
                if self._fits(side, {name: safe}):
                    value = side.choice(Ref(name), safe)
                    cured = self._changed(branch, guilty, side, _Input(name, value))
                    if cured is not None:
                        return cured
        for safe in SAFE:
            cured = self._changed(branch, guilty[:1], side, _Operand(side, safe))
            if cured is not None:
                return cured
        return None

    def _changed(
        self, branch: Expr, guilty: list[Expr], side: _Side, change: _Change
    ) -> Expr | None:
        """The branch with operands changed, outermost first (of a quotient only the
        divisor); None if one of the primitives stays guilty."""
        for node in reversed(guilty):
            if node not in set(nodes(branch)):
                continue
            first = 1 if isinstance(node, Apply) and node.op == "div" else 0
            parts = children(node)
            changed = (
                change.of(part) if names(part) else part for part in parts[first:]
            )
            new = with_children(node, (*parts[:first], *changed))
            if self._is_guilty(new, side.outside):
                return None
            branch = replaced(branch, node, new)
        return branch

    def _fits(self, side: _Side, values: dict[str, Expr]) -> bool:
        """Whether the branch is the one taken at the safe operand, at all points."""
        there = self._value(substitute(side.condition, values)).astype(bool)
        return bool((there == side.taken)[self._near].all())


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A branch: it is taken where the condition is ``taken``; ``outside`` are the
    points at which it is not."""

    condition: Expr
    taken: bool
    outside: _Mask

    def choice(self, value: Expr, safe: Expr) -> Expr:
        """``value`` where the branch is taken, else ``safe``."""
        if self.taken:
            return Select(self.condition, value, safe)
        return Select(self.condition, safe, value)


@dataclass(frozen=True, slots=True)
class _Input:
    """One name replaced wherever an operand uses it."""

    name: str
    value: Expr

    def of(self, operand: Expr) -> Expr:
        return substitute(operand, {self.name: self.value})


@dataclass(frozen=True, slots=True)
class _Operand:
    """The whole operand replaced."""

    side: _Side
    safe: Expr

    def of(self, operand: Expr) -> Expr:
        return self.side.choice(operand, self.safe)


_Change: TypeAlias = _Input | _Operand


def partials(node: Apply) -> list[Expr]:
    """The derivatives of a primitive by its arguments."""
    row = primitive(node.op)
    values: dict[str, Expr] = dict(zip(row.params, node.args, strict=True))
    values["out"] = node
    forms = (partial(node.op, position) for position in range(row.arity))
    return [tidy(substitute(form, values)) for form in forms if form is not None]


def _on_the_way(branch: Expr) -> tuple[Expr, ...]:
    """The nodes of a branch through which derivatives flow, children first; conditions
    are computed in any case."""
    found: dict[Expr, None] = {}
    todo = [branch]
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += below(node)
    return tuple(node for node in nodes(branch) if node in found)


def _suspects(guilty: list[Expr], condition: Expr) -> list[str]:
    """Names below the guilty operands on which the condition depends."""
    below = {name for node in guilty for name in names(node)}
    decisive = (node.name for node in nodes(condition) if isinstance(node, Ref))
    return [name for name in dict.fromkeys(decisive) if name in below]


def _values_beside(name: str, condition: Expr) -> Iterator[Expr]:
    """Where ``name`` is compared with an expression: that expression, 1 aside."""
    for node in nodes(condition):
        match node:
            case Apply(op="lt" | "le" | "gt" | "ge", args=(a, b)):
                for one, bound in ((a, b), (b, a)):
                    if one == Ref(name) and name not in names(bound):
                        yield fold(Apply("add", (bound, ONE)))
                        yield fold(Apply("sub", (bound, ONE)))


def _depth(expr: Expr) -> int:
    depths: dict[Expr, int] = {}
    for node in nodes(expr):
        depths[node] = 1 + max((depths[child] for child in children(node)), default=0)
    return depths[expr]
