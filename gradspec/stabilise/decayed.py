"""Sums with ``expm1(u)`` where that is nearly -1.

``p + q * expm1(u)`` is ``(p - q) + q * exp(u)``. Far below ``u = 0`` no digit of ``exp(u)`` is
left in the first, and that is all there is where ``p = q``: ``1 + y * expm1(x)`` at ``y =
1``. Elsewhere the first is the better one: ``exp(u)`` hardly differs from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gradspec.derive.build import plus, scale, times
from gradspec.ir.expr import ONE, Apply, Const, Expr, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, nodes, size, with_children
from gradspec.stabilise.terms import joined, terms_of, total, without

_LARGEST = 200
_BELOW = Const(Fraction(-1))
"""Where ``exp(u)`` has lost no digit beside 1, and ``expm1(u)`` one at most."""

_HALF = Const(Fraction(-1, 2))
"""Above it the logarithm is small, and its argument too near 1."""


def decayed(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such sums in their other form where ``u`` is below -1."""
    if any(map(_is_expm1, nodes(closed))) and size(closed) <= _LARGEST:
        form = _of(closed)
        if form != closed:
            yield tidy(form)


def _is_expm1(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op == "expm1"


def _of(expr: Expr) -> Expr:
    match expr:
        case Apply(op="add" | "sub"):
            found = _other(expr)
            if found is not None:
                return Select(_is_below(found[0]), found[1], expr)
        case Apply(op="log1p", args=(part,)):
            found = _other(plus(ONE, part))
            if found is not None:
                small = Apply("lt", (part, _HALF))
                where = Apply("and", (_is_below(found[0]), small))
                return Select(where, Apply("log", (found[1],)), expr)
    parts = tuple(map(_of, children(expr)))
    return with_children(expr, parts) if parts else expr


def _is_below(u: Expr) -> Expr:
    return Apply("lt", (u, _BELOW))


def _other(expr: Expr) -> tuple[Expr, Expr] | None:
    """``u``, and the sum with ``exp(u)``."""
    terms = [*terms_of(expr)]
    for decay in dict.fromkeys(f for t in terms for f in t.above if _is_expm1(f)):
        with_it = [t for t in terms if decay in t.above]
        p = total([t for t in terms if decay not in t.above])
        q = total([without(t, decay) for t in with_it])
        is_linear = all(t.above.count(decay) == 1 for t in with_it)
        is_once = is_linear and decay not in {*nodes(p), *nodes(q)}
        if is_once and len(terms) > len(with_it):
            (u,) = decay.below
            grown = times(q, Apply("exp", (u,)))
            return u, plus(joined(p, scale(Fraction(-1), q)), grown)
    return None
