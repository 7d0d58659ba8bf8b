"""Sums with ``sin(u)``, or what else is nearly ``u``, where ``u`` is small.

``p + q * sin(u)`` is ``(p + q * u) + q * (sin(u) - u)``. Where ``u`` is tiny ``sin(u)`` has rounded to
``u``, in float64 too, and what it differs by is all there is where ``p = -q * u``: ``d -
sin(a)`` at ``d = a``. That difference has a series.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from gradspec.derive.build import plus, times
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, names, nodes, size
from gradspec.stabilise.inner import INNER, put_back
from gradspec.stabilise.product import Product
from gradspec.stabilise.series import points_of, series_about
from gradspec.stabilise.terms import in_sums, joined, terms_of, total

_LARGEST = 200
_WINDOW = Fraction(1, 4)
_FUNCTIONS = ("sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "atanh")


def near_nought(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such sums in their other form where ``u`` is small."""
    if size(closed) <= _LARGEST and any(map(_is_odd, nodes(closed))):
        form = in_sums(closed, _other)
        if form != closed:
            yield tidy(form)


def _is_odd(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op in _FUNCTIONS


def _other(expr: Expr) -> Expr | None:
    """The sum with the difference from ``u``, of a sum one of whose terms has such a
    function as a factor and whose others vary."""
    terms = [*terms_of(expr)]
    found = [(t, *part) for t in terms if (part := _parted(t)) is not None]
    if len(found) != 1 or len(terms) < 2:
        return None
    term, function, factor = found[0]
    p, q = total(t for t in terms if t is not term), total([factor])
    if not names(p):
        return None
    (u,) = children(function)
    difference = _difference(function.op)
    if difference is None:
        return None
    near = times(q, put_back(difference, u))
    form = plus(joined(p, times(q, u)), near)
    inside = Apply("lt", (Apply("abs", (u,)), Const(_WINDOW)))
    return Select(inside, form, expr)


def _parted(term: Product) -> tuple[Apply, Product] | None:
    """The function and what it is multiplied by."""
    found = [f for f in term.above if _is_odd(f)]
    if len(found) != 1:
        return None
    (function,) = found
    assert isinstance(function, Apply)
    above = tuple(f for f in term.above if f is not function)
    return function, Product(term.number, term.sizes, above, term.below)


@lru_cache(maxsize=16)
def _difference(op: str) -> Expr | None:
    """``f(u) - u`` by its series."""
    inner: Expr = Ref(INNER)
    value = Apply("sub", (Apply(op, (inner,)), inner))
    (point,) = (p for p in points_of(value, INNER) if p.near == 0)
    found = series_about(value, INNER, point, _WINDOW)
    return None if found is None else found[1]
