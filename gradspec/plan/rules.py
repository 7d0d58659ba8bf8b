"""Rewrites of rules before planning; the mathematics stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gradspec.derive.scopes import Fresh, Value, inlined, named
from gradspec.ir.expr import (
    ZERO,
    Expr,
    Reduce,
    Ref,
    Size,
    const,
)
from gradspec.ir.rule import (
    Declared,
    Derived,
    Input,
    Kind,
    Let,
    Output,
    Rule,
)
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import partial
from gradspec.ir.walk import names, nodes, transform
from gradspec.plan import arrays
from gradspec.plan.plan import Assign, Gradient
from gradspec.plan.rewrites import or_one
from gradspec.primitives.table_internal import BROADCAST_LIKE

# --- locals that lack elements --------------------------------------------------------
#
# Locals with missing elements, which get a value there.
#
# ``d[i] = x[i + 1] - x[i]`` has no last element, and a rule that passes the checks does
# not use it. An array has one nevertheless: a reference beyond its axis is 1 there, at
# which most functions are finite.


def fenced(rule: Rule) -> Rule:
    """The rule with no reference beyond an axis in the locals that lack elements."""
    found = partial(rule)
    if not found:
        return rule
    sizes = {n: tuple(map(_size, axes)) for n, axes in _axes_of(rule).items()}

    def visit(let: Let) -> Let:
        if let.name not in found:
            return let
        ranges = {index: _size(axis) for index, axis in _ranges(let).items()}

        def inside(node: Expr) -> Expr:
            if not isinstance(node, Ref) or node.name not in sizes:
                return node
            return or_one(node, sizes[node.name], ranges)

        return replace(let, value=transform(let.value, inside))

    return replace(
        rule,
        forward=tuple(map(visit, rule.forward)),
        backward_locals=tuple(map(visit, rule.backward_locals)),
    )


def _axes_of(rule: Rule) -> dict[str, tuple[str | int, ...]]:
    """The axes of every value except flags, for which 1 is not a value."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    known = {let.name: let.axes for let in (*rule.forward, *rule.backward_locals)}
    known |= {f"d{v.name}": v.shape.axes for v in variables if v.takes_gradient}
    known |= {v.name: v.shape.axes for v in variables}
    flags = {v.name for v in variables if v.kind is Kind.BOOL}
    return {name: axes for name, axes in known.items() if name not in flags}


def _ranges(let: Let) -> dict[str, str | int]:
    """The axis of each index; -1 for a name bound twice, over different axes."""
    found: dict[str, str | int] = dict(zip(let.indices, let.axes, strict=True))
    for node in nodes(let.value):
        for bound in node.bounds if isinstance(node, Reduce) else ():
            is_same = found.get(bound.index, bound.axis) == bound.axis
            found[bound.index] = bound.axis if is_same else -1
    return found


def _size(axis: str | int) -> Expr:
    return Size(axis) if isinstance(axis, str) else const(axis)


# --- batch axes -----------------------------------------------------------------------
#
# Gradients of an input without batch axes that outputs with and without them use.
#
# The part from an output without batch axes counts once; the part from one that has
# them is summed over the batch. A gradient is linear in the cotangents, so it is the
# sum of its values with either kind of cotangent set to 0.


def parted(rule: Rule) -> dict[str, tuple[Expr, Expr]]:
    """By ``d<input>``: the part that is summed over the batch, and the part that is
    not; only for inputs that have both.
    """
    upstream = {f"d{o.name}": o.shape.batch for o in rule.outputs if o.takes_gradient}
    lets = _mixing(rule, upstream)
    found = {}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if variable.shape.batch or not isinstance(entry, Declared | Derived):
            continue
        whole = entry.value
        if names(whole) & set(lets):
            whole = named(inlined(whole, lets, Fresh()), frozenset(entry.indices))
        used = names(whole) & set(upstream)
        if len({upstream[name] for name in used}) > 1:
            batched = [name for name in used if upstream[name]]
            found[f"d{variable.name}"] = (
                _without(whole, used - set(batched)),
                _without(whole, batched),
            )
    return found


