"""Walks over expressions: children, rebuilding, substitution, names, size.

All are memoised by node within one call, so that shared sub-trees cost once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import assert_never

from gradspec.ir.expr import (
    Apply,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.numbered import Key
from gradspec.ir.rule import Let


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions (index terms included), left to right."""
    return expr.below


def with_children(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The same node over other children; the node itself when nothing changed."""
    if all(map(is_, parts, expr.below)):
        return expr
    match expr:
        case Const() | Idx() | Size():
            return expr
        case Ref():
            return Ref(expr.name, parts, span=expr.span)
        case Apply():
            return Apply(expr.op, parts, span=expr.span)
        case Call():
            return Call(expr.rule, expr.output, parts, span=expr.span)
        case Select():
            condition, then, other = parts
            return Select(condition, then, other, span=expr.span)
        case Reduce():
            where = parts[1] if expr.where is not None else None
            return Reduce(expr.op, expr.bounds, parts[0], where, span=expr.span)
        case _:
            assert_never(expr)


def transform(expr: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up: ``visit`` sees each node with its children already visited."""
    memo: dict[Key, Expr] = {}
    for node in nodes(expr):
        below = node.below
        if below:
            parts = tuple([memo[child.key] for child in below])
            memo[node.key] = visit(with_children(node, parts))
        else:
            memo[node.key] = visit(node)
    return memo[expr.key]


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace un-indexed references by name. The new expressions are not searched.

    Indexed references (``x[i]``) are left alone: replacing those needs the indices
    renamed, which is lowering's and derivation's business.
    """

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and not node.indices:
            return values.get(node.name, node)
        return node

    return transform(expr, visit) if names(expr) & values.keys() else expr


def inline(lets: tuple[Let, ...], expr: Expr) -> Expr:
    """``expr`` with the (elementwise) lets inlined, all the way down."""
    return substitute(expr, _resolved(lets))


@lru_cache(maxsize=32)
def _resolved(lets: tuple[Let, ...]) -> Mapping[str, Expr]:
    """Each let's value with the earlier ones in place; asked for many expressions over
    the same lets.
    """
    values: dict[str, Expr] = {}
    for let in lets:
        values[let.name] = substitute(let.value, values)
    return values


def nodes(expr: Expr) -> tuple[Expr, ...]:
    """Every distinct node, children before parents."""
    return (*expr.inner, expr)


@lru_cache(maxsize=4096)
def names(expr: Expr) -> frozenset[str]:
    """The names referred to."""
    return frozenset([n.name for n in nodes(expr) if isinstance(n, Ref)])


def size(expr: Expr) -> int:
    """The number of distinct nodes."""
    return len(expr.inner) + 1
