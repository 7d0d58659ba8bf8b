"""Outputs broadcast to the joint shape of all inputs that they depend on.

An output has the shape to which the inputs broadcast that its definition, its surrogate or
a gradient through it depends on. Not all of these need be left in what is computed: of
``y = hard`` with ``surrogate y = soft`` the input ``soft`` has no part in the value, and
``z + stop_gradient(e - z)`` is evaluated as ``e``; ``x if k > 0 else 0`` is a number for
some statics ``k``. The value is then broadcast with such inputs; otherwise a cotangent would
be smaller than what it is multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from gradspec.ir.expr import Apply, Bound, Expr, Idx, Reduce, Ref
from gradspec.ir.rule import Input, Let, Output, Rule, Surrogate
from gradspec.plan import array
from gradspec.plan.plan import Assign, Gradient
from gradspec.primitives.table_broadcast import BROADCAST_LIKE


def broadcast(
    rule: Rule,
    forward: tuple[Assign, ...],
    surrogates: tuple[Assign, ...],
    gradients: tuple[Gradient | None, ...],
) -> Rule:
    """The rule with its outputs in full; itself where they are (which is nearly always).
    ``forward``, ``surrogates`` and ``gradients`` are what is computed of it.
    """
    computed = {let.name: let.value for let in forward}
    parts = {o.name: _parts(rule, o, computed, gradients) for o in rule.outputs}
    lacking = _lacking(rule, parts, computed)
    differentiated = _lacking(rule, parts, {s.name: s.value for s in surrogates})
    if not lacking and not differentiated:
        return rule
    axes = {o.name: o.shape.axes for o in rule.outputs}

    def let(given: Let) -> Let:
        others = lacking.get(given.name, ())
        places = tuple(zip(given.indices, given.axes, strict=True))
        return replace(given, value=_broadcast(given.value, places, others))

    def surrogate(given: Surrogate) -> Surrogate:
        others = differentiated.get(given.output, ())
        places = tuple(zip(given.indices, axes[given.output], strict=True))
        return replace(given, value=_broadcast(given.value, places, others))

    return replace(
        rule,
        forward=tuple(map(let, rule.forward)),
        surrogates=tuple(map(surrogate, rule.surrogates)),
    )


def reach_of(value: array.Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs in whose shape a closed value is: all of them for a number."""
    every = frozenset(i.name for i in tensors)
    return every.intersection(array.names(value)) or every


def _surely_reached(value: array.Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs in whose shape a closed value is, whichever way the choices go that Python
    numbers decide: all of them for a number.
    """
    every = frozenset(i.name for i in tensors)
    found: dict[array.Expr, frozenset[str]] = {}
    for node in array.nodes(value):
        parts = [found[child] for child in array.children(node)]
        match node:
            case array.Name(id=name):
                found[node] = every & {name}
            case array.Where() if not parts[0]:
                found[node] = parts[1] & parts[2]
            case _:
                found[node] = frozenset().union(*parts)
    return found[value] if every & {*array.names(value)} else every


def _parts(
    rule: Rule,
    output: Output,
    computed: Mapping[str, array.Expr],
    gradients: tuple[Gradient | None, ...],
) -> frozenset[str]:
    """The inputs that have a part in an output in any of the ways. Of an override that
    mixes upstream gradients in a way that is not linear, no part is one output's.
    """
    found = {*output.spans, *reach_of(computed[output.name], rule.tensor_inputs)}
    for gradient in filter(None, gradients):
        for term in gradient.terms:
            if term.upstream == (f"d{output.name}",):
                used = array.names(term.value)
                values = [computed[name] for name in used if name in computed]
                found |= {gradient.input, *used, *array.names(*values)}
    return frozenset(found)


def _lacking(
    rule: Rule,
    parts: Mapping[str, frozenset[str]],
    values: Mapping[str, array.Expr],
) -> dict[str, tuple[Input, ...]]:
    """By output: the inputs in whose shape it is to be, and its value is not."""
    found = {}
    for output in rule.outputs:
        if output.takes_gradient and output.shape.batch and output.name in values:
            there = _surely_reached(values[output.name], rule.tensor_inputs)
            found[output.name] = tuple(
                i
                for i in rule.tensor_inputs
                if i.shape.batch and i.name in parts[output.name] - there
            )
    return {name: others for name, others in found.items() if others}


def _broadcast(
    value: Expr, places: tuple[tuple[str, str | int], ...], others: tuple[Input, ...]
) -> Expr:
    return reduce(
        lambda value, other: Apply(BROADCAST_LIKE, (value, _at(other, places))),
        others,
        value,
    )


def _at(other: Input, places: tuple[tuple[str, str | int], ...]) -> Expr:
    """An input at an output's indices; axes that the output lacks are summed over, for
    all that is asked of the value is its batch axes.
    """
    free = {axis: index for index, axis in reversed(places)}
    taken = {index for index, _ in places}
    indices: list[Expr] = []
    bounds: list[Bound] = []
    for axis in other.shape.axes:
        index = free.pop(axis, None)
        if index is None:
            index = next(n for k in range(99) if (n := f"k{k}") not in taken)
            taken.add(index)
            bounds.append(Bound(index, axis))
        indices.append(Idx(index))
    at = Ref(other.name, tuple(indices))
    return Reduce("sum", tuple(bounds), at) if bounds else at
