"""Sums of exponentials: the largest exponent is factored out.

An expression is *of degree one* in its exponentials if they all scale with it:
``exp(a)``, ``sum(w * exp(a[j]) for j)``, sums of such. Then, for any ``m``, ``E(exp(a))
= exp(m) E(exp(a - m))`` over the reals; with ``m`` the largest exponent nothing
overflows and the largest term is 1. A quotient of two of them does not change at all,
and the logarithm of one is ``m`` plus a logarithm.

Where every exponent is -inf (a fully masked row) ``m`` is -inf: a softmax is NaN and a
logsumexp is -inf there, as in the frameworks' own functions.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Reduce, Select, Size, apply
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, nodes, with_children
from gradspec.stabilise.names import copied, is_same
from gradspec.stabilise.product import (
    Product,
    degree,
    is_positive,
    product,
    terms,
    total,
)

_NO_WEIGHT = apply("neg", Apply("inf"))


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
            if inner is None or not {b.index for b in bounds} & {*inner.free}:
                return inner
            return Reduce("peak", bounds, inner, where)
        case _:
            return None


def _masked(body: Expr, where: Expr | None) -> tuple[Expr, Expr | None]:
    """The body and condition of a sum; a summand ``a if c else 0`` counts where ``c``
    holds.
    """
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


def shifted(expr: Expr, by: Expr) -> Expr:
    """An expression that scales with its exponentials, with ``by`` subtracted from its
    exponents.
    """
    match expr:
        case Apply(op="exp", args=(a,)):
            less = ZERO if a == by else fold(apply("sub", a, copied(by)))
            return apply("exp", less)
    parts = (x if degree(x) == 0 else shifted(x, by) for x in children(expr))
    return with_children(expr, tuple(parts))


def balanced(expr: Expr) -> Expr | None:
    """A quotient of degree 0, over sums of exponentials, with the peak subtracted."""
    found = product(expr)
    loud = [f for f in (*found.below, *found.above) if degree(f) not in (0, None)]
    if len(loud) < 2 or degree(expr) != 0:
        return None
    peaks = (peak(factor) for factor in loud if _is_sum(factor))
    by = next((by for by in peaks if by is not None), None)
    return _inside(found) or (None if by is None else _over(found, by))


def _inside(found: Product) -> Expr | None:
    """``exp(a) * sum(b[j] / (exp(a) + exp(c[j])) for j)`` with the exponential moved
    into the sum, where it is balanced.
    """
    for whole in found.above:
        others = tuple(f for f in found.above if f is not whole)
        factor = next((f for f in others if degree(f) == 1), None)
        match whole:
            case Reduce(op="sum", bounds=bounds, body=body, where=where) if (
                factor is not None and degree(whole) == -1
            ):
                inner = product(body).times(product(copied(factor))).expr()
                new = Reduce("sum", bounds, balanced(inner) or inner, where)
                rest = tuple(f for f in others if f is not factor)
                return replace(found, above=(*rest, new)).expr()
    return None


def _is_sum(expr: Expr) -> bool:
    return degree(expr) == 1 and any(
        isinstance(n, Reduce) or (isinstance(n, Apply) and n.op == "add")
        for n in nodes(expr)
    )


def _over(found: Product, by: Expr) -> Expr:
    above, below = (
        tuple(f if degree(f) == 0 else shifted(f, by) for f in side)
        for side in (found.above, found.below)
    )
    return replace(found, above=above, below=below).expr()


def logarithm(expr: Expr) -> Expr | None:
    """``log`` of exponentials and their sums, without computing the exponentials
    themselves.
    """
    match expr:
        case Apply(op="log", args=(a,)):
            whole = _split(product(a))
            return _shifted_log(a) if whole is None else _plus_log(*whole)
        case _:
            return None


def _split(found: Product) -> tuple[Product, Expr] | None:
    """A product as ``rest * exp(value)``; None if there is no exponential in it."""
    logs = {f: _log(f) for f in (*found.above, *found.below)}
    sides = ((False, found.above), (True, found.below))
    parts = [
        term
        for is_below, side in sides
        for factor in side
        if (value := logs[factor]) is not None
        for term in terms(value, is_below)
    ]
    if not parts:
        return None
    above, below = (tuple(f for f in side if logs[f] is None) for _, side in sides)
    return replace(found, above=above, below=below), _difference(parts)


def _difference(parts: list[tuple[bool, Expr]]) -> Expr:
    """The sum of terms, differences flattened; terms that are added and subtracted
    cancel.
    """
    plus = [t for is_minus, t in parts if not is_minus]
    left = []
    for term in (t for is_minus, t in parts if is_minus):
        gain = next((g for g in plus if is_same(g, term)), None)
        if gain is None:
            left.append(term)
        else:
            plus.remove(gain)
    return total([*((False, t) for t in plus), *((True, t) for t in left)])


def _plus_log(rest: Product, value: Expr) -> Expr:
    """``value + log(rest)``, a size or a number in the denominator as a difference."""
    minus = rest.inverse()
    is_below = minus.number >= 1 and all(isinstance(f, Size) for f in minus.above)
    if is_below and not minus.below and minus.expr() != ONE:
        return apply("sub", value, apply("log", minus.expr()))
    whole = rest.expr()
    return value if whole == ONE else apply("add", value, apply("log", whole))


def _log(expr: Expr) -> Expr | None:
    """The logarithm of an exponential or of a sum of them; None otherwise."""
    match expr:
        case Apply(op="exp", args=(a,)):
            return a
        case Reduce(op="sum", bounds=bounds, body=body, where=where):
            split = _split(product(body))
            if split is not None and split[0].expr() == ONE:
                return _logsumexp(Reduce("logsumexp", bounds, split[1], where))
    return _shifted_log(expr) if is_positive(expr, True) else None


def _shifted_log(expr: Expr) -> Expr | None:
    by = peak(expr) if _is_sum(expr) else None
    if by is None:
        return None
    return apply("add", by, apply("log", shifted(expr, by)))


def _logsumexp(expr: Reduce) -> Expr:
    """A logsumexp; factors independent of the summed indices are moved outside."""
    indices = {b.index for b in expr.bounds}
    parts = terms(expr.body)
    inner = [part for part in parts if not indices.isdisjoint(part[1].free)]
    outer = [part for part in parts if part not in inner]
    if not inner or not outer:
        return expr
    core = Reduce(expr.op, expr.bounds, _difference(inner), expr.where)
    return _difference([(False, core), *outer])
