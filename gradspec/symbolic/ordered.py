"""Sums of three numbers of known signs in the order that keeps their digits.

``p + q - r`` of numbers that are not negative is ``(p - r) + q`` where ``p`` is the larger of
the two: where anything cancels, ``p`` and ``r`` are within a factor of two of each other,
and their difference is exact (Sterbenz). In any fixed order one of the three may be lost:
``b + c - a`` of a triangle's sides. The difference of two squares is that of their roots
times their sum: ``(a - c) * (a + c) + b**2``, not ``a**2 + b**2 - c**2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from gradspec.ir.expr import Apply, Expr, Select
from gradspec.ir.tidy import fold

COUNT = 3


@dataclass(frozen=True, slots=True)
class Term:
    """``form`` is not negative; ``root`` is what it is the square of, if it is one."""

    is_minus: bool
    form: Expr
    root: Expr | None = None


def in_order(terms: Sequence[Term]) -> Expr | None:
    """Their sum, the larger of the two of like sign first; None if all are of one sign
    or they are not three."""
    taken = [term for term in terms if term.is_minus]
    given = [term for term in terms if not term.is_minus]
    if len(terms) != COUNT or not taken or not given:
        return None
    is_minus = len(taken) > 1
    (p, q), (one,) = (taken, given) if is_minus else (given, taken)
    is_first = Apply("gt", (p.form, q.form))
    form = Select(is_first, _sum(p, one, q), _sum(q, one, p))
    return fold(Apply("neg", (form,))) if is_minus else form


def _sum(large: Term, taken: Term, small: Term) -> Expr:
    p, r = large.root, taken.root
    rest: Expr = Apply("sub", (large.form, taken.form))
    if p is not None and r is not None:
        rest = Apply("mul", (Apply("sub", (p, r)), Apply("add", (p, r))))
    return Apply("add", (rest, small.form))


def root_of(number: Fraction) -> Fraction | None:
    """Of a square."""
    above, below = isqrt(number.numerator), isqrt(number.denominator)
    root = Fraction(above, below)
    return root if root * root == number else None


def place(exponents: tuple[int, ...]) -> tuple[int, list[int]]:
    """Of a product among others: low degrees first, then those of the first factors."""
    return sum(exponents), [-e for e in exponents]


def total(parts: Sequence[tuple[bool, Expr]]) -> Expr:
    """The sum of parts, of which some are taken off: those last."""
    (is_minus, form), *rest = sorted(parts, key=lambda part: part[0])
    found = fold(Apply("neg", (form,))) if is_minus else form
    for is_taken, part in rest:
        found = Apply("sub" if is_taken else "add", (found, part))
    return found
