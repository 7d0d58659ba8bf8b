"""Each input's gradient as a sum of terms, and the tangents derived from them.

A term has the shape of its output, which is the broadcast shape of the inputs that the
output depends on; terms of different shapes are reduced to the input's shape before
they are added. Forward mode needs no second derivation: the factor of ``dz`` in the
gradient of ``x`` multiplies the tangent of ``x`` in that of ``z``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from gradspec.ir.rule import Input, Output, Rule, Shape
from gradspec.ir.walk import children, nodes, transform
from gradspec.plan.arrays import (
    Arange,
    Cumulative,
    Einsum,
    Expand,
    Expr,
    Item,
    LinearScan,
    Loop,
    Name,
    Op,
    RankedNode,
    Rearranged,
    Reduce,
    ScatterAdd,
    Solve,
    Stack,
    Where,
    may_be_number,
    names,
    substitute,
)
from gradspec.plan.axes import size_of
from gradspec.plan.closing import Closed, NotEmitted
from gradspec.plan.extents import Extent, Extents, extents_of
from gradspec.plan.operations import ONE, ZERO, operation, rebuilt, with_values
from gradspec.plan.plan import Assign, Gradient, RulePlan, Term
from gradspec.plan.rewrites import batches, parts_by_batch
from gradspec.primitives.table_operators import BROADCAST_LIKE


def gradients_of(rule: Rule, closed: Closed) -> tuple[Gradient | None, ...]:
    """One entry for each input. Each term has the input's own axes in full, and the
    batch axes of its dependencies.
    """
    extents = Extents(extents_of((*rule.inputs, *rule.outputs)))
    for let in closed.forward:
        extents.define(let.name, let.value)
    return tuple(
        _gradient(rule, closed, variable, extents)
        if variable.cotangent in closed.cotangents
        else None
        for variable in rule.inputs
    )


def _gradient(
    rule: Rule, closed: Closed, variable: Input, extents: Extents
) -> Gradient:
    whole = closed.cotangents[variable.cotangent]
    upstream = rule.cotangents
    if _is_zero(whole):
        return Gradient(variable.name, ZERO, (), ())
    if rule.has_axes:
        _require_one_batch(rule, variable, names(whole))
    parts = linear_terms(whole, upstream, extents)
    if parts is None:
        used = tuple(u for u in upstream if u in names(whole))
        spans = _spans(rule, closed, used, whole, variable)
        return Gradient(variable.name, whole, (Term(whole, used, spans),), (None,))
    sizes = tuple(map(size_of, variable.shape.axes))
    reach = frozenset((variable.name, *upstream))

    def full(value: Expr) -> Expr:
        """The value in the shape of the input for every choice by Python numbers."""
        value = extents.in_full(value, sizes)
        is_ragged = reach & {*names(value)} and not reach & _names_in_shape(
            value, reach
        )
        if not rule.has_axes or not variable.shape.batch or not is_ragged:
            return value
        return Op(BROADCAST_LIKE, (value, Name(variable.name)))

    terms = tuple(
        Term(
            full(value),
            (u,),
            _spans(rule, closed, (u,), value, variable),
        )
        for u, value in parts.items()
    )
    slopes = (
        None if rule.has_axes else with_values(value, {u: ONE})
        for u, value in parts.items()
    )
    return Gradient(variable.name, full(whole), terms, tuple(slopes))


def _require_one_batch(rule: Rule, variable: Input, used: tuple[str, ...]) -> None:
    """The cotangent of an output without batch axes counts once, and must not be summed
    over the batch of another output. An override cannot be split (`rewrites.parts_by_batch`).
    """
    if variable.cotangent in parts_by_batch(rule):
        return
    kinds = {bool(rows) for name, rows in batches(rule).items() if name in used}
    if not variable.shape.batch and len(kinds) > 1:
        raise NotEmitted(
            f"{variable.name} has no batch axes, and of the outputs that use it some have"
        )


def _is_zero(value: Expr) -> bool:
    """True for 0, in whatever shape."""
    while True:
        match value:
            case Rearranged(arg=arg) | Op("broadcast_like", (arg, _)):
                value = arg
            case _:
                return value == ZERO


def _spans(
    rule: Rule,
    closed: Closed,
    upstream: tuple[str, ...],
    value: Expr,
    variable: Input,
) -> tuple[str, ...]:
    """The tensor inputs of free shape that the outputs and the value depend on; for a
    gradient already summed over batch axes, its input alone. A gradient without
    cotangents has the shape of all outputs.
    """
    if not rule.has_axes:
        upstream = upstream or rule.cotangents
    elif not variable.shape.batch:
        return (variable.name,)
    values = {let.name: let.value for let in closed.forward}
    used = set(_shaping(value))
    for name in (*(u.removeprefix("d") for u in upstream), *_shaping(value)):
        if name in values:
            used |= reach_of(values[name], rule.tensor_inputs)
    return tuple(i.name for i in rule.tensor_inputs if i.shape.batch and i.name in used)


def tangents_of(
    rule: Rule, closed: Closed, gradients: tuple[Gradient | None, ...]
) -> tuple[tuple[Expr, ...] | None, str]:
    """One tangent for each output, in ``<input>_dot``; or the reason why there is none.
    Only an override may be nonlinear; this is decided syntactically, because the
    derivative of a step would be 0.
    """
    upstream = rule.cotangents
    for gradient in gradients:
        if gradient is None or gradient.input not in rule.overrides:
            continue
        if not _is_linear_in(gradient.whole, upstream):
            return None, _not_linear(rule, gradient.input)
    if closed.no_tangents:
        return None, closed.no_tangents
    if rule.has_axes:
        tangents = (closed.tangents.get(f"{o.name}_dot", ZERO) for o in rule.outputs)
        return tuple(tangents), ""
    for gradient in gradients:
        if gradient is not None and None in gradient.slopes:
            return None, _not_linear(rule, gradient.input)
    values = {let.name: let.value for let in closed.forward}
    given = {name: values[name] for name in closed.saved}
    return tuple(_tangent(o.cotangent, gradients, given) for o in rule.outputs), ""


def _tangent(
    upstream: str, gradients: tuple[Gradient | None, ...], given: Mapping[str, Expr]
) -> Expr:
    terms = [
        substitute(
            with_values(term.value, {upstream: Name(f"{gradient.input}_dot")}), given
        )
        for gradient in gradients
        if gradient is not None
        for term in gradient.terms
        if term.upstream == (upstream,)
    ]
    return reduce(lambda a, b: operation("add", (a, b)), terms) if terms else ZERO


def _not_linear(rule: Rule, name: str) -> str:
    what = "the override of " if name in rule.overrides else ""
    return f"{what}d{name} is not linear in the upstream gradient"


# --- terms by cotangent ---------------------------------------------------------------
#
# An expression as a sum with one term for each cotangent: the other ones set to 0.


def is_linear(plan: RulePlan) -> bool:
    """True if every gradient is syntactically linear in the cotangents, so that its
    transpose is known: no 0 takes its shape from one.
    """
    wholes = [g.whole for g in plan.gradients if g is not None]
    return all(
        _is_linear_in(whole, plan.cotangents, with_shapes=True) for whole in wholes
    )


def linear_terms(
    expr: Expr, upstream: tuple[str, ...], extents: Extents
) -> Mapping[str, Expr] | None:
    """The terms of ``expr`` in rule order, or None when it is not linear."""
    used = [u for u in upstream if u in names(expr)]
    if not _is_linear_in(expr, upstream):
        return None
    return {u: _without(expr, {*used} - {u}, extents) for u in used}


def _is_linear_in(
    expr: Expr, upstream: tuple[str, ...], *, with_shapes: bool = False
) -> bool:
    """True if ``expr`` is linear by its syntax: sums, products and quotients with
    factors free of cotangents, and choices whose condition is free of them; what gives
    a 0 its shape counts ``with_shapes``.
    """
    known: dict[Expr, bool | None] = {}  # None: free of cotangents
    for node in nodes(expr):
        operands = children(node) if with_shapes else _values_in(node)
        parts = [known[child] for child in operands]
        if isinstance(node, Name) and node.id in upstream:
            known[node] = True
        elif all(part is None for part in parts):
            known[node] = None
        else:
            known[node] = _is_linear(node, operands, known, with_shapes)
    return expr == ZERO or bool(known[expr])


def _is_linear_loop(loop: Loop, known: Mapping[Expr, bool | None]) -> bool:
    """True if the steps are linear in the states and the cotangents together."""
    bound = [known[part] is not None for part in loop.slices]
    if not all(known[part] for part in loop.slices if known[part] is not None):
        return False
    moving = [f"_at[{k}]" for k, moves in enumerate(bound) if moves]
    moving += (f"_was[{k}]" for k in range(len(loop.before)))
    moving += (f"_now[{k}]" for k in range(len(loop.steps)))
    return all(_is_linear_in(step, tuple(moving)) for step in loop.steps)


def _is_linear(
    node: Expr,
    operands: tuple[Expr, ...],
    known: Mapping[Expr, bool | None],
    with_shapes: bool,
) -> bool:
    if isinstance(node, Reduce) and node.op not in ("sum", "mean"):
        return False
    if isinstance(node, Loop):
        return _is_linear_loop(node, known)
    factors = [part for part in _factors(node) if known[part] is not None]
    is_zero = ZERO.__eq__ if with_shapes else _is_zero
    terms = [part for part in _terms(node) if not is_zero(part)]
    bound = [part for part in operands if known[part] is not None]
    if not {*bound} <= {*factors, *terms} or len(factors) > 1:
        return False
    return all(known[part] for part in (*factors, *terms))


def _values_in(node: Expr) -> tuple[Expr, ...]:
    """The parts whose values matter, not those that give a shape."""
    match node:
        case Op(primitive="broadcast_like", args=(value, _)):
            return (value,)
        case _:
            return children(node)


def _terms(node: Expr) -> tuple[Expr, ...]:
    """The parts of which a node is a sum, or a choice."""
    match node:
        case Op(primitive="add" | "sub", args=args) | Stack(args=args):
            return args
        case Where(then=then, other=other):
            return then, other
        case _:
            return ()


def _factors(node: Expr) -> tuple[Expr, ...]:
    """The parts in each of which a node is linear."""
    match node:
        case Op(primitive="mul" | "neg", args=args) | Einsum(args=args):
            return args
        case Op(primitive="div", args=(above, _)):
            return (above,)
        case Op(primitive="broadcast_like", args=(value, _)) | ScatterAdd(value=value):
            return (value,)
        case Rearranged(arg=arg) | Reduce(arg=arg) | Cumulative(arg=arg):
            return (arg,)
        case LinearScan(term=arg) | Item(arg=arg) | Solve(right=arg):
            return (arg,)
        case _:
            return ()


def _without(expr: Expr, gone: set[str], extents: Extents) -> Expr:
    """``expr``, linear in the cotangents, with some of them set to 0. What is left of a
    sum keeps its axes where an operation on axes needs them.
    """
    done: dict[Expr, Expr] = dict.fromkeys(map(Name, gone), ZERO)
    for node in nodes(expr) if gone else ():
        if gone.isdisjoint(names(node)):
            continue
        parts = tuple(done.get(part, part) for part in children(node))
        terms, factors = (
            [done.get(part, part) for part in parts_of(node)]
            for parts_of in (_terms, _factors)
        )
        is_zero = terms and all(map(_is_zero, terms))
        if ZERO in factors or is_zero or _is_zero(node):
            done[node] = ZERO
        elif (
            isinstance(node, Op)
            and node.primitive == BROADCAST_LIKE
            and parts[1] == ZERO
        ):
            done[node] = parts[0]
        elif node not in done:
            if isinstance(node, RankedNode) and not terms:
                pairs = zip(parts, children(node), strict=True)
                parts = tuple(extents.in_full(p, extents.of(c).sizes) for p, c in pairs)
            elif isinstance(node, Where) and _is_choice_of_arrays(node, extents):
                condition, then, other = parts
                parts = condition, _in_shape(then, other), _in_shape(other, then)
            done[node] = rebuilt(node, parts)
    return done.get(expr, expr)


def _is_choice_of_arrays(node: Where, extents: Extents) -> bool:
    """True if a number may choose between arrays with core axes."""
    return extents.of(node.condition) == Extent() and bool(extents.of(node).sizes)


def _in_shape(value: Expr, other: Expr) -> Expr:
    """A 0 in the shape of the other branch."""
    return Op(BROADCAST_LIKE, (ZERO, other)) if value == ZERO else value


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
    every = frozenset(i.name for i in rule.tensor_inputs)
    outputs = {o.name: o for o in rule.outputs if o.takes_gradient}

    def full(let: Assign) -> Assign:
        if let.name not in outputs:
            return let
        output, value = outputs[let.name], let.value
        shape = output.shape
        is_number = may_be_number(value, frozenset(names(value)) - every)
        is_whole = is_number and rule.has_axes
        lacking = _parts(rule, output, computed, gradients) if shape.batch else set()
        if not is_whole:
            lacking -= _surely_reached(value, rule.tensor_inputs)
        rows = [i for i in rule.tensor_inputs if i.shape.batch and i.name in lacking]
        if is_whole:
            rows = rows or [*rule.tensor_inputs[:1]]
        for other in rows:
            value = _broadcast(value, other, shape)
        return replace(let, value=value)

    return tuple(map(full, forward))


def _broadcast(value: Expr, other: Input, shape: Shape) -> Expr:
    """A value of a shape, in the batch axes of an input if the shape has batch axes."""
    like: Expr = Name(other.name)
    if other.shape.axes:
        like = Reduce("sum", like, tuple(range(-len(other.shape.axes), 0)))
    if other.shape.batch and not shape.batch:
        like = Einsum((like,), ("...",), "")
    if shape.axes:
        like = Expand(like, tuple(range(-len(shape.axes), 0)))
    return Op(BROADCAST_LIKE, (value, like))


def reach_of(value: Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs whose joint shape a closed value has: all of them for a number."""
    every = frozenset(i.name for i in tensors)
    return every.intersection(_shaping(value)) or every


