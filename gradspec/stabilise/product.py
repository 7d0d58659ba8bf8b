"""A product taken apart: a number, powers of sizes, what is above and below the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gradspec.ir.expr import ONE, Apply, Bound, Const, Expr, Reduce, Select, Size

_MOST = 4  # the largest exponent that is written out as factors


@dataclass(frozen=True, slots=True)
class Product:
    """``number * Π axis**power * Π above / Π below``."""

    number: Fraction = Fraction(1)
    sizes: Mapping[str, int] = field(default_factory=dict)
    above: tuple[Expr, ...] = ()
    below: tuple[Expr, ...] = ()

    def times(self, other: Product) -> Product:
        return Product(
            self.number * other.number,
            _added(self.sizes, other.sizes),
            self.above + other.above,
            self.below + other.below,
        )

    def inverse(self) -> Product:
        sizes = {axis: -power for axis, power in self.sizes.items()}
        return Product(1 / self.number, sizes, self.below, self.above)

    def expr(self) -> Expr:
        """As an expression: numbers first, one line."""
        sizes = self.sizes.items()
        above = [*self.above, *(Size(a) for a, p in sizes for _ in range(max(p, 0)))]
        below = [*self.below, *(Size(a) for a, p in sizes for _ in range(max(-p, 0)))]
        value = multiplied(above)
        if self.number.numerator != 1 and (
            abs(self.number.numerator) != 1 or not above
        ):
            number = Const(Fraction(self.number.numerator))
            value = number if value == ONE else Apply("mul", (number, value))
        elif self.number < 0:
            value = Apply("neg", (value,))
        if self.number.denominator != 1:
            below.insert(0, Const(Fraction(self.number.denominator)))
        return value if not below else Apply("div", (value, multiplied(below)))


def _added(left: Mapping[str, int], right: Mapping[str, int]) -> Mapping[str, int]:
    total = {axis: left.get(axis, 0) + right.get(axis, 0) for axis in {**left, **right}}
    return {axis: power for axis, power in total.items() if power}


def multiplied(factors: list[Expr] | tuple[Expr, ...]) -> Expr:
    """The factors one after the other; 1 if there are none."""
    if not factors:
        return ONE
    value = factors[0]
    for factor in factors[1:]:
        value = Apply("mul", (value, factor))
    return value


def product(expr: Expr) -> Product:
    """``expr`` taken apart (an atom if it is no product)."""
    match expr:
        case Const(value=value) if value:
            return Product(value)
        case Size(axis=axis):
            return Product(sizes={axis: 1})
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
    value = Product()
    for _ in range(abs(exponent)):
        value = value.times(base)
    return value if exponent > 0 else value.inverse()


def extent(bounds: tuple[Bound, ...]) -> Product:
    """How many elements a reduction ranges over (without a condition)."""
    value = Product()
    for bound in bounds:
        match bound.axis:
            case str() as axis:
                value = value.times(Product(sizes={axis: 1}))
            case size:
                value = value.times(Product(Fraction(size)))
    return value


def _some(bounds: tuple[Bound, ...]) -> bool:
    """No axis has the fixed size 0."""
    return all(bound.axis != 0 for bound in bounds)
