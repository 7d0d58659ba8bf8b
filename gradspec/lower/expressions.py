"""Expressions: from what the text says to the mathematics, types checked on the way."""

from __future__ import annotations

from typing import assert_never

from gradspec.ir.expr import Apply, Const, Expr, Select
from gradspec.lower.calls import lower_call
from gradspec.lower.context import Context
from gradspec.lower.module import Type
from gradspec.lower.references import (
    lower_comprehension,
    lower_indexed,
    lower_name,
    tie_compared,
)
from gradspec.lower.values import Value, applied_type, combine, constant_type, wider
from gradspec.primitives.formula import BINARY
from gradspec.source import Span
from gradspec.syntax import nodes


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
        case _:
            assert_never(node)


def applied(op: str, span: Span, *args: Value) -> Value:
    """A primitive over values of the right types."""
    expr = Apply(op, tuple(a.expr for a in args), span=span)
    return combine(
        expr, applied_type(op, expr.args, tuple(a.type for a in args)), *args
    )


def _unary(node: nodes.Unary, cx: Context) -> Value | None:
    if node.op == "not":
        truth = cx.condition(node.operand)
        return truth and applied("not", node.span, truth)
    value = cx.number(node.operand)
    if value is None or node.op == "+":
        return value
    if isinstance(node.operand, nodes.Number) and isinstance(value.expr, Const):
        literal = Const(-value.expr.value, span=node.span)
        return combine(literal, value.type, value)
    return applied("neg", node.span, value)


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
            value = applied(BINARY[link.op], link.span, value, right)
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
    return first and second and applied(BINARY[op], span, first, second)


def _same_truth(op: str, left: Value, right: Value, span: Span) -> Value:
    """``a == b`` of conditions, in logic: comparison is for numbers."""
    other = applied("not", span, right)
    with_left, without = (right, other) if op == "==" else (other, right)
    return _choose(left, with_left, without, span)


def _choose(condition: Value, then: Value, otherwise: Value, span: Span) -> Value:
    """A choice between conditions, in logic."""
    refused = applied("not", span, condition)
    taken = applied("and", span, condition, then)
    return applied("or", span, taken, applied("and", span, refused, otherwise))


def _join(op: str, values: list[Value | None], span: Span) -> Value | None:
    sound = [value for value in values if value is not None]
    if len(sound) < len(values):
        return None
    result = sound[0]
    for value in sound[1:]:
        result = applied(op, span, result, value)
    return result


def _conditional(node: nodes.Conditional, cx: Context) -> Value | None:
    """``a if c else b``; a cascade of ``else … if`` is walked in a loop."""
    arms: list[tuple[nodes.Conditional, Value | None, Value | None]] = []
    last: nodes.Expr = node
    while isinstance(last, nodes.Conditional):
        arms.append((last, cx.condition(last.condition), cx.lower(last.then)))
        last = last.otherwise
    result = cx.lower(last)
    for arm, condition, then in reversed(arms):
        if condition is None or then is None or result is None:
            result = None
        else:
            result = _arm(arm, condition, then, result, cx)
    return result


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
