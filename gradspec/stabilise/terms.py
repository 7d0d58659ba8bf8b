"""A sum taken apart: its terms as products."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import reduce

from gradspec.derive.build import plus
from gradspec.ir.expr import ZERO, Apply, Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, size, with_children
from gradspec.stabilise.product import Product, product
from gradspec.symbolic.gather import gathered


def terms_of(expr: Expr, sign: Fraction = Fraction(1)) -> Iterator[Product]:
    """The terms of a sum, in order; of anything else, itself."""
    match expr:
        case Apply(op="add" | "sub" as op, args=(a, b)):
            yield from terms_of(a, sign)
            yield from terms_of(b, sign if op == "add" else -sign)
        case Apply(op="neg", args=(a,)):
            yield from terms_of(a, -sign)
        case _:
            yield Product(sign).times(product(expr))


def in_sums(expr: Expr, other: Callable[[Expr], Expr | None]) -> Expr:
    """``expr`` with the outermost sums of which ``other`` has another form in that."""
    if isinstance(expr, Apply) and expr.op in ("add", "sub"):
        found = other(expr)
        if found is not None:
            return found
    parts = tuple(in_sums(child, other) for child in children(expr))
    return with_children(expr, parts) if parts else expr


def without(term: Product, factor: Expr) -> Product:
    """A term without a factor above the line, whatever its power."""
    above = tuple(f for f in term.above if f != factor)
    return Product(term.number, term.sizes, above, term.below)


def total(terms: Iterable[Product]) -> Expr:
    """Their sum."""
    nothing: Expr = ZERO
    return reduce(plus, (tidy(term.expr()) for term in terms), nothing)


def joined(p: Expr, q: Expr) -> Expr:
    """``p + q``, factored where it is short: ``(a - b)**2``."""
    whole = plus(p, q)
    form = gathered(whole)
    return whole if form is None or size(form) >= size(whole) else form
