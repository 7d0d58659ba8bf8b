"""Products: a number, numerators, denominators, and the conditions outside of which they
are 0; sums as their terms, conditions as their conjuncts, positions as linear forms.

Factors stand in the order of the text. What is merged (`Product.powers`) is a view of
them. A stage chooses how far an expression is taken apart: only where the text has a
sign, a product or a quotient (`written_product`), down to numbers and whole powers
(`product`), or to those and conditions (`guarded_product`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import prod

from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Bound,
    Const,
    Expr,
    Idx,
    Reduce,
    Select,
    Size,
    apply,
)
from gradspec.ir.tidy import fold

_MOST = 4
"""The largest exponent that is written out as factors."""


@dataclass(frozen=True, slots=True)
class Product:
    """``number * Π above / Π below`` where all ``guards`` hold, else 0."""

    number: Fraction = Fraction(1)
    above: tuple[Expr, ...] = ()
    below: tuple[Expr, ...] = ()
    guards: tuple[Expr, ...] = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (*self.guards, *self.above, *self.below)

    @property
    def powers(self) -> dict[Expr, int]:
        """The exponent of each factor, numerators first; those that cancel are gone."""
        found: dict[Expr, int] = {}
        for side, sign in ((self.above, 1), (self.below, -1)):
            for factor in side:
                base, exponent = _base(factor)
                found[base] = found.get(base, 0) + sign * exponent
        return {base: exponent for base, exponent in found.items() if exponent}

    def times(self, other: Product) -> Product:
        return Product(
            self.number * other.number,
            self.above + other.above,
            self.below + other.below,
            tuple(dict.fromkeys(self.guards + other.guards)),
        )

    def inverse(self) -> Product:
        return Product(1 / self.number, self.below, self.above)

    def over(self, other: Product) -> Product:
        """The quotient, without what both have."""
        return self.times(other.inverse()).lowest_terms()

    def lowest_terms(self) -> Product:
        """The product without factors that are above and below the line."""
        above, below = list(self.above), list(self.below)
        for factor in self.above:
            if factor in below:
                above.remove(factor)
                below.remove(factor)
        return replace(self, above=tuple(above), below=tuple(below))

    def filter(self, wanted: Callable[[Expr], bool]) -> Product:
        """The factors and guards that are wanted, with the number."""
        sides = (self.above, self.below, self.guards)
        return Product(self.number, *(tuple(filter(wanted, side)) for side in sides))

    def common(self, other: Product) -> Product:
        """The factors and guards that both have, each in the smaller power."""
        theirs = other.powers
        powers = {
            factor: min(power, theirs[factor], key=abs)
            for factor, power in self.powers.items()
            if power * theirs.get(factor, 0) > 0
        }
        guards = tuple(guard for guard in self.guards if guard in other.guards)
        return product_of_powers(Fraction(1), powers, guards)

    def without(self, common: Product) -> Product:
        """The product without factors and guards that it has in common with another."""
        guards = tuple(guard for guard in self.guards if guard not in common.guards)
        rest = replace(self, guards=guards).times(common.inverse())
        return product_of_powers(rest.number, rest.powers, guards)

    def expr(self) -> Expr:
        """The product as an expression: numbers first, one fraction."""
        number, value, below = self.number, product_of(self.above), list(self.below)
        if number.numerator != 1 and (abs(number.numerator) != 1 or not self.above):
            first = Const(Fraction(number.numerator))
            value = first if value == ONE else Apply("mul", (first, value))
        elif number < 0:
            value = Apply("neg", (value,))
        if number.denominator != 1:
            below.insert(0, Const(Fraction(number.denominator)))
        return value if not below else Apply("div", (value, product_of(below)))


def product_of(factors: list[Expr] | tuple[Expr, ...]) -> Expr:
    """The product of the factors in order; 1 if there are none."""
    return reduce(lambda a, b: Apply("mul", (a, b)), factors) if factors else ONE


def product_of_powers(
    number: Fraction, powers: Mapping[Expr, int], guards: tuple[Expr, ...]
) -> Product:
    """The product of factors in powers, which may be negative."""
    above, below = (
        tuple(
            factor
            for base, exponent in powers.items()
            for factor in _factors(base, sign * exponent)
        )
        for sign in (1, -1)
    )
    return Product(number, above, below, guards)


def _base(factor: Expr) -> tuple[Expr, int]:
    match factor:
        case Apply(op="pow", args=(base, Const(value=n))) if n.denominator == 1:
            return base, int(n)
        case _:
            return factor, 1


def _factors(base: Expr, exponent: int) -> tuple[Expr, ...]:
    """A power as factors; a large one is a factor itself, a negative one has none."""
    if exponent > _MOST:
        return (Apply("pow", (base, Const(Fraction(exponent)))),)
    return (base,) * exponent


def written_product(expr: Expr) -> Product:
    """The factors of ``expr`` as they are written; the number is a sign."""
    return _take_apart(expr, is_written=True)


def product(expr: Expr) -> Product:
    """The factors of ``expr`` (a single factor if it is no product); a mean is a sum
    over its size."""
    return _take_apart(expr)


def guarded_product(expr: Expr) -> Product:
    """The factors of ``expr`` merged, with conditions outside of which it is 0."""
    found = _take_apart(expr, is_guarded=True)
    return product_of_powers(found.number, found.powers, found.guards)


def _take_apart(
    expr: Expr, is_written: bool = False, is_guarded: bool = False
) -> Product:
    """The factors, on an explicit stack: a product may be long."""
    number = Fraction(1)
    above: list[Expr] = []
    below: list[Expr] = []
    guards: dict[Expr, None] = {}
    todo = [(expr, 1)]
    while todo:
        node, power = todo.pop()
        match node:
            case Apply(op="neg", args=(a,)):
                number *= (-1) ** abs(power)
                todo.append((a, power))
            case Apply(op="mul", args=(a, b)):
                todo += [(b, power), (a, power)]
            case Apply(op="div", args=(a, b)):
                todo += [(b, -power), (a, power)]
            case Const(value=value) if value and not is_written:
                number *= value**power
            case Apply(op="square", args=(a,)) if not is_written:
                todo += 2 * [(a, power)]
            case Apply(op="pow", args=(a, Const(value=n))) if (
                n and n.denominator == 1 and not is_written
            ):
                times = abs(int(n)) if abs(n) <= _MOST else 1
                todo += times * [(a, power * int(n) // times)]
            case Select(condition=condition, then=then, other=other) if (
                is_guarded and other == ZERO and power > 0
            ):
                guards |= dict.fromkeys(conjuncts(condition))
                todo.append((then, power))
            case Reduce(op="mean", bounds=bounds, body=body, where=None) if (
                not is_written and not is_guarded and all(b.axis != 0 for b in bounds)
            ):
                count = element_count(bounds)
                number /= count.number**power
                todo += [(size, -power) for size in reversed(count.above)]
                todo.append((Reduce("sum", bounds, body, span=node.span), power))
            case _:
                (above if power > 0 else below).extend(_factors(node, abs(power)))
    return Product(number, tuple(above), tuple(below), tuple(guards))


def element_count(bounds: tuple[Bound, ...]) -> Product:
    """The number of elements that a reduction ranges over (without a condition)."""
    axes = [bound.axis for bound in bounds]
    number = prod(axis for axis in axes if isinstance(axis, int))
    return Product(Fraction(number), tuple(Size(a) for a in axes if isinstance(a, str)))


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts of a condition that must all hold."""
    match condition:
        case Apply(op="and", args=args):
            for arg in args:
                yield from conjuncts(arg)
        case _:
            yield condition


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


