"""Sums with ``exp(u)`` where that is nearly 1.

``p + q * exp(u)`` is ``(p + q) + q * expm1(u)``. Where ``u`` is tiny no digit of it is left in
the first, in float64 either, and that is all there is where ``p = -q``: ``w - x / exp(w)`` at
``w = x``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gradspec.derive.build import negate, plus, times
from gradspec.ir.expr import Apply, Const, Expr, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, nodes, size
from gradspec.stabilise.product import Product
from gradspec.stabilise.terms import in_sums, joined, terms_of, total

_LARGEST = 200
_NEAR = Const(Fraction(1, 2))
"""Up to here in size ``expm1(u)`` is smaller than 1."""


def near_one(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such sums in their other form where ``u`` is small."""
    if any(map(_is_exp, nodes(closed))) and size(closed) <= _LARGEST:
        form = in_sums(closed, _other)
        if form != closed:
            yield tidy(form)


def _is_exp(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op == "exp"


def _other(expr: Expr) -> Expr | None:
    """The sum with ``expm1(u)`` where ``u`` is small, of a sum of which one term has
    ``exp(u)`` or is divided by ``exp(-u)``."""
    terms = [*terms_of(expr)]
    found = [(t, *part) for t in terms if (part := _parted(t)) is not None]
    if len(found) != 1 or len(terms) < 2:
        return None
    term, exponent, u, factor = found[0]
    p, q = total(t for t in terms if t is not term), total([factor])
    if any(map(_is_exp, (*nodes(p), *nodes(q)))):
        return None
    form = plus(joined(p, q), times(q, Apply("expm1", (u,))))
    return Select(Apply("lt", (Apply("abs", (exponent,)), _NEAR)), form, expr)


def _parted(term: Product) -> tuple[Expr, Expr, Product] | None:
    """The exponent, ``u``, and what ``exp(u)`` is multiplied by."""
    above = [f for f in term.above if _is_exp(f)]
    below = [f for f in term.below if _is_exp(f)]
    if len(above) + len(below) != 1:
        return None
    kept = (tuple(f for f in fs if not _is_exp(f)) for fs in (term.above, term.below))
    factor = Product(term.number, term.sizes, *kept)
    (exponent,) = children((above + below)[0])
    return exponent, exponent if above else negate(exponent), factor
