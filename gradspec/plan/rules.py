"""Rewrites of rules before planning; the mathematics stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce

from gradspec.derive.build import plus
from gradspec.derive.chain import coefficient, is_linear
from gradspec.derive.scopes import Fresh, Value, inlined, named
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    const,
)
from gradspec.ir.rule import (
    Backward,
    CheckedRule,
    Declared,
    Derived,
    Input,
    Kind,
    Let,
    Output,
    Override,
    Rule,
    Surrogate,
)
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import partial
from gradspec.ir.walk import names, nodes, transform
from gradspec.plan import arrays
from gradspec.plan.plan import Assign, Gradient
from gradspec.primitives.table_internal import BROADCAST_LIKE

# --- locals that lack elements --------------------------------------------------------
#
# Locals with missing elements, which get a value there.
#
# ``d[i] = x[i + 1] - x[i]`` has no last element, and a rule that passes the checks does
# not use it. An array has one nevertheless: a reference beyond its axis is 1 there, at
# which most functions are finite.


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
    """The axes of every value except flags, for which 1 is not a value."""
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
    """The axis of each index; None for a name bound twice, over different axes."""
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
    """The conditions that make a position one of the axis, unless they plainly hold."""
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


def broadcast(
    rule: Rule,
    forward: tuple[Assign, ...],
    surrogates: tuple[Assign, ...],
    gradients: tuple[Gradient | None, ...],
) -> Rule:
    """The rule with its outputs broadcast; itself where they are already (the usual
    case). ``forward``, ``surrogates`` and ``gradients`` are its computed values.
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


def _lacking(
    rule: Rule,
    parts: Mapping[str, frozenset[str]],
    values: Mapping[str, arrays.Expr],
) -> dict[str, tuple[Input, ...]]:
    """By output: the inputs whose shape the output must have and its value lacks."""
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
    """An input at an output's indices; axes that the output lacks are summed over,
    because only the batch axes of the value matter.
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


# --- cotangents as factors ------------------------------------------------------------
#
# Cotangents moved out of conditionals, quotients and long products, for a target
# that transposes tangents.
#
# JAX takes tangents and transposes them. In `dy * a if c else dy * b` the branch that
# is not taken is transposed too, with the cotangent 0: times an infinite `b` that is
# NaN. And `dy * x / y` becomes `dy / y * x`, which is 0 where `1 / y` is subnormal. The
# factors of `dy * a * b * c` are applied from the last to the first, so that an order
# selected to stay in range is lost. In `dy * (a if c else b)`, `dy * (x / y)` and
# `dy * (a * b * c)` only the product is transposed.


_LONG = 3
"""The order of two factors makes no difference."""


def outside(checked: CheckedRule) -> CheckedRule:
    """The rule as planned for such a target."""
    rule = checked.rule
    if not rule.is_elementwise:
        return checked
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    backward = tuple(_entry(entry, upstream) for entry in rule.backward)
    if backward == rule.backward:
        return checked
    return replace(checked, rule=replace(rule, backward=backward))


def _entry(entry: Backward, upstream: tuple[str, ...]) -> Backward:
    match entry:
        case Derived(value=value) | Declared(value=value) | Override(value=value):
            return replace(entry, value=_outside(value, upstream))
        case _:
            return entry


def _outside(value: Expr, upstream: tuple[str, ...]) -> Expr:
    known = frozenset(upstream)
    if not any(_hides(node, known) for node in nodes(value)):
        return value
    if not is_linear(value, known):
        return value
    used = [name for name in upstream if name in names(value)]
    factors = (coefficient(value, name, known) for name in used)
    terms: list[Expr] = [
        Apply("mul", (Ref(name), factor))
        for name, factor in zip(used, factors, strict=True)
    ]
    return reduce(plus, terms)


def _behind(node: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """The factors of a product that are transposed one by one."""
    while isinstance(node, Apply) and node.op == "mul":
        ahead, factor = node.args
        if upstream & names(factor):
            ahead, factor = factor, ahead
        if not isinstance(factor, Const):
            yield factor
        node = ahead


def _hides(node: Expr, upstream: frozenset[str]) -> bool:
    """True if the transposed form computes something else than the form."""
    match node:
        case Select(then=then, other=other):
            return bool(upstream & (names(then) | names(other)))
        case Apply(op="div", args=(Apply() as above, below)):
            return bool(upstream & names(above)) and not isinstance(below, Const)
        case Apply(op="mul") if upstream & names(node):
            return len([*_behind(node, upstream)]) >= _LONG
        case _:
            return False
