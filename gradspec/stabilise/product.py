"""Factors of products, terms of sums, squares, degrees, and signs known without data.

A product is a number, numerators and denominators.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import prod

from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Reduce,
    Select,
    Size,
    apply,
)
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children

_MOST = 4  # the largest exponent that is written out as factors


@dataclass(frozen=True, slots=True)
class Product:
    """``number * Π above / Π below``."""

    number: Fraction = Fraction(1)
    above: tuple[Expr, ...] = ()
    below: tuple[Expr, ...] = ()

    def times(self, other: Product) -> Product:
        above, below = self.above + other.above, self.below + other.below
        return Product(self.number * other.number, above, below)

    def inverse(self) -> Product:
        return Product(1 / self.number, self.below, self.above)

    def reduced(self) -> Product:
        """The number alone, without numerators and denominators."""
        above, below = list(self.above), list(self.below)
        for factor in self.above:
            if factor in below:
                above.remove(factor)
                below.remove(factor)
        return Product(self.number, tuple(above), tuple(below))

    def expr(self) -> Expr:
        """The product as an expression: numbers first, one fraction."""
        number, value, below = self.number, multiplied(self.above), list(self.below)
        if number.numerator != 1 and (abs(number.numerator) != 1 or not self.above):
            first = Const(Fraction(number.numerator))
            value = first if value == ONE else Apply("mul", (first, value))
        elif number < 0:
            value = Apply("neg", (value,))
        if number.denominator != 1:
            below.insert(0, Const(Fraction(number.denominator)))
        return value if not below else Apply("div", (value, multiplied(below)))


def multiplied(factors: list[Expr] | tuple[Expr, ...]) -> Expr:
    """The product of the factors in order; 1 if there are none."""
    return reduce(lambda a, b: Apply("mul", (a, b)), factors) if factors else ONE


def product(expr: Expr) -> Product:
    """The factors of ``expr`` (a single factor if it is no product)."""
    match expr:
        case Const(value=value) if value:
            return Product(value)
        case Apply(op="neg", args=(a,)):
            return Product(Fraction(-1)).times(product(a))
        case Apply(op="mul", args=(Select(), Apply(op="sqrt"))):
            return Product(above=(expr,))  # a norm times its scale is one thing
        case Apply(op="mul", args=(a, b)):
            return product(a).times(product(b))
        case Apply(op="div", args=(a, b)) if b != Const(Fraction(0)):
            return product(a).times(product(b).inverse())
        case Apply(op="square", args=(a,)):
            return product(a).times(product(a))
        case Apply(op="pow", args=(a, Const(value=n))) if _is_small(n):
            return _power(product(a), int(n))
        case Reduce(op="mean", bounds=bounds, body=body, where=None) if _some(bounds):
            total = Reduce("sum", bounds, body, span=expr.span)
            return Product(above=(total,)).times(extent(bounds).inverse())
        case _:
            return Product(above=(expr,))


def _is_small(exponent: Fraction) -> bool:
    return exponent.denominator == 1 and 0 < abs(exponent) <= _MOST


def _power(base: Product, exponent: int) -> Product:
    value = reduce(Product.times, [base] * abs(exponent))
    return value if exponent > 0 else value.inverse()


def extent(bounds: tuple[Bound, ...]) -> Product:
    """The number of elements that a reduction ranges over (without a condition)."""
    axes = [bound.axis for bound in bounds]
    number = prod(axis for axis in axes if isinstance(axis, int))
    return Product(Fraction(number), tuple(Size(a) for a in axes if isinstance(a, str)))


def _some(bounds: tuple[Bound, ...]) -> bool:
    """True if no axis has the fixed size 0."""
    return all(bound.axis != 0 for bound in bounds)


def terms(expr: Expr, is_minus: bool = False) -> list[tuple[bool, Expr]]:
    """The terms of a sum, each with True if it is subtracted."""
    match expr:
        case Apply(op="add", args=(a, b)):
            return [*terms(a, is_minus), *terms(b, is_minus)]
        case Apply(op="sub", args=(a, b)):
            return [*terms(a, is_minus), *terms(b, not is_minus)]
        case Apply(op="neg", args=(a,)):
            return terms(a, not is_minus)
        case _:
            return [(is_minus, expr)]


def total(parts: list[tuple[bool, Expr]]) -> Expr:
    """The sum of terms, positive ones first; 0 if there are none."""
    value: Expr | None = None
    for is_minus, term in sorted(parts, key=lambda part: part[0]):
        if value is None:
            value = apply("neg", term) if is_minus else term
        else:
            value = apply("sub" if is_minus else "add", value, term)
    return ZERO if value is None else fold(value)


def base_of_square(expr: Expr) -> Expr | None:
    """``a`` if ``expr`` is ``a * a``."""
    match expr:
        case Apply(op="square", args=(a,)) | Apply(op="pow", args=(a, Const(value=2))):
            return a
        case Apply(op="mul", args=(a, b)) if a == b:
            return a
        case _:
            return None


def is_positive(expr: Expr, or_zero: bool = False) -> bool:
    """True if an expression is plainly positive (or not negative) for all data."""
    match expr:
        case Const(value=value):
            return value > 0 or (value == 0 and or_zero)
        case Size() | Apply(op="exp" | "sigmoid" | "softplus"):
            return True
        case Apply(op="square" | "abs") | Apply(op="pow", args=(_, Const(value=2))):
            return or_zero
        case Apply(op="sqrt", args=(a,)):
            return is_positive(a, or_zero)
        case Apply(op="max", args=parts):
            return any(is_positive(part, or_zero) for part in parts)
        case Apply(op="mul" | "div", args=(a, b)):
            return is_positive(a, or_zero) and is_positive(b, or_zero)
        case Apply(op="add", args=(a, b)):
            both = is_positive(a, True) and is_positive(b, True)
            return both and (or_zero or is_positive(a) or is_positive(b))
        case Reduce(op="sum" | "mean", body=body):  # an empty one is 0
            return or_zero and is_positive(body, True)
        case _:
            return False


@lru_cache(maxsize=8192)
def degree(expr: Expr, of: Expr | str = "exp") -> int | None:
    """The degree in which an expression is homogeneous in a node, or in the calls of a
    primitive: the expression scales with them. None if it is not homogeneous.
    """
    match expr:
        case _ if expr == of or (isinstance(expr, Apply) and expr.op == of):
            return 1
        case Apply(op="neg", args=(a,)):
            return degree(a, of)
        case Apply(op="mul" | "div" as op, args=(a, b)):
            one, other = degree(a, of), degree(b, of)
            if one is None or other is None:
                return None
            return one + other if op == "mul" else one - other
        case Apply(op="square", args=(a,)):
            return None if (one := degree(a, of)) is None else 2 * one
        case Apply(op="pow", args=(a, Const(value=n))) if n.denominator == 1:
            return None if (one := degree(a, of)) is None else int(n) * one
        case Apply(op="add" | "sub", args=(a, b)):
            return _common(a, b, of)
        case Select(condition=test, then=a, other=b) if degree(test, of) == 0:
            return _common(a, b, of)
        case Reduce(op="sum" | "mean", body=body, where=where) if (
            where is None or degree(where, of) == 0
        ):
            return degree(body, of)
        case _:
            return 0 if all(degree(part, of) == 0 for part in children(expr)) else None


def _common(left: Expr, right: Expr, of: Expr | str) -> int | None:
    if ZERO in (left, right):
        return degree(right if left == ZERO else left, of)
    one, other = degree(left, of), degree(right, of)
    return one if one == other else None
