"""Sizes of axes as tensors, for a target whose graphs may not know them statically.

A size in floating arithmetic is cast; one that gives the length of an axis, or is
compared with positions, stays an integer. Values computed from sizes alone are tensors
too.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import Kind
from gradspec.plan.arrays import (
    Arange,
    Expr,
    Gather,
    Op,
    Pick,
    RankedNode,
    ScatterAdd,
    Spread,
    Take,
    ToFloat,
    Window,
    Windows,
    children,
    is_whole,
    names,
    nodes,
    with_children,
)
from gradspec.plan.plan import Assign, Gradient, RulePlan, Term
from gradspec.primitives.lookup import primitive


def whole_names(plan: RulePlan) -> frozenset[str]:
    """The names that hold integers."""
    kinds = (Kind.INT, Kind.STATIC_INT)
    given = (i.name for i in plan.inputs if i.kind in kinds)
    return frozenset([*given, *(size.name for size in plan.sizes)])


def with_sizes(plan: RulePlan) -> RulePlan:
    """The plan with sizes cast in floating arithmetic."""
    if not plan.is_ranked:
        return plan
    whole, numbers = whole_names(plan), frozenset(i.name for i in plan.statics)

    def cast(expr: Expr) -> Expr:
        return _cast(expr, whole, numbers)

    def lets(assigns: tuple[Assign, ...]) -> tuple[Assign, ...]:
        return tuple(replace(a, value=cast(a.value)) for a in assigns)

    def term(old: Term) -> Term:
        return replace(old, value=cast(old.value))

    def gradient(old: Gradient) -> Gradient:
        return replace(
            old,
            whole=cast(old.whole),
            terms=tuple(map(term, old.terms)),
            locals=tuple(local and cast(local) for local in old.locals),
        )

    return replace(
        plan,
        constants=lets(plan.constants),
        forward=lets(plan.forward),
        backward_locals=lets(plan.backward_locals),
        gradients=tuple(g and gradient(g) for g in plan.gradients),
        surrogates=lets(plan.surrogates),
    )


def _cast(expr: Expr, whole: frozenset[str], numbers: frozenset[str]) -> Expr:
    done: dict[Expr, Expr] = {}

    def floating(part: Expr) -> Expr:
        """An integer value cast to floating as a whole, unless it is a number."""
        is_plain = set(names(part)) <= numbers and not isinstance(part, RankedNode)
        return done[part] if is_plain or not is_whole(part, whole) else ToFloat(part)

    for node in nodes(expr):
        parts = children(node)
        if _takes_integers(node, whole):
            made = tuple(done[part] for part in parts)
        else:
            kept = [part for part in _measures(node) if is_whole(part, whole)]
            made = tuple(part if part in kept else floating(part) for part in parts)
        done[node] = with_children(node, made)
    return floating(expr)


def _takes_integers(node: Expr, whole: frozenset[str]) -> bool:
    """True if the node's own operation is on integers, or converts them to floating."""
    match node:
        case ToFloat():
            return True
        case Op(primitive=op, args=args) if primitive(op).result == "bool":
            return all(is_whole(arg, whole) for arg in args)
        case _:
            return is_whole(node, whole)


def _measures(node: Expr) -> tuple[Expr, ...]:
    """The parts that are integers: lengths of axes, positions."""
    match node:
        case Spread(size=size) | Arange(size=size):
            return (size,)
        case ScatterAdd(index=index, size=size):
            return (index, size)
        case Take(index=index) | Gather(index=index):
            return (index,)
        case Window(start=start, size=size):
            return (start, size)
        case Windows(start=start, rows=rows, columns=columns):
            return (start, rows, columns)
        case Pick(at=at):
            return (at,)
        case _:
            return ()
