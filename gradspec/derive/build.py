"""Sums and products of derivatives, built as one would write them by hand.

These builders may regroup (what they join is ours, not the user's text): constants come
first and are merged, a sign stands at the first factor, ``a * (1 / b)`` is ``a / b``,
and a product with a conditional goes into its branches, so that a branch that
contributes nothing is exactly 0 and cannot turn an infinity into a NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, nodes, with_children

_LEAVES = 4  # branches that are not 0, beyond which a product stays outside
_MINUS_ONE = Fraction(-1)

_Tail: TypeAlias = tuple[tuple[str, Expr], ...]
"""Factors and divisors applied to a first factor, in order: ``("div", x)``."""


def times(left: Expr, right: Expr) -> Expr:
    """``left * right``; ``left`` is what comes first in the text."""
    if ZERO in (left, right):
        return ZERO
    if isinstance(right, Const):
        return scale(right.value, left)
    if isinstance(left, Const):
        return scale(left.value, right)
    return _into_branches(left, right) or _product(left, right)


def plus(left: Expr, right: Expr) -> Expr:
    """``left + right``, as a difference where one of the two is negative."""
    if ZERO in (left, right):
        return right if left == ZERO else left
    match (left, right):
        case (Select(condition=c, then=t, other=o), Select(condition=d)) if c == d:
            return select(c, plus(t, right.then), plus(o, right.other))
    if left == right:
        return scale(Fraction(2), left)
    if _is_negative(right):
        return fold(Apply("sub", (left, negate(right))))
    if _is_negative(left):
        return fold(Apply("sub", (right, negate(left))))
    return fold(Apply("add", (left, right)))


def put_in(form: Expr, values: Mapping[str, Expr]) -> Expr:
    """A formula with its names substituted; its own signs and constants are merged with
    those of the values (``2 * x`` of ``3 * t`` is ``6 * t``)."""
    done: dict[Expr, Expr] = {}
    for node in nodes(form):
        parts = tuple(done[child] for child in children(node))
        match node:
            case Ref(name=name, indices=()):
                done[node] = values.get(name, node)
            case Apply(op="mul"):
                done[node] = times(*parts)
            case Apply(op="neg"):
                done[node] = negate(*parts)
            case _:
                done[node] = fold(with_children(node, parts))
    return done[form]


def select(condition: Expr, then: Expr, other: Expr) -> Expr:
    """One branch or the other; no conditional when they are the same."""
    return fold(Select(condition, then, other))


def negate(expr: Expr) -> Expr:
    """``-expr`` with the sign at the first factor."""
    return scale(_MINUS_ONE, expr)


def scale(factor: Fraction, expr: Expr) -> Expr:
    """``factor * expr``, merged with the constant at the front."""
    if factor in (0, 1):
        return expr if factor else ZERO
    if isinstance(expr, Select) and _leaves(expr) <= _LEAVES:
        then, other = scale(factor, expr.then), scale(factor, expr.other)
        return select(expr.condition, then, other)
    first, tail = _factors(expr)
    match first:
        case Const(value=value):
            return _joined(Const(factor * value), tail)
        case Apply(op="neg", args=(inner,)):
            return scale(-factor, _joined(inner, tail))
        case _:
            return _joined(fold(Apply("mul", (Const(factor), first))), tail)


def _product(left: Expr, right: Expr) -> Expr:
    """The factors of ``right`` one after the other behind ``left``."""
    first, tail = _factors(right)
    match first:
        case Const(value=value):
            left = scale(value, left)
        case Apply(op="neg", args=(inner,)):
            left = _product(negate(left), inner)
        case _:
            left = _behind(left, first)
    return _joined(left, tail)


def _behind(left: Expr, factor: Expr) -> Expr:
    """``left * factor``; ``1 / b * factor`` is ``factor / b``."""
    match left:
        case Apply(op="div", args=(Const() as number, by)):
            return Apply("div", (times(number, factor), by))
        case _ if left == factor:
            return Apply("square", (factor,))
        case Apply(op="neg", args=(inner,)) if inner == factor:
            return Apply("neg", (Apply("square", (factor,)),))
        case _:
            return Apply("mul", (left, factor))


def _factors(expr: Expr) -> tuple[Expr, _Tail]:
    """The first factor of a product and what follows it."""
    tail: list[tuple[str, Expr]] = []
    while isinstance(expr, Apply) and expr.op in ("mul", "div"):
        tail.append((expr.op, expr.args[1]))
        expr = expr.args[0]
    return expr, tuple(reversed(tail))


def _joined(first: Expr, tail: _Tail) -> Expr:
    for op, factor in tail:
        if first == Const(_MINUS_ONE) and op == "mul":
            first = negate(factor)
        elif op == "div":
            first = _quotient(first, factor)
        else:
            first = fold(Apply(op, (first, factor)))
    return first


def _quotient(above: Expr, factor: Expr) -> Expr:
    """``above / factor``, cancelled when the factor stands at either end."""
    match above:
        case _ if above == factor:
            return ONE
        case Apply(op="mul", args=(rest, last)) if last == factor:
            return rest
        case Apply(op="mul", args=(first, rest)) if first == factor:
            return rest
        case _:
            return fold(Apply("div", (above, factor)))


def _is_negative(expr: Expr) -> bool:
    """True if a term begins with a minus."""
    match _factors(expr)[0]:
        case Apply(op="neg"):
            return True
        case Const(value=value):
            return value < 0
        case _:
            return False


def _into_branches(left: Expr, right: Expr) -> Expr | None:
    """The product distributed over conditionals, unless that would multiply the
    text."""
    if not isinstance(left, Select) and not isinstance(right, Select):
        return None
    if _leaves(left) * _leaves(right) > _LEAVES:
        return None
    match (left, right):
        case (Select(condition=c, then=t, other=o), Select(condition=d)) if c == d:
            return select(c, times(t, right.then), times(o, right.other))
        case (_, Select(condition=c, then=t, other=o)):
            return select(c, times(left, t), times(left, o))
        case (Select(condition=c, then=t, other=o), _):
            return select(c, times(t, right), times(o, right))
    return None


def _leaves(expr: Expr) -> int:
    """The number of nonzero branches of a (nested) conditional; inexact past the
    limit."""
    count, todo = 0, [expr]
    while todo and count <= _LEAVES:
        node = todo.pop()
        if isinstance(node, Select):
            todo += (node.then, node.other)
        elif node != ZERO:
            count += 1
    return count
