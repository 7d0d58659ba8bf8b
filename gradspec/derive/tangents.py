"""The tangents of a ranked rule's outputs: its cotangents, transposed by index
calculus.

A cotangent is linear in the upstream gradients; what multiplies ``dy[j]`` in ``dx[i]``
multiplies ``x_dot[i]`` in ``y_dot[j]``. So the cotangents are read as a rule from
upstream gradients to gradients, and derived once more. The tangents inherit what the
cotangents are: proved, evaluated stably, those of a surrogate or an override.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from gradspec.derive.indexed import indexed_cotangents
from gradspec.derive.scopes import AT, Axis
from gradspec.ir.expr import Apply, Const, Expr, Idx, Reduce, Ref
from gradspec.ir.rule import (
    Backward,
    Declared,
    Derived,
    Input,
    Kind,
    Let,
    NoGradient,
    Output,
    Override,
    Pending,
    Rule,
    Shape,
)
from gradspec.ir.walk import children, expand, names, nodes, transform, with_children

_Place: TypeAlias = "tuple[Expr, Axis]"
"""An index that the forward pass reads an axis at."""


class NotLinear(Exception):
    """A cotangent that is not linear in the upstream gradients has no transpose."""

    def __init__(self, inputs: tuple[str, ...]) -> None:
        super().__init__(*inputs)
        self.inputs = inputs


def indexed_tangents(rule: Rule) -> dict[str, Derived]:
    """By output, over inputs, forward values and ``<input>_dot``.

    Raises :class:`NotLinear`, and `Underivable` as `indexed_cotangents` does.
    """
    turned = _transpose(rule)
    found = indexed_cotangents(turned)
    upstream = {f"d{o.name}" for o in rule.outputs if o.takes_gradient}
    for entry in found.values():
        if names(entry.value) & upstream:
            raise NotLinear(tuple(i.name for i in rule.inputs if i.takes_gradient))
    moved = {f"d{_slot(i.name)}": f"{i.name}_dot" for i in rule.inputs}
    return {
        o.name: replace(entry, value=_renamed(entry.value, moved))
        for o in rule.outputs
        for name, entry in found.items()
        if name == f"d{o.name}"
    }


def _slot(name: str) -> str:
    """The gradient of an input as an output: no author's name looks like it."""
    return f"@{name}"


def _transpose(rule: Rule) -> Rule:
    """The rule from upstream gradients to gradients; all else is given."""
    cotangents = {
        variable.name: Let(
            f"d{variable.name}", e.indices, e.value, axes=variable.shape.axes
        )
        for variable, e in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(e, Declared | Derived | Override)
    }
    outer = {f"d{name}": _slot(name) for name in cotangents}
    taken = frozenset(_positions_read(rule))
    lets = [
        replace(
            let, name=outer.get(let.name, let.name), value=_closed(let, outer, taken)
        )
        for let in _in_order((*rule.backward_locals, *cotangents.values()))
    ]
    upstream = [
        Input(f"d{o.name}", Kind.FLOAT, o.shape)
        for o in rule.outputs
        if o.takes_gradient
    ]
    inputs = (*upstream, *_constants(rule))
    return Rule(
        name=rule.name,
        doc=None,
        inputs=inputs,
        outputs=tuple(
            Output(_slot(i.name), Kind.FLOAT, i.shape)
            for i in rule.inputs
            if i.name in cotangents
        ),
        forward=tuple(lets),
        backward_locals=(),
        backward=tuple(_backward_entry(i) for i in inputs),
    )


def _closed(let: Let, outer: dict[str, str], taken: frozenset[_Place]) -> Expr:
    axes = dict(zip(let.indices, let.axes, strict=True))
    return _pointed(_renamed(expand(let.value), outer), axes, taken)


def _constants(rule: Rule) -> Iterator[Input]:
    """Inputs and forward values, which are constants here."""
    for variable in rule.inputs:
        kind = Kind.NOGRAD if variable.takes_gradient else variable.kind
        yield replace(variable, kind=kind)
    shapes = {o.name: o.shape for o in rule.outputs}
    for let in rule.forward:
        yield Input(let.name, Kind.NOGRAD, shapes.get(let.name, Shape(axes=let.axes)))


def _backward_entry(variable: Input) -> Backward:
    return Pending() if variable.takes_gradient else NoGradient()


def _in_order(lets: tuple[Let, ...]) -> list[Let]:
    """The values in order, each after those that it uses."""
    known = {let.name: let for let in lets}
    found: dict[str, Let] = {}

    def visit(let: Let) -> None:
        for name in sorted(names(let.value) & known.keys() - found.keys()):
            visit(known[name])
        found.setdefault(let.name, let)

    for let in lets:
        visit(let)
    return list(found.values())


def _renamed(expr: Expr, to: dict[str, str]) -> Expr:
    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in to:
            return Ref(to[node.name], node.indices)
        return node

    return transform(expr, visit)


# --- positions that are there --------------------------------------------------------------


def _positions_read(rule: Rule) -> Iterator[_Place]:
    """Positions that the forward pass reads, which are therefore in range."""
    axes = {i.name: i.shape.axes for i in rule.inputs}
    axes |= {let.name: let.axes for let in rule.forward}
    for let in rule.forward:
        for node in nodes(let.value):
            if isinstance(node, Ref):
                yield from zip(node.indices, axes.get(node.name, ()), strict=True)


def _pointed(expr: Expr, axes: Mapping[str, Axis], taken: frozenset[_Place]) -> Expr:
    """``i == t`` as a position known to be in range, so that a sum over ``i`` has one
    term."""
    if isinstance(expr, Reduce):
        axes = {**axes, **{b.index: b.axis for b in expr.bounds}}
    match expr:
        case Apply(op="eq", args=(Idx(name=name) as place, index)) if _is_there(
            index, axes[name], axes, taken
        ):
            return Apply(AT, (index, place))
        case Apply(op="eq", args=(index, Idx(name=name) as place)) if _is_there(
            index, axes[name], axes, taken
        ):
            return Apply(AT, (index, place))
        case _:
            parts = tuple(_pointed(child, axes, taken) for child in children(expr))
            return with_children(expr, parts)


def _is_there(
    index: Expr, axis: Axis, axes: Mapping[str, Axis], taken: frozenset[_Place]
) -> bool:
    match index:
        case Idx(name=name):
            return axes[name] == axis
        case Const(value=value) if isinstance(axis, int):
            return value in range(axis)
        case _:
            return (index, axis) in taken
