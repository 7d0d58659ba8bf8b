"""Ranked cotangents with one mistake in them: those of elementwise rules, made inside
sums and at indices as well, and mistakes that only axes allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

from benchmarks.mutants import HIDDEN, changed
from gradspec.ir.expr import (
    Apply,
    Bound,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
    show,
)
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes, transform

_MOST = 200  # of one cotangent, in reading order


@dataclass(frozen=True, slots=True)
class RankedMutant:
    """``wrong``: the rule with the change; ``inputs``: those whose cotangents have it."""

    kind: str
    rule: Rule
    wrong: Rule
    inputs: tuple[str, ...]

    def shown(self) -> str:
        """The wrong cotangents as text."""
        declared = self.wrong.declared
        return ", ".join(
            f"d{name} = {show(entry.value)}"
            for name, entry in declared.items()
            if name in self.inputs
        )


def mutants(rule: Rule) -> Iterator[RankedMutant]:
    """The rule (every cotangent declared) with one of them changed, or two swapped."""
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    for name, entry in rule.declared.items():
        scope = tuple(map(Bound, entry.indices, entry.axes))
        for kind, value in _distinct(entry.value, scope, upstream):
            wrong = rule.redefine(replace(entry, value=value))
            yield RankedMutant(kind, rule, wrong, (name,))
    yield from _in_locals(rule, upstream)
    yield from _swapped(rule)


def _in_locals(rule: Rule, upstream: tuple[str, ...]) -> Iterator[RankedMutant]:
    """A local of the backward pass changed, and so every cotangent that uses it."""
    claimed = tuple(rule.declared)
    for let in rule.backward_locals:
        scope = tuple(map(Bound, let.indices, let.axes))
        for kind, value in _distinct(let.value, scope, upstream):
            wrong = rule.redefine(replace(let, value=value))
            yield RankedMutant(kind, rule, wrong, claimed)


def _swapped(rule: Rule) -> Iterator[RankedMutant]:
    """The cotangents of two inputs of the same shape, one for the other."""
    shapes = {i.name: i.shape for i in rule.inputs}
    for a, b in combinations(rule.declared.values(), 2):
        is_other = (a.value, a.indices) != (b.value, b.indices)
        if shapes[a.input] == shapes[b.input] and is_other:
            wrong = rule.redefine(
                replace(a, value=b.value, indices=b.indices),
                replace(b, value=a.value, indices=a.indices),
            )
            kind = "partials of two inputs swapped"
            yield RankedMutant(kind, rule, wrong, (a.input, b.input))


def _distinct(
    value: Expr, scope: tuple[Bound, ...], upstream: tuple[str, ...]
) -> Iterator[tuple[str, Expr]]:
    seen = {value}
    for kind, wrong in (
        *changed(value, upstream),
        *_of_axes(value, scope),
        *_of_sizes(value, scope),
    ):
        if wrong not in seen and len(seen) <= _MOST:
            seen.add(wrong)
            yield kind, wrong


def _of_axes(expr: Expr, scope: tuple[Bound, ...]) -> Iterator[tuple[str, Expr]]:
    """The mistakes that take an axis to make."""
    for node in nodes(expr):
        for name, other in _with_axis_wrong(node, scope):
            yield name, _put(expr, node, other)


_SIZES = (4, 6)
"""Beyond the sizes that are taken whole."""


def _of_sizes(expr: Expr, scope: tuple[Bound, ...]) -> Iterator[tuple[str, Expr]]:
    """Twice as large from a size, or an index, on."""
    two = apply("mul", Const(Fraction(2)), expr)
    for bound, size in product(scope, map(Fraction, _SIZES)):
        within = Apply("lt", (Idx(bound.index), Const(size)))
        yield f"{HIDDEN}from an index on", Select(within, expr, two)
        if isinstance(bound.axis, str):
            small = Apply("le", (Size(bound.axis), Const(size)))
            yield f"{HIDDEN}from a size on", Select(small, expr, two)


def _reduced(op: str, like: Reduce) -> Reduce:
    return Reduce(op, like.bounds, like.body, like.where, span=like.span)


def _with_axis_wrong(
    node: Expr, scope: tuple[Bound, ...]
) -> Iterator[tuple[str, Expr]]:
    match node:
        case Reduce(op="sum"):
            yield "mean for sum", _reduced("mean", node)
        case Reduce(op="mean"):
            yield "sum for mean", _reduced("sum", node)
        case Ref(indices=indices):
            for i, j in combinations(range(len(indices)), 2):
                order = list(indices)
                order[i], order[j] = order[j], order[i]
                if indices[i] != indices[j]:
                    yield "two axes swapped", Ref(node.name, tuple(order))
    if isinstance(node, Reduce) and len(node.bounds) == 1 and node.where is None:
        (bound,) = node.bounds
        for other in scope:
            if other.axis == bound.axis:
                body = _put(node.body, Idx(bound.index), Idx(other.index))
                yield "a reduction missing", body


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)