# --- linear forms ---------------------------------------------------------------------


Terms = dict[Expr, Fraction]
"""A linear form: integer terms by what they multiply, the constant under 1."""


def linear(expr: Expr) -> Terms:
    """An index as a linear form; a nonlinear part is a term of its own."""
    match expr:
        case Const(value=value):
            return {ONE: value} if value else {}
        case Apply(op="add", args=(a, b)):
            return add_multiple(linear(a), linear(b), Fraction(1))
        case Apply(op="sub", args=(a, b)):
            return add_multiple(linear(a), linear(b), Fraction(-1))
        case Apply(op="neg", args=(a,)):
            return add_multiple({}, linear(a), Fraction(-1))
        case Apply(op="mul", args=(Const(value=value), a)):
            return add_multiple({}, linear(a), value)
        case Apply(op="mul", args=(a, Const(value=value))):
            return add_multiple({}, linear(a), value)
        case _:
            return {expr: Fraction(1)}


def add_multiple(a: Terms, b: Terms, factor: Fraction) -> Terms:
    """``a + factor * b`` without zeros."""
    found = dict(a)
    for term, number in b.items():
        found[term] = found.get(term, Fraction(0)) + factor * number
    return {term: number for term, number in found.items() if number}


def linear_expr(terms: Terms) -> Expr:
    """A linear form as one writes it: ``i - 1``."""
    result: Expr = ZERO
    ordered = [(t, n) for t, n in terms.items() if t != ONE]
    ordered.sort(key=lambda pair: pair[1] < 0)
    for term, number in ordered:
        part = fold(Apply("mul", (Const(abs(number)), term)))
        op = "add" if number > 0 else "sub"
        result = fold(Apply(op, (result, part)))
    return fold(Apply("add", (result, Const(terms.get(ONE, Fraction(0))))))


def is_index(expr: Expr) -> bool:
    """True if it is an integer made of indices and sizes alone."""
    match expr:
        case Idx() | Size():
            return True
        case Const(value=value):
            return value.denominator == 1
        case Apply(op="add" | "sub" | "neg" | "mul", args=args):
            return all(is_index(arg) for arg in args)
        case _:
            return False
