"""An expression as a sum with one term for each upstream gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from gradspec.plan.array import (
    Expr,
    Literal,
    Name,
    Op,
    ToFloat,
    Where,
    children,
    nodes,
    with_children,
)
from gradspec.plan.ranked import (
    Cumulative,
    Diagonal,
    Einsum,
    Expand,
    Gather,
    Permute,
    Pick,
    Ranked,
    RankedNode,
    Reduce,
    ScatterAdd,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.plan.translate import ZERO, operation

Parts: TypeAlias = "Mapping[str, Expr] | None"
"""Terms by upstream gradient; empty: zero; None: not a sum of such terms."""


def terms(expr: Expr, upstream: tuple[str, ...]) -> Mapping[str, Expr] | None:
    """The terms of ``expr`` in rule order, or None when it is not linear.

    Linear by form: sums, products and quotients with factors free of upstream gradients,
    and choices whose condition is free of them.
    """
    parts: dict[Expr, Parts] = {}
    free: dict[Expr, bool] = {}
    for node in nodes(expr):
        free[node] = all(free[child] for child in children(node)) and not (
            isinstance(node, Name) and node.id in upstream
        )
        parts[node] = None if free[node] else _node(node, parts, free)
        if node == ZERO:
            parts[node] = {}
    found = parts[expr]
    return None if found is None else {u: found[u] for u in upstream if u in found}


def _node(node: Expr, parts: Mapping[Expr, Parts], free: Mapping[Expr, bool]) -> Parts:
    match node:
        case Name(id=name):
            return {name: node}
        case Op(primitive="neg", args=(arg,)):
            return _each(parts[arg], lambda term: operation("neg", (term,)))
        case Op(primitive="add" | "sub" as op, args=(left, right)):
            return _sum(op, parts[left], parts[right])
        case Op(primitive="mul", args=(left, right)) if free[right]:
            return _each(parts[left], lambda term: operation("mul", (term, right)))
        case Op(primitive="mul", args=(left, right)) if free[left]:
            return _each(parts[right], lambda term: operation("mul", (left, term)))
        case Op(primitive="div", args=(left, right)) if free[right]:
            return _each(parts[left], lambda term: operation("div", (term, right)))
        case Where(condition=condition, then=then, other=other) if free[condition]:
            return _choice(condition, parts[then], parts[other])
        case Reduce(op="sum" | "mean") | Expand() | Spread() | Permute() | Diagonal():
            return _through(node, parts, free)
        case (
            Window()
            | Windows()
            | Pick()
            | Take()
            | Gather()
            | Cumulative()
            | Einsum()
            | ScatterAdd()
        ):
            return _through(node, parts, free)
        case Stack(args=args):
            return _beside(args, parts)
        case Op() | Where() | ToFloat() | Literal() | RankedNode():
            return None
        case _:
            assert_never(node)


def _through(
    node: Ranked, parts: Mapping[Expr, Parts], free: Mapping[Expr, bool]
) -> Parts:
    """Linear in each operand, and one of them alone is not free."""
    bound = [part for part in node.parts if not free[part]]
    if len(bound) != 1:
        return None

    def build(term: Expr) -> Expr:
        return with_children(
            node, tuple(term if p is bound[0] else p for p in node.parts)
        )

    return _each(parts[bound[0]], build)


def _beside(args: tuple[Expr, ...], parts: Mapping[Expr, Parts]) -> Parts:
    """Each upstream gradient's own stack: 0 where another stands."""
    found = [parts[arg] for arg in args]
    known = [part for part in found if part is not None]
    if len(known) < len(found):
        return None
    upstream = dict.fromkeys(name for part in known for name in part)
    return {u: Stack(tuple(part.get(u, ZERO) for part in known)) for u in upstream}


def _each(part: Parts, build: Callable[[Expr], Expr]) -> Parts:
    return None if part is None else {name: build(term) for name, term in part.items()}


def _sum(op: str, left: Parts, right: Parts) -> Parts:
    if left is None or right is None:
        return None
    return {
        name: operation(op, (left.get(name, ZERO), right.get(name, ZERO)))
        for name in (*left, *(name for name in right if name not in left))
    }


def _choice(condition: Expr, then: Parts, other: Parts) -> Parts:
    if then is None or other is None:
        return None
    return {
        name: Where(condition, then.get(name, ZERO), other.get(name, ZERO))
        for name in (*then, *(name for name in other if name not in then))
    }
