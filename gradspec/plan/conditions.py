"""Conditions that say what holds anyway.

Guarding makes ``exp(a if c else -inf)`` of an exponential that a condition excludes: it is
0 there by itself, so that no second choice between it and 0 is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from gradspec.derive.indexed_deltas import linear
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Reduce, Ref, Select, Size
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


def is_within(condition: Expr, reference: Ref, sizes: Sequence[Expr]) -> bool:
    """Whether the condition says no more than that the reference's positions exist."""
    reach = [
        (linear(position), linear(Apply("sub", (position, size))))
        for position, size in zip(reference.indices, sizes, strict=True)
    ]
    return all(
        _bound(conjunct)
        in [(0, low) for low, _ in reach] + [(-1, high) for _, high in reach]
        for conjunct in _conjuncts(condition)
    )


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Apply(op="and", args=args):
            for arg in args:
                yield from _conjuncts(arg)
        case _:
            yield condition


def _bound(condition: Expr) -> tuple[int, Mapping[Expr, Fraction]] | None:
    """``(0, p)`` for ``p >= 0`` and ``(-1, p)`` for ``p < 0``, of whole numbers."""
    match condition:
        case Apply(op="ge", args=(a, b)) | Apply(op="le", args=(b, a)):
            return 0, linear(Apply("sub", (a, b)))
        case Apply(op="lt", args=(a, b)) | Apply(op="gt", args=(b, a)):
            return -1, linear(Apply("sub", (a, b)))
        case _:
            return None
