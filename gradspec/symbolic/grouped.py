"""Polynomials by the powers of one input, what stands before each of them factored.

``y**2 - x**2 + z**2`` loses a small ``z`` in any order of its terms but one, as the sum ``(y
- x) * (y + x) + z**2`` it does not; ``a**2 - 3 * a + 2 + b**2`` is 0 at 1 for all small
``b``, ``(a - 1) * (a - 2) + b**2`` is not. Irreducible as they are, they have zeros where
one input is 0, and about those what is left is the product and the small input's terms.

Which input that is the points tell: there is one form for each. Like every proposal they
are to be measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.tidy import fold, tidy
from gradspec.symbolic.gather import Gather, power, product
from gradspec.symbolic.ring import Poly, TooLarge, Undefined

_LEAST = 3
"""Terms of a polynomial in which anything can be grouped."""


def grouped(expr: Expr) -> Iterator[Expr]:
    """``expr`` as a fraction in which polynomials are grouped, by one generator after the
    other; those that differ."""
    yield from _by_powers(Grouped(), expr)


def collected_terms(expr: Expr) -> Iterator[Expr]:
    """``expr`` as a fraction whose polynomials are by the powers of one generator or
    another that stands before a sum: ``o**2 + (e - 1) * s**2``; at last as it is gathered."""
    yield from _by_powers(Collected(), expr, and_plain=True)


def _by_powers(work: Grouped, expr: Expr, and_plain: bool = False) -> Iterator[Expr]:
    try:
        value = work.of(expr)
        plain = work.back(value)
        seen = {plain}
        for number in range(len(work.ring.keys)):
            work.by = number
            form = work.back(value)
            if form not in seen:
                seen.add(form)
                yield tidy(form)
        if and_plain:
            yield tidy(plain)
    except (TooLarge, Undefined):
        return


class Grouped(Gather):
    """Writes polynomials by the powers of one generator, where what stands before one is
    a product."""

    by = -1
    """The generator by whose powers polynomials are written; none if negative."""

    def _polynomial(self, poly: Poly) -> Expr:
        if self.by < 0 or len(poly) < _LEAST or not poly.degrees()[self.by]:
            return super()._polynomial(poly)
        parts = self._coefficients(poly)
        if not any(map(self._is_product, parts.values())):
            return super()._polynomial(poly)
        total: Expr | None = None
        for exponent, part in sorted(parts.items()):
            is_minus, size_of = self._factored(part)
            raised = power(self._polynomial(self.ring.gens[self.by]), exponent)
            term = product([size_of, raised]) if exponent else size_of
            if total is None:
                total = fold(Apply("neg", (term,))) if is_minus else term
            else:
                total = Apply("sub" if is_minus else "add", (total, term))
        assert total is not None
        return total

    def _coefficients(self, poly: Poly) -> dict[int, Poly]:
        found: dict[int, dict[tuple[int, ...], object]] = {}
        for exponents, coefficient in poly.terms():
            powers = [*map(int, exponents)]
            exponent, powers[self.by] = powers[self.by], 0
            found.setdefault(exponent, {})[tuple(powers)] = coefficient
        return {k: self.ring.context.from_dict(terms) for k, terms in found.items()}

    def _is_product(self, part: Poly) -> bool:
        """Whether a sum has several factors."""
        return len(part) > 1 and sum(e for _, e in self.ring.factor(part)[1]) > 1

    def _factored(self, part: Poly) -> tuple[bool, Expr]:
        """Whether it is written with a minus, and what then follows."""
        is_minus = part.leading_coefficient() < 0
        part = -part if is_minus else part
        if not self._is_product(part):
            return is_minus, self._polynomial(part)
        number, factors = self.ring.factor(part)
        whole = self._polynomial(self.ring.context.constant(number))
        every = [power(self._polynomial(f), e) for f, e in factors]
        return is_minus, product([whole, *every] if number != 1 else every)


class Collected(Grouped):
    """Groups where what stands before a power is any sum."""

    def _is_product(self, part: Poly) -> bool:
        return len(part) > 1
