"""Conditions that say what holds anyway.

Guarding makes ``exp(a if c else -inf)`` of an exponential that a condition excludes: it is
0 there by itself, so that no second choice between it and 0 is needed.
"""

from __future__ import annotations

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Reduce, Select, Size
from gradspec.ir.walk import transform


def without_repeats(expr: Expr) -> Expr:
    """``expr`` without choices of 0 where there is 0 already."""

    def visit(node: Expr) -> Expr:
        match node:
            case Select(condition=condition, then=then, other=other) if (
                other == ZERO and vanishes(then, condition)
            ):
                return then
            case Reduce(op="sum", bounds=bounds, body=body, where=where) if (
                where is not None and vanishes(body, where)
            ):
                return Reduce("sum", bounds, body, None, span=node.span)
            case _:
                return node

    return transform(expr, visit)


def vanishes(expr: Expr, condition: Expr) -> bool:
    """Whether ``expr`` is 0 wherever the condition does not hold, whatever the data."""
    match expr:
        case Apply(op="exp", args=(Select(condition=own, other=other),)):
            return own == condition and other == MINUS_INFINITY
        case Apply(op="div", args=(above, below)):
            return vanishes(above, condition) and _is_number(below, condition)
        case Apply(op="mul", args=(left, right)):
            return (vanishes(left, condition) and _is_number(right, condition)) or (
                vanishes(right, condition) and _is_number(left, condition)
            )
        case Apply(op="neg", args=(arg,)):
            return vanishes(arg, condition)
        case _:
            return False


MINUS_INFINITY = Apply("neg", (Apply("inf"),))


def _is_number(expr: Expr, condition: Expr) -> bool:
    """Whether a number that is not 0 stands there where the condition does not hold."""
    match expr:
        case Select(condition=own, other=Const(value=value)):
            return own == condition and value != 0
        case Const(value=value):
            return value != 0
        case _:
            return isinstance(expr, Size)
