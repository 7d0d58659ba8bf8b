"""Ranked cotangents with one mistake in them, of the kinds that people make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradspec.ir.expr import Apply, Bound, Expr, Idx, Reduce, Ref, const
from gradspec.ir.rule import Declared, Rule
from gradspec.ir.walk import nodes, transform


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with one of its declared cotangents changed."""
    for position, entry in enumerate(rule.backward):
        if not isinstance(entry, Declared):
            continue
        axes = rule.inputs[position].shape.axes
        scope = tuple(map(Bound, entry.indices, axes))
        for name, value in _changes(entry.value, scope):
            backward = list(rule.backward)
            backward[position] = replace(entry, value=value)
            label = f"d{rule.inputs[position].name}: {name}"
            yield label, replace(rule, backward=tuple(backward))


def _changes(expr: Expr, scope: tuple[Bound, ...]) -> Iterator[tuple[str, Expr]]:
    yield "sign", Apply("neg", (expr,))
    yield "half", Apply("mul", (const("0.5"), expr))
    for node in nodes(expr):
        for name, other in _changed(node, scope):
            yield name, _put(expr, node, other)


def _changed(node: Expr, scope: tuple[Bound, ...]) -> Iterator[tuple[str, Expr]]:
    match node:
        case Reduce(op="sum"):
            yield "mean for sum", replace(node, op="mean")
        case Reduce(op="mean"):
            yield "sum for mean", replace(node, op="sum")
        case Apply(op="add" | "sub", args=(left, right)):
            yield "right term missing", left
            yield "left term missing", right
        case Apply(op="mul" | "div", args=(left, _)):
            yield "right factor missing", left
        case Ref(indices=(Idx() as i, Idx() as j)) if i != j:
            yield "transposed", Ref(node.name, (j, i))
        case _:
            pass
    if isinstance(node, Reduce) and len(node.bounds) == 1 and node.where is None:
        (bound,) = node.bounds
        same = (b for b in scope if b.axis == bound.axis)
        for other in same:
            body = _put(node.body, Idx(bound.index), Idx(other.index))
            yield f"no {node.op}", body


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)
