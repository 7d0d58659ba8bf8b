"""Locals of which some elements do not exist, given a value there.

``d[i] = x[i + 1] - x[i]`` has no last element, and a rule that passes the checks does
not use it. An array has one nevertheless: a reference that goes beyond its axis is 1
there, which few functions dislike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from gradspec.checks.shapes import partial
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    const,
)
from gradspec.ir.rule import Input, Kind, Let, Output, Rule
from gradspec.ir.walk import nodes, transform

_Axis = str | int


def fenced(rule: Rule) -> Rule:
    """The rule with no reference beyond an axis in the locals that lack elements."""
    found = partial(rule)
    if not found:
        return rule
    axes = _axes_of(rule)

    def visit(let: Let) -> Let:
        return _fenced(let, axes) if let.name in found else let

    return replace(
        rule,
        forward=tuple(map(visit, rule.forward)),
        backward_locals=tuple(map(visit, rule.backward_locals)),
    )


def _axes_of(rule: Rule) -> dict[str, tuple[_Axis, ...]]:
    """Of every value but the flags, for which 1 is no value."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    known = {let.name: let.axes for let in (*rule.forward, *rule.backward_locals)}
    known |= {f"d{v.name}": v.shape.axes for v in variables if v.takes_gradient}
    known |= {v.name: v.shape.axes for v in variables}
    flags = {v.name for v in variables if v.kind is Kind.BOOL}
    return {name: axes for name, axes in known.items() if name not in flags}


def _fenced(let: Let, axes: Mapping[str, tuple[_Axis, ...]]) -> Let:
    ranges = _ranges(let)

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Ref) or node.name not in axes:
            return node
        pairs = zip(node.indices, axes[node.name], strict=True)
        inside = [c for i, axis in pairs for c in _inside(i, axis, ranges)]
        if not inside:
            return node
        return Select(reduce(lambda a, b: Apply("and", (a, b)), inside), node, ONE)

    return replace(let, value=transform(let.value, visit))


def _ranges(let: Let) -> dict[str, _Axis | None]:
    """The axis of each index; None where one name is bound twice, over different ones."""
    found: dict[str, _Axis | None] = dict(zip(let.indices, let.axes, strict=True))
    for node in nodes(let.value):
        if isinstance(node, Reduce):
            for bound in node.bounds:
                is_same = found.get(bound.index, bound.axis) == bound.axis
                found[bound.index] = bound.axis if is_same else None
    return found


def _inside(
    index: Expr, axis: _Axis, ranges: Mapping[str, _Axis | None]
) -> tuple[Expr, ...]:
    """What must hold for a position to be one of the axis, as far as it is not plain."""
    size: Expr = Size(axis) if isinstance(axis, str) else const(axis)
    above, below = Apply("ge", (index, ZERO)), Apply("lt", (index, size))
    match index:
        case Idx(name=name):
            return () if ranges.get(name) == axis else (below,)
        case Const(value=value):
            inside = isinstance(axis, int) and 0 <= value < axis
            return () if inside else (below,)
        case Apply(op="add" | "sub" as op, args=(Idx(name=name), Const(value=shift))):
            up = shift > 0 if op == "add" else shift < 0
            if ranges.get(name) == axis:
                return (below,) if up else (above,)
            return (above, below)
        case _:
            return (above, below)