def _mixing(rule: Rule, upstream: dict[str, bool]) -> dict[str, Value]:
    """The values of the backward pass that use cotangents."""
    values = [(b.name, b.indices, b.axes, b.value) for b in rule.backward_locals]
    values += [
        (f"d{v.name}", entry.indices, v.shape.axes, entry.value)
        for v, entry in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(entry, Declared | Derived)
    ]
    found = {name: Value(name, i, axes, value) for name, i, axes, value in values}
    using = set(upstream)
    while more := {n for n, v in found.items() if names(v.expr) & using} - using:
        using |= more
    return {name: value for name, value in found.items() if name in using}


def _without(expr: Expr, gone: Iterable[str]) -> Expr:
    """``expr`` with some cotangents set to 0."""
    zero = frozenset(gone)

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name) if name in zero:
                return ZERO
            case Reduce(op="sum" | "mean", body=body) if body == ZERO:
                return ZERO
            case _:
                return fold(node)

    return transform(expr, visit)


# --- outputs in full ------------------------------------------------------------------
#
# Outputs broadcast to the joint shape of all inputs that they depend on.
#
# An output has the joint shape of the inputs that its definition, its surrogate or a
# gradient through it depends on. The computed value need not depend on all of these:
# for ``y = hard`` with ``surrogate y = soft`` the value does not contain ``soft``, and
# ``z + stop_gradient(e - z)`` is evaluated as ``e``; ``x if k > 0 else 0`` is a number
# for some statics ``k``. The value is then broadcast with such inputs; otherwise a
# cotangent would be smaller than the factors that multiply it.


def in_full(
    rule: Rule,
    forward: tuple[Assign, ...],
    gradients: tuple[Gradient | None, ...],
) -> tuple[Assign, ...]:
    """The computed ``forward`` values with outputs broadcast."""
    computed = {let.name: let.value for let in forward}
    outputs = {o.name: o for o in rule.outputs if o.takes_gradient and o.shape.batch}

    def full(let: Assign) -> Assign:
        if let.name not in outputs:
            return let
        output, value = outputs[let.name], let.value
        lacking = _parts(rule, output, computed, gradients)
        lacking -= _surely_reached(value, rule.tensor_inputs)
        for other in rule.tensor_inputs:
            if other.shape.batch and other.name in lacking:
                value = _broadcast(value, other, len(output.shape.axes))
        return replace(let, value=value)

    return tuple(map(full, forward))


def _broadcast(value: arrays.Expr, other: Input, rank: int) -> arrays.Expr:
    """A value of ``rank`` axes in the batch axes of an input as well."""
    like: arrays.Expr = arrays.Name(other.name)
    if other.shape.axes:
        like = arrays.Reduce("sum", like, tuple(range(-len(other.shape.axes), 0)))
    if rank:
        like = arrays.Expand(like, tuple(range(-rank, 0)))
    return arrays.Op(BROADCAST_LIKE, (value, like))


def reach_of(value: arrays.Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs whose joint shape a closed value has: all of them for a number."""
    every = frozenset(i.name for i in tensors)
    return every.intersection(arrays.names(value)) or every


def _surely_reached(value: arrays.Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs whose shape a closed value has for every choice by Python numbers: all
    of them for a number.
    """
    every = frozenset(i.name for i in tensors)
    found: dict[arrays.Expr, frozenset[str]] = {}
    for node in arrays.nodes(value):
        parts = [found[child] for child in arrays.children(node)]
        match node:
            case arrays.Name(id=name):
                found[node] = every & {name}
            case arrays.Where() if not parts[0]:
                found[node] = parts[1] & parts[2]
            case _:
                found[node] = frozenset().union(*parts)
    return found[value] if every & {*arrays.names(value)} else every


def _parts(
    rule: Rule,
    output: Output,
    computed: Mapping[str, arrays.Expr],
    gradients: tuple[Gradient | None, ...],
) -> frozenset[str]:
    """The inputs that an output depends on, through values or gradients. An override
    nonlinear in the cotangents has no part that belongs to one output.
    """
    found = {*output.spans, *reach_of(computed[output.name], rule.tensor_inputs)}
    for gradient in filter(None, gradients):
        for term in gradient.terms:
            if term.upstream == (f"d{output.name}",):
                used = arrays.names(term.value)
                values = [computed[name] for name in used if name in computed]
                found |= {gradient.input, *used, *arrays.names(*values)}
    return frozenset(found)
