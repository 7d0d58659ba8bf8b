"""Expressions, types checked on the way: which value a name means, over which axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

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
    const,
    nth,
)
from gradspec.ir.walk import nodes as expr_nodes
from gradspec.lower.calls import lower_call
from gradspec.lower.context import UNKNOWN, Binding, Context, Variable, report_unknown
from gradspec.lower.indices import make_bindings, solve, stand
from gradspec.lower.module import (
    Type,
    Value,
    applied_type,
    combine,
    constant_type,
    reduced_type,
    wider,
)
from gradspec.primitives.lookup import BINARY, CONSTANTS
from gradspec.source import Span
from gradspec.syntax import nodes


def lower_name(node: nodes.Name, cx: Context) -> Value | None:
    """A bare name: an index, a variable without axes, a size, ``pi`` or ``inf``."""
    name, span = node.id, node.span
    binding = cx.scope.index(name)
    if binding is not None:
        return Value(Idx(binding.id, span=span), Type.INT)
    if name in cx.scope.variables:
        return _bare(cx.scope.variables[name], span, cx)
    if name in cx.scope.sizes:
        return Value(Size(name, span=span), Type.INT)
    if name in CONSTANTS:
        return Value(Apply(name, span=span), Type.REAL, is_static=True)
    report_unknown(name, span, cx)
    return None


def _bare(variable: Variable, span: Span, cx: Context) -> Value | None:
    if variable.type is None:
        return None
    if variable.axes:
        _wrong_indices(variable, [], span, cx)
        return None
    type = cx.demands.types.get(variable.name, variable.type)
    return _reference(variable, (), type, span)


def _reference(
    variable: Variable, indices: tuple[Value, ...], type: Type, span: Span
) -> Value:
    value = combine(
        Ref(variable.name, tuple(i.expr for i in indices), span=span), type, *indices
    )
    return replace(
        value,
        batch=value.batch or variable.batch,
        is_backward=value.is_backward or variable.is_backward,
        is_static=variable.is_static,
    )


def _wrong_indices(
    variable: Variable, given: Sequence[str], span: Span, cx: Context
) -> None:
    name, count = variable.name, len(variable.axes)
    axes = ", ".join(map(str, variable.axes))
    wanted = f"[{', '.join('ijklmnpqrs'[:count])}]" if axes else ""
    help = f"write `{name}{wanted}`" + (": one index for each axis" if axes else "")
    extra = [*given[: len(given) - count], *map(str, variable.axes)]
    if len(given) > count and variable.batch:
        whole = f"`{name}[{', '.join(extra)}]`"
        help += f"; batch axes (`...`) are never written: to use one, declare {whole}"
    cx.findings.error(
        "GS232",
        f"`{name}` has {_count(count, 'axis', 'axes')}{f' ({axes})' if axes else ''},"
        f" and here it has {_count(len(given), 'index', 'indices')}",
        span,
        help=help,
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number or 'no'} {one if number == 1 else many}"


# --- indexed names -------------------------------------------------------------------


def lower_indexed(node: nodes.Indexed, cx: Context) -> Value | None:
    """``x[i, j + 1]``: each index is tied to the axis that it stands on."""
    variable = cx.scope.variables.get(node.name)
    if variable is None:
        report_unknown(node.name, _name_span(node), cx, is_indexed=True)
        return None
    if variable.type is None:
        return None
    if len(node.indices) != len(variable.axes):
        texts = [cx.findings.text(index.span) for index in node.indices]
        _wrong_indices(variable, texts, node.span, cx)
        return None
    pairs = zip(node.indices, variable.axes, strict=True)
    if _are_swapped(node, variable, cx):
        return None
    indices = [_index(index, axis, variable, cx) for index, axis in pairs]
    sound = tuple(index for index in indices if index is not None)
    if len(sound) < len(indices):
        return None
    return _reference(variable, sound, variable.type, node.span)


def _are_swapped(node: nodes.Indexed, variable: Variable, cx: Context) -> bool:
    """Report two indices of a matrix that would both be right if exchanged; True if they
    are."""
    if len(node.indices) != 2 or len(set(variable.axes)) != 2:
        return False
    bindings = [
        cx.scope.index(index.id) if isinstance(index, nodes.Name) else None
        for index in node.indices
    ]
    first, second = bindings
    if first is None or second is None or first is second:
        return False
    axes = (first.axis, second.axis)
    fits = [axis in (None, own) for axis, own in zip(axes, variable.axes, strict=True)]
    crossed = zip(axes, variable.axes[::-1], strict=True)
    if all(fits) or not all(axis in (None, own) for axis, own in crossed):
        return False
    for binding, axis in zip((first, second), variable.axes[::-1], strict=True):
        if binding.axis is None:
            binding.axis, binding.place = axis, node.span
    texts = [cx.findings.text(index.span) for index in node.indices]
    cx.findings.error(
        "GS230",
        f"the indices of `{variable.name}` are swapped",
        node.span,
        label=f"`{variable.name}` has the axes {variable.axes[0]}, {variable.axes[1]}",
        help=f"write `{variable.name}[{', '.join(reversed(texts))}]`",
    )
    return True


def _name_span(node: nodes.Indexed) -> Span:
    return Span(node.span.start, node.span.start + len(node.name))


def _index(
    node: nodes.Expr, axis: str | int, variable: Variable, cx: Context
) -> Value | None:
    if isinstance(node, nodes.Name):
        binding = cx.scope.index(node.id)
        if binding is not None:
            if not _is_limited(binding, axis, cx):
                stand(binding, axis, node.span, cx)
            return Value(Idx(binding.id, span=node.span), Type.INT)
        if not _is_value(node.id, cx):
            _unbound(node, cx)
            return None
    value = cx.integer(node, "an index")
    if value is not None:
        _tie(value.expr, axis, cx)
        _check_range(value.expr, axis, variable, node.span, cx)
    return value


def _is_limited(binding: Binding, axis: str | int, cx: Context) -> bool:
    """True for ``a[i]`` where ``i`` ranges over another axis: the author says so, or
    ``i < n`` decides."""
    if binding.axis in (None, axis):
        return False
    if binding.is_ranged:
        return True
    ends = (Size(axis), Ref(axis)) if isinstance(axis, str) else (const(axis),)
    index = Idx(binding.id)
    return any({index, end} == {*pair} for end in ends for pair in cx.scope.compared)


def _is_value(name: str, cx: Context) -> bool:
    scope = cx.scope
    return any(name in names for names in (scope.variables, scope.sizes, scope.hidden))


def _report_slice(node: nodes.Whole, cx: Context) -> None:
    cx.findings.error(
        "GS119",
        "an index stands for a whole axis; a slice is an argument of a rule with axes",
        node.span,
        help="name the index, `x[i]`, and use it where it runs; or `softmax(x[i, :])[j]`",
    )


def _unbound(node: nodes.Name, cx: Context) -> None:
    cx.findings.error(
        "GS231",
        f"index `{node.id}` is not bound",
        node.span,
        label="neither on the left side nor after a `for`",
        help=f"put `{node.id}` among the indices on the left, or reduce over it:"
        f" `sum(… for {node.id})`",
    )


def _tie(expr: Expr, axis: str | int, cx: Context) -> None:
    """An index with an offset ranges over this axis if it stands nowhere alone."""
    used = [n.name for n in expr_nodes(expr) if isinstance(n, Idx)]
    for binding in cx.scope.indices:
        if used == [binding.id] and binding.offset_axis is None and axis != UNKNOWN:
            binding.offset_axis = axis


def tie_compared(sides: tuple[Expr, ...], cx: Context) -> None:
    """Indices in one comparison range over one axis, if some stand on none."""
    used = {n.name for side in sides for n in expr_nodes(side) if isinstance(n, Idx)}
    bindings = [b for b in cx.scope.indices if b.id in used]
    for binding in bindings:
        binding.compared.extend(b for b in bindings if b is not binding)


def _check_range(
    expr: Expr, axis: str | int, variable: Variable, span: Span, cx: Context
) -> None:
    if not isinstance(expr, Const):
        return
    last = axis - 1 if isinstance(axis, int) else None
    if expr.value < 0 or (last is not None and expr.value > last):
        size = f"axis of size {axis}" if last is not None else f"axis `{axis}`"
        cx.findings.error(
            "GS234",
            f"index {expr.value} is outside the {size} of `{variable.name}`",
            span,
            help=f"indices count from 0 to {'the size - 1' if last is None else last}"
            + ("" if last is not None else f"; the last one is `{axis} - 1`"),
        )


# --- reductions ----------------------------------------------------------------------


def lower_comprehension(node: nodes.Comprehension, cx: Context) -> Value | None:
    """``op(body for i, j if condition)``: indices range over the axes they stand on."""
    if node.place is not None:
        return _order_statistic(node, node.place, cx)
    bindings = make_bindings(node.indices, cx)
    with cx.scope.bind(bindings):
        body = cx.number(node.body)
        where = None if node.condition is None else cx.condition(node.condition)
    if body is None or (node.condition is not None and where is None):
        return None
    bounds = tuple(Bound(b.id, a) for b in bindings if (a := solve(b, cx)) is not None)
    if len(bounds) < len(bindings):
        return None
    inner = None if where is None else where.expr
    expr = Reduce(node.op, bounds, body.expr, inner, span=node.span)
    parts = (body,) if where is None else (body, where)
    value = combine(expr, reduced_type(node.op, body.type), *parts)
    return replace(value, is_static=False)


def _order_statistic(
    node: nodes.Comprehension, place: nodes.Expr, cx: Context
) -> Value | None:
    """``nth(place, key for j)``: a plain index as the place ranges over the same axis,
    if it has none yet."""
    at = cx.integer(place, "the first argument of `nth`")
    bindings = make_bindings(node.indices, cx)
    with cx.scope.bind(bindings):
        key = cx.number(node.body)
        other = cx.scope.fresh(bindings[0].id)
    if at is None or key is None:
        return None
    axis = solve(bindings[0], cx)
    if axis is None:
        return None
    index = cx.scope.index(place.id) if isinstance(place, nodes.Name) else None
    if index is not None and index.own is None:
        stand(index, axis, place.span, cx)
    bound, exists = Bound(bindings[0].id, axis), index is not None and index.own == axis
    expr = nth(at.expr, key.expr, bound, other, exists).at(node.span)
    return replace(combine(expr, Type.INT, at, key), is_static=False)


# --- expressions ----------------------------------------------------------------------


def lower_expression(node: nodes.Expr, cx: Context) -> Value | None:
    """The value of ``node``; None if there is a fault, which has been reported."""
    match node:
        case nodes.Number(value=value, span=span):
            constant = Const(value, span=span)
            return Value(constant, constant_type(constant), is_static=True)
        case nodes.Name():
            return lower_name(node, cx)
        case nodes.Indexed():
            return lower_indexed(node, cx)
        case nodes.Unary():
            return _unary(node, cx)
        case nodes.Binary():
            return _binary(node, cx)
        case nodes.Compare():
            return _compare(node, cx)
        case nodes.Logical(op=op, operands=operands, span=span):
            values = [cx.condition(o) for o in operands]
            return _join(op, values, span)
        case nodes.Conditional():
            return _conditional(node, cx)
        case nodes.Call():
            return lower_call(node, cx)
        case nodes.Comprehension():
            return lower_comprehension(node, cx)
        case nodes.Whole():
            _report_slice(node, cx)
            return None
        case _:
            assert_never(node)


def apply_primitive(op: str, span: Span, *args: Value) -> Value:
    """A primitive over values of the right types."""
    expr = Apply(op, tuple(a.expr for a in args), span=span)
    return combine(
        expr, applied_type(op, expr.args, tuple(a.type for a in args)), *args
    )


def _unary(node: nodes.Unary, cx: Context) -> Value | None:
    if node.op == "not":
        truth = cx.condition(node.operand)
        return truth and apply_primitive("not", node.span, truth)
    value = cx.number(node.operand)
    if value is None or node.op == "+":
        return value
    if isinstance(node.operand, nodes.Number) and isinstance(value.expr, Const):
        literal = Const(-value.expr.value, span=node.span)
        return combine(literal, value.type, value)
    return apply_primitive("neg", node.span, value)


def _binary(node: nodes.Binary, cx: Context) -> Value | None:
    """A long sum is a deep tree to the left: that side is walked in a loop."""
    chain: list[nodes.Binary] = []
    left: nodes.Expr = node
    while isinstance(left, nodes.Binary):
        chain.append(left)
        left = left.left
    value = cx.number(left)
    for link in reversed(chain):
        right = cx.number(link.right)
        if value is not None and right is not None:
            value = apply_primitive(BINARY[link.op], link.span, value, right)
        else:
            value = None
    return value


# --- conditions ----------------------------------------------------------------------


def _compare(node: nodes.Compare, cx: Context) -> Value | None:
    """A chain ``a < b <= c`` is ``a < b and b <= c``."""
    values = [cx.lower(o) for o in node.operands]
    links: list[Value | None] = []
    for k, op in enumerate(node.ops):
        sides = node.operands[k], node.operands[k + 1]
        links.append(_link(op, (values[k], values[k + 1]), sides, cx))
    return _join("and", links, node.span)


def _link(
    op: str,
    values: tuple[Value | None, Value | None],
    sides: tuple[nodes.Expr, nodes.Expr],
    cx: Context,
) -> Value | None:
    left, right = values
    span = sides[0].span.to(sides[1].span)
    if left is None or right is None:
        return None
    if op in ("==", "!=") and left.type is Type.BOOL and right.type is Type.BOOL:
        return _same_truth(op, left, right, span)
    tie_compared((left.expr, right.expr), cx)
    first = cx.require_number(left, sides[0].span)
    second = cx.require_number(right, sides[1].span)
    return first and second and apply_primitive(BINARY[op], span, first, second)


def _same_truth(op: str, left: Value, right: Value, span: Span) -> Value:
    """``a == b`` of conditions, in logic: comparison is for numbers."""
    other = apply_primitive("not", span, right)
    with_left, without = (right, other) if op == "==" else (other, right)
    return _choose(left, with_left, without, span)


def _choose(condition: Value, then: Value, otherwise: Value, span: Span) -> Value:
    """A choice between conditions, in logic."""
    refused = apply_primitive("not", span, condition)
    taken = apply_primitive("and", span, condition, then)
    return apply_primitive(
        "or", span, taken, apply_primitive("and", span, refused, otherwise)
    )


def _join(op: str, values: list[Value | None], span: Span) -> Value | None:
    sound = [value for value in values if value is not None]
    if len(sound) < len(values):
        return None
    result = sound[0]
    for value in sound[1:]:
        result = apply_primitive(op, span, result, value)
    return result


def _conditional(node: nodes.Conditional, cx: Context) -> Value | None:
    """``a if c else b``; a cascade of ``else … if`` is walked in a loop."""
    arms: list[tuple[nodes.Conditional, Value | None, Value | None]] = []
    last: nodes.Expr = node
    known = len(cx.scope.compared)
    while isinstance(last, nodes.Conditional):
        condition = cx.condition(last.condition)
        cx.scope.compared += _compared_pairs(condition)
        arms.append((last, condition, cx.lower(last.then)))
        last = last.otherwise
    result = cx.lower(last)
    del cx.scope.compared[known:]
    for arm, condition, then in reversed(arms):
        if condition is None or then is None or result is None:
            result = None
        else:
            result = _arm(arm, condition, then, result, cx)
    return result


def _compared_pairs(condition: Value | None) -> Iterator[tuple[Expr, Expr]]:
    for node in expr_nodes(condition.expr) if condition else ():
        if isinstance(node, Apply) and node.op in ("lt", "le", "gt", "ge"):
            yield node.args[0], node.args[1]


def _arm(
    node: nodes.Conditional, condition: Value, then: Value, other: Value, cx: Context
) -> Value | None:
    if Type.BOOL in (then.type, other.type):
        truths = (
            cx.require_condition(then, node.then.span),
            cx.require_condition(other, node.otherwise.span),
        )
        if truths[0] is None or truths[1] is None:
            return None
        return _choose(condition, truths[0], truths[1], node.span)
    cx.require_number(then, node.then.span)
    cx.require_number(other, node.otherwise.span)
    expr: Expr = Select(condition.expr, then.expr, other.expr, span=node.span)
    return combine(expr, wider(then.type, other.type), condition, then, other)
