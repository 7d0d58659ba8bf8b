"""The ``where`` trap: a branch that is not taken is computed all the same.

On arrays both branches of a conditional are evaluated. A square root of -1 in the one
not taken makes NumPy warn, and in a framework's second derivative 0 times infinity is
NaN. So what would not be finite there gets a harmless operand wherever the branch is not
taken: ``sqrt(x) if x > 0 else 0`` becomes ``sqrt(x if x > 0 else 1) if x > 0 else 0``.
Where nothing is at risk nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import ONE, Apply, Call, Expr, Ref, Select, const
from gradspec.ir.rule import Backward, Declared, Derived, Override, Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import children, names, nodes, substitute, with_children
from gradspec.primitives.formula import partial
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.points import Points
from gradspec.stabilise.search import replaced

_REACH = 4096.0
"""Inputs beyond this may overflow in a product; that is not what this is about."""

_HALF = Fraction(1, 2)
_SAFE = tuple(const(v) for v in (1, 2, _HALF, 0, -1, -2, -_HALF, 3, _HALF / 2, 10))
_ROUNDS = 4
_DEEPEST = 200

_PLAIN = frozenset(
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
        self._near = np.ones(len(sample), dtype=bool)
        for variable in rule.inputs:
            column = sample.columns[variable.name]
            if column.dtype != np.bool_:
                self._near &= np.abs(column) <= _REACH

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
        for _ in range(_ROUNDS):
            guilty = [n for n in nodes(branch) if self._is_guilty(n, outside)]
            if not guilty:
                return branch
            cured = next(self._cures(branch, guilty, condition, taken, outside), None)
            if cured is None:
                return branch
            branch = cured
        return branch

    # --- what is at risk -------------------------------------------------------------

    def _is_guilty(self, node: Expr, outside: _Mask) -> bool:
        """Whether a primitive, or a derivative of it, is not finite though its
        arguments are."""
        match node:
            case Apply(op=op, args=args) if args and op not in _PLAIN:
                if primitive(op).result == "bool":
                    return False
                sound = outside & self._finite(args)
                return bool((sound & ~self._finite((node, *_partials(node)))).any())
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

    def _cures(
        self,
        branch: Expr,
        guilty: list[Expr],
        condition: Expr,
        taken: bool,
        outside: _Mask,
    ) -> Iterator[Expr]:
        """Guarded forms of the branch: an input replaced, or else the operands."""
        for name in _suspects(guilty, condition):
            for safe in (*_SAFE, *_beside(name, condition)):
                if not self._fits(condition, {name: safe}, taken):
                    continue
                value = _choice(condition, Ref(name), safe, taken)
                new = _with_operands(
                    branch, guilty, lambda arg, n=name, v=value: substitute(arg, {n: v})
                )
                if not any(self._is_guilty(node, outside) for node in nodes(new)):
                    yield new
        for safe in _SAFE:
            new = _with_operands(
                branch,
                guilty[:1],
                lambda arg, s=safe: _choice(condition, arg, s, taken),
            )
            if not self._is_guilty_inside(new, branch, outside):
                yield new

    def _is_guilty_inside(self, new: Expr, old: Expr, outside: _Mask) -> bool:
        """Whether one of the nodes that the cure has made is itself at risk."""
        known = set(nodes(old))
        return any(
            self._is_guilty(node, outside) for node in nodes(new) if node not in known
        )

    def _fits(self, condition: Expr, values: dict[str, Expr], taken: bool) -> bool:
        """Whether the branch is the one taken at the safe operand, at all points."""
        there = self._value(substitute(condition, values)).astype(bool)
        return bool((there == taken)[self._near].all())


def _partials(node: Apply) -> list[Expr]:
    row = primitive(node.op)
    values: dict[str, Expr] = dict(zip(row.params, node.args, strict=True))
    values["out"] = node
    forms = (partial(node.op, position) for position in range(row.arity))
    return [tidy(substitute(form, values)) for form in forms if form is not None]


def _suspects(guilty: list[Expr], condition: Expr) -> list[str]:
    """Names below the guilty operands on which the condition depends."""
    below = {name for node in guilty for name in names(node)}
    decisive = (node.name for node in nodes(condition) if isinstance(node, Ref))
    return [name for name in dict.fromkeys(decisive) if name in below]


def _beside(name: str, condition: Expr) -> Iterator[Expr]:
    """Where ``name`` is compared with an expression: that expression, 1 aside."""
    for node in nodes(condition):
        match node:
            case Apply(op="lt" | "le" | "gt" | "ge", args=(a, b)):
                for one, bound in ((a, b), (b, a)):
                    if one == Ref(name) and name not in names(bound):
                        yield fold(Apply("add", (bound, ONE)))
                        yield fold(Apply("sub", (bound, ONE)))


def _choice(condition: Expr, value: Expr, safe: Expr, taken: bool) -> Expr:
    if taken:
        return Select(condition, value, safe)
    return Select(condition, safe, value)


def _with_operands(branch: Expr, guilty: list[Expr], change: Any) -> Expr:
    """The branch with the operands of the guilty primitives changed, outermost first
    (of a quotient only the divisor)."""
    for node in reversed(guilty):
        if node in set(nodes(branch)):
            first = 1 if isinstance(node, Apply) and node.op == "div" else 0
            parts = children(node)
            kept = parts[:first]
            changed = tuple(change(part) for part in parts[first:])
            branch = replaced(branch, node, with_children(node, (*kept, *changed)))
    return branch


def _depth(expr: Expr) -> int:
    depths: dict[Expr, int] = {}
    for node in nodes(expr):
        depths[node] = 1 + max((depths[child] for child in children(node)), default=0)
    return depths[expr]
