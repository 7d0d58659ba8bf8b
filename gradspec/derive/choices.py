"""Choices in derived gradients as they are written by hand: what both branches have in
common stands outside, and a branch uses what its condition says.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.derive.simplify import join_factors
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Select
from gradspec.ir.products import Product, conjuncts, guarded_product, is_index
from gradspec.ir.tidy import fold
from gradspec.ir.walk import transform


def factor_choice(expr: Expr) -> Expr:
    """``expr`` with what both branches of a choice have in common outside of it, unless
    it is one of the values at fixed positions (``... if i == 0 else ...``).
    """

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Select) or ZERO in (node.then, node.other):
            return node
        compared = node.condition.below
        fixed = any(isinstance(part, Const) for part in compared)
        sides = guarded_product(node.then), guarded_product(node.other)
        common = sides[0].common(sides[1])
        if not common.parts or any(side.guards for side in sides):
            return node
        if fixed and all(map(is_index, compared)):
            return node
        branches = (join_factors(side.without(common)) for side in sides)
        choice = fold(Select(node.condition, *branches))
        return join_factors(common.times(Product(above=(choice,))))

    return transform(expr, visit)


def with_known_extrema(expr: Expr) -> Expr:
    """``expr`` with the larger of two values in the place of their maximum, and the
    smaller in that of their minimum, in branches whose condition says which it is.
    """

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Select):
            return node
        known: dict[Expr, Expr] = {}
        for larger, smaller in _ordered_pairs(node.condition):
            for pair in ((larger, smaller), (smaller, larger)):
                known |= {Apply("max", pair): larger, Apply("min", pair): smaller}
        then = transform(node.then, lambda part: known.get(part, part))
        if then == node.then:
            return node
        return fold(Select(node.condition, _cancelled(then), node.other))

    return transform(expr, visit)


def _ordered_pairs(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The larger and the smaller side of each comparison that must hold."""
    for conjunct in conjuncts(condition):
        match conjunct:
            case Apply(op="gt" | "ge" | "eq", args=(a, b)):
                yield a, b
            case Apply(op="lt" | "le", args=(a, b)):
                yield b, a


def _cancelled(expr: Expr) -> Expr:
    """``expr`` with the factors of its terms merged."""
    match expr:
        case Apply(op="add" | "sub", args=args):
            return fold(Apply(expr.op, tuple(map(_cancelled, args))))
        case Apply(op="mul" | "div" | "neg"):
            return join_factors(guarded_product(expr))
        case _:
            return expr