def _shaping(value: Expr) -> tuple[str, ...]:
    """The names in a value that its batch axes may come from."""
    return names(_without_positions(value))


def _without_positions(value: Expr) -> Expr:
    """``value`` without the tensors that only tell the device of positions."""
    return transform(value, lambda n: Name("%") if isinstance(n, Arange) else n)


def _surely_reached(value: Expr, tensors: tuple[Input, ...]) -> frozenset[str]:
    """The inputs whose shape a closed value has for every choice by Python numbers: all
    of them for a number.
    """
    every = frozenset(i.name for i in tensors)
    value = _without_positions(value)
    return _names_in_shape(value, every) if every & {*names(value)} else every


def _names_in_shape(value: Expr, every: frozenset[str]) -> frozenset[str]:
    """The names of ``every`` whose shape a value has, whichever way numbers choose."""
    value, known = _without_positions(value), every | {"%"}
    found: dict[Expr, frozenset[str]] = {}
    for node in nodes(value):
        parts = [found[child] for child in children(node)]
        match node:
            case Name(id=name):
                found[node] = known & {name}
            case Where() if not parts[0]:
                found[node] = parts[1] & parts[2]
            case _:
                found[node] = frozenset().union(*parts)
    return every & found[value]


def _parts(
    rule: Rule,
    output: Output,
    computed: Mapping[str, Expr],
    gradients: tuple[Gradient | None, ...],
) -> frozenset[str]:
    """The inputs that an output depends on, through values or gradients. An override
    nonlinear in the cotangents has no part that belongs to one output.
    """
    found = {*output.spans, *reach_of(computed[output.name], rule.tensor_inputs)}
    for gradient in filter(None, gradients):
        for term in gradient.terms:
            if term.upstream == (output.cotangent,):
                used = _shaping(term.value)
                values = [computed[name] for name in used if name in computed]
                found |= {gradient.input, *used}.union(*map(_shaping, values))
    return frozenset(found)
