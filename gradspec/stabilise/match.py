"""Patterns: which part of an expression has the form on a row's left side.

A pattern is an expression whose references are variables that stand for anything (the
same for each occurrence). Sums and products match in either order, and ``square(p)``
matches ``p * p`` too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from gradspec.derive.build import negate, times
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold
from gradspec.ir.walk import nodes

Binding: TypeAlias = Mapping[str, Expr]

_COMMUTATIVE = frozenset(["add", "mul", "min", "max", "hypot", "logaddexp"])


_ODD = frozenset(["xlogy", "xlog1py", "tanh", "erf", "sinh"])
"""Odd in the first argument: a minus comes out."""

_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}


def match(pattern: Expr, expr: Expr) -> Binding | None:
    """What the variables stand for; None if the form is another one."""
    return next(_matches(pattern, expr, {}), None)


def _matches(pattern: Expr, expr: Expr, bound: Binding) -> Iterator[Binding]:
    match (pattern, expr):
        case (Ref(name=name), _):
            known = bound.get(name)
            if known is None:
                yield {**bound, name: expr}
            elif known == expr:
                yield bound
        case (Apply(op="neg", args=(Ref(name=name),)), _) if (
            name in bound and negate(bound[name]) == expr
        ):
            yield bound  # the minus has gone into a constant: -2 * x for -(2 * x)
        case (Const(value=a), Const(value=b)):
            if a == b:
                yield bound
        case (Apply(op="square", args=(inner,)), Apply(op="mul", args=(a, b))):
            if a == b:
                yield from _matches(inner, a, bound)
        case (Apply(op=op, args=args), Apply(op=other, args=parts)) if op == other:
            yield from _all(args, parts, bound)
            if op in _COMMUTATIVE:
                yield from _all(args, parts[::-1], bound)


def _all(
    patterns: tuple[Expr, ...], exprs: tuple[Expr, ...], bound: Binding
) -> Iterator[Binding]:
    if not patterns:
        yield bound
        return
    for found in _matches(patterns[0], exprs[0], bound):
        yield from _all(patterns[1:], exprs[1:], found)


def instantiate(pattern: Expr, bound: Binding) -> Expr:
    """The pattern with its variables put in, signs and constants merged."""
    done: dict[Expr, Expr] = {}
    for node in nodes(pattern):
        match node:
            case Ref(name=name):
                done[node] = bound[name]
            case Apply(op="mul", args=(a, b)):
                done[node] = times(done[a], done[b])
            case Apply(op="neg", args=(a,)):
                done[node] = _opposite(done[a])
            case Apply(op=op, args=(a, *rest)) if op in _ODD and _is_minus(done[a]):
                inner = Apply(op, (negate(done[a]), *(done[arg] for arg in rest)))
                done[node] = negate(inner)
            case Apply(op="div", args=(a, b)) if _is_minus(done[b]):
                done[node] = negate(fold(Apply("div", (done[a], negate(done[b])))))
            case Apply(op=op, args=(a, b)) if op in _MIRRORED:
                done[node] = _comparison(op, done[a], done[b])
            case Apply(op=op, args=args):
                done[node] = fold(Apply(op, tuple(done[arg] for arg in args)))
            case Select(condition=c, then=t, other=o):
                done[node] = fold(Select(done[c], done[t], done[o]))
            case _:
                done[node] = node
    return done[pattern]


def _is_minus(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op == "neg"


def _comparison(op: str, left: Expr, right: Expr) -> Expr:
    """``-a > -b`` is ``a < b``."""
    if _is_minus(left) and _is_minus(right):
        return Apply(_MIRRORED[op], (negate(left), negate(right)))
    return fold(Apply(op, (left, right)))


def _opposite(expr: Expr) -> Expr:
    """``-expr``; of a difference the other difference."""
    match expr:
        case Apply(op="sub", args=(a, b)):
            return Apply("sub", (b, a))
        case _:
            return negate(expr)
