"""Sums with a difference of squares among more terms, in float64, too.

``1 - (1 + t) / f**2`` is ``((f - 1) * (f + 1) - t) / f**2``. Where ``f`` is nearly 1 what is left
of ``f**2 - 1`` has lost its digits, and ``f - 1`` has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import isqrt

from gradspec.derive.build import negate, plus, times
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes, size
from gradspec.stabilise.product import Product
from gradspec.stabilise.terms import in_sums, terms_of, total

_LARGEST = 100
_TERMS = range(3, 7)


def with_squares_apart(closed: Expr) -> Iterator[Expr]:
    """``closed`` with such sums in their other form."""
    if size(closed) <= _LARGEST and any(map(_is_square, nodes(closed))):
        form = in_sums(closed, _apart)
        if form != closed:
            yield tidy(form)


def _is_square(node: Expr) -> bool:
    match node:
        case Apply(op="square"):
            return True
        case Apply(op="mul", args=(a, b)):
            return a == b
        case _:
            return False


def _apart(expr: Expr) -> Expr | None:
    """A sum, or a number and a quotient, with a difference of squares taken out."""
    above, below = _quotient(expr)
    terms = [*terms_of(above)]
    if len(terms) not in _TERMS:
        return None
    for one, other in permutations(terms, 2):
        a, b = _root(one), _root(Product(-other.number, other.sizes, other.above))
        if a is None or b is None or other.below or isinstance(a, Const):
            continue
        rest = total(t for t in terms if t is not one and t is not other)
        whole = plus(times(plus(a, negate(b)), plus(a, b)), rest)
        return whole if below is None else Apply("div", (whole, below))
    return None


def _quotient(expr: Expr) -> tuple[Expr, Expr | None]:
    """What is above one line, and what is below it."""
    match expr:
        case Apply(op="sub", args=(Const() as number, Apply(op="div", args=(a, b)))):
            return plus(times(number, b), negate(a)), b
        case _:
            return expr, None


def _root(term: Product) -> Expr | None:
    """That of which a term is the square, if it is one that can be told."""
    if term.number <= 0 or term.sizes or term.below:
        return None
    number = _root_of(term.number)
    match term.above:
        case _ if number is None:
            return None
        case ():
            return Const(number)
        case (Apply(op="square", args=(a,)),):
            return times(Const(number), a)
        case (a, b) if a == b:
            return times(Const(number), a)
        case _:
            return None


def _root_of(number: Fraction) -> Fraction | None:
    root = Fraction(isqrt(number.numerator), isqrt(number.denominator))
    return root if root * root == number else None
