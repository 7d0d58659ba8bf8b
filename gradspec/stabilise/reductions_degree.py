"""Sums of exponentials: what they weigh is taken out of the exponents.

An expression is *of degree one* in its exponentials if they all scale with it: ``exp(a)``,
``sum(w * exp(a[j]) for j)``, sums of such. Then, for any ``m``, ``E(exp(a)) = exp(m)
E(exp(a - m))`` over the reals; with ``m`` the largest exponent nothing overflows and the
largest term is 1. A quotient of two of them does not change at all.

Where every exponent is -inf (a row that is masked altogether) ``m`` is -inf: a softmax
is NaN and a logsumexp is -inf there, which is what the frameworks' own give.
"""

from __future__ import annotations

from functools import lru_cache

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Reduce, Select, apply
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, nodes, with_children
from gradspec.stabilise.scopes import Scope, free, place

_NO_WEIGHT = apply("neg", Apply("inf"))


@lru_cache(maxsize=4096)
def degree(expr: Expr) -> int | None:
    """In its exponentials; None if they do not all scale alike."""
    match expr:
        case Apply(op="exp"):
            return 1
        case Apply(op="mul", args=(a, b)):
            return _total(degree(a), degree(b), 1)
        case Apply(op="div", args=(a, b)):
            return _total(degree(a), degree(b), -1)
        case Apply(op="neg", args=(a,)):
            return degree(a)
        case Apply(op="square", args=(a,)):
            return _total(degree(a), degree(a), 1)
        case Apply(op="pow", args=(a, Const(value=n))) if n.denominator == 1:
            one = degree(a)
            return None if one is None else one * int(n)
        case Apply(op="add" | "sub", args=(a, b)):
            return _common(a, b)
        case Select(condition=condition, then=a, other=b) if not has_exp(condition):
            return _common(a, b)
        case Reduce(op="sum" | "mean", body=body, where=where) if (
            where is None or not has_exp(where)
        ):
            return degree(body)
        case _:
            return None if _is_bare(expr) else 0


def _total(left: int | None, right: int | None, sign: int) -> int | None:
    return None if left is None or right is None else left + sign * right


def _common(left: Expr, right: Expr) -> int | None:
    if ZERO in (left, right):
        return degree(right if left == ZERO else left)
    one, other = degree(left), degree(right)
    return one if one == other else None


def has_exp(expr: Expr) -> bool:
    return any(isinstance(n, Apply) and n.op == "exp" for n in nodes(expr))


def _is_bare(expr: Expr) -> bool:
    """Whether what is no product or sum hides exponentials that do not cancel."""
    return any(degree(child) != 0 for child in children(expr))


def peak(expr: Expr) -> Expr | None:
    """The largest exponent in an expression of degree one."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return a
        case Apply(op="mul", args=(a, b)):
            return peak(a) if degree(b) == 0 else peak(b) if degree(a) == 0 else None
        case Apply(op="div", args=(a, b)):
            return peak(a) if degree(b) == 0 else None
        case Apply(op="neg", args=(a,)):
            return peak(a)
        case Apply(op="add" | "sub", args=(a, b)):
            return _larger(peak(a), peak(b))
        case Select(condition=condition, then=a, other=b):
            one, other = (_NO_WEIGHT if x == ZERO else peak(x) for x in (a, b))
            if one is None or other is None:
                return None
            return Select(condition, one, other)
        case Reduce(op="sum" | "mean", bounds=bounds, body=body, where=where):
            body, where = _masked(body, where)
            inner = peak(body)
            if inner is None or not free(inner) & {b.index for b in bounds}:
                return inner
            return Reduce("peak", bounds, inner, where)
        case _:
            return None


def _masked(body: Expr, where: Expr | None) -> tuple[Expr, Expr | None]:
    """A summand ``a if c else 0`` counts where ``c`` holds."""
    match body:
        case Select(condition=condition, then=a, other=other) if other == ZERO:
            both = condition if where is None else apply("and", where, condition)
            return a, both
        case _:
            return body, where


def _larger(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return None
    return left if left == right else apply("max", left, right)


def shifted(expr: Expr, by: Expr, scope: Scope) -> Expr:
    """An expression that scales with its exponentials, with ``by`` taken off its exponents."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return apply("exp", _less(a, place(by, {}, scope)))
        case Apply(op="mul" | "div" | "pow", args=(a, b)):
            parts = tuple(
                x if degree(x) == 0 else shifted(x, by, scope) for x in (a, b)
            )
            return with_children(expr, parts)
        case Select(condition=condition, then=a, other=b):
            parts = tuple(x if x == ZERO else shifted(x, by, scope) for x in (a, b))
            return with_children(expr, (condition, *parts))
        case Reduce(bounds=bounds, body=body, where=where):
            under = scope.union(b.index for b in bounds)
            new = shifted(body, by, under)
            return with_children(expr, (new,) if where is None else (new, where))
        case _:
            parts = tuple(shifted(child, by, scope) for child in children(expr))
            return with_children(expr, parts)


def _less(left: Expr, right: Expr) -> Expr:
    return ZERO if left == right else fold(apply("sub", left, right))
