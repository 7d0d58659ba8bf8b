"""A sum of fractions gathered over one denominator and factored.

What SymPy's ``together``, ``cancel`` and ``factor`` do, in FLINT's polynomials: a
millisecond instead of a second, and bounded by size rather than by time, so that the
answer is the same on every machine. Whatever is not a sum, product, quotient or whole
power is a generator of its own; a root knows its square, ``exp(-x)`` is ``1 / exp(x)``.

Like every proposal the result is to be measured before it is used. (An `ir.products`
product has expressions as factors, and expands no sum; here factors are polynomials.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradspec.ir.expr import ONE, Apply, Const, Expr
from gradspec.ir.tidy import fold
from gradspec.symbolic.proof.ring import Frac, Poly, Ring, TooLarge, Undefined

_HIGHEST = 12
"""Integer powers beyond this stay unexpanded."""


def factored_fraction(expr: Expr) -> Expr | None:
    """``expr`` as one factored fraction; None where it is too large for that."""
    return _fraction_of(Gather(), expr)


def _fraction_of(work: Gather, expr: Expr) -> Expr | None:
    try:
        return work.back(work.of(expr))
    except (TooLarge, Undefined):
        return None


class Gather:
    """Expressions into fractions of one ring, and back."""

    def __init__(self) -> None:
        self.ring = Ring()
        self._known: dict[Expr, Frac] = {}
        self._kernels: dict[Any, Expr] = {}

    # --- into fractions --------------------------------------------------------------

    def of(self, expr: Expr) -> Frac:
        if expr not in self._known:
            self._known[expr] = self._convert(expr)
        return self._known[expr]

    def _convert(self, node: Expr) -> Frac:
        ring = self.ring
        match node:
            case Const(value=value):
                return ring.const(value)
            case Apply(op="add", args=(a, b)):
                return ring.add(self.of(a), self.of(b))
            case Apply(op="sub", args=(a, b)):
                return ring.sub(self.of(a), self.of(b))
            case Apply(op="mul", args=(a, b)):
                return ring.mul(self.of(a), self.of(b))
            case Apply(op="div", args=(a, b)):
                return ring.div(self.of(a), self.of(b))
            case Apply(op="neg", args=(a,)):
                return ring.neg(self.of(a))
            case Apply(op="square", args=(a,)):
                return ring.power(self.of(a), 2)
            case Apply(op="pow", args=(a, Const(value=n))) if (
                n.denominator == 1 and abs(n) <= _HIGHEST
            ):
                return ring.power(self.of(a), int(n))
            case Apply(op="sqrt", args=(a,)):
                return self._root(a)
            case Apply(op="rsqrt", args=(a,)):
                return ring.div(ring.const(1), self._root(a))
            case Apply(op="exp", args=(a,)):
                return self._exponential(a)
            case _:
                return self._kernel(("kernel", node), node)

    def _kernel(self, key: Any, expr: Expr) -> Frac:
        generator, _ = self.ring.generator(key)
        self._kernels[key] = expr
        return self.ring.whole(generator)

    def _root(self, base: Expr) -> Frac:
        under = self.of(base)
        if under.is_zero:
            return under
        key = ("root", under.key)
        fresh = key not in self._kernels
        root = self._kernel(key, Apply("sqrt", (base,)))
        if fresh and under.den.is_one():
            self.ring.relate(key, 2, under.num)
        return root

    def _exponential(self, exponent: Expr) -> Frac:
        power = self.of(exponent)
        if not power.is_zero and power.num.leading_coefficient() < 0:
            opposite = fold(Apply("neg", (exponent,)))
            return self.ring.div(self.ring.const(1), self._exponential(opposite))
        key = "exp", power.key
        return self._kernel(key, Apply("exp", (exponent,)))

    # --- and back --------------------------------------------------------------------

    def back(self, value: Frac) -> Expr:
        top_left, roots = self._without_roots(value)
        number, above = self.ring.factor(top_left)
        divisor, below = self.ring.factor(value.den)
        parts = [*above, *((root, 1) for root in roots)]
        powers = self._powers([*parts, *((p, -e) for p, e in below)])
        top = [power(base, e) for base, e in powers if e > 0]
        bottom = [power(base, -e) for base, e in powers if e < 0]
        factor = _fraction(number) / _fraction(divisor)
        whole = [] if factor == 1 and top else [Const(factor)]
        result = product([*whole, *top])
        return Apply("div", (result, product(bottom))) if bottom else result

    def _without_roots(self, value: Frac) -> tuple[Poly, list[Poly]]:
        """Roots taken out of the numerator: over ``x**2 + 1``, ``x**2 + 1 + x * r`` is
        ``r * (r + x)``, with ``r`` the root of the denominator."""
        num, roots = value.num, []
        for number, (power, base) in self.ring.relations.items():
            root = self.ring.gens[number]
            if power != 2 or not divmod(value.den, base)[1].is_zero():
                continue
            quotient, rest = divmod(self.ring.lower(num * root), base)
            if rest.is_zero() and num.degrees()[number]:
                num = quotient
                roots.append(root)
        return num, roots

    def _powers(self, parts: list[tuple[Poly, int]]) -> list[tuple[Expr, int]]:
        """Generators in their order, then sums; ``sqrt(x) / x`` is ``1 / sqrt(x)``."""
        powers: dict[str, tuple[Poly, int]] = {}
        for poly, exponent in parts:
            _, before = powers.get(str(poly), (poly, 0))
            powers[str(poly)] = (poly, before + exponent)
        for number, (order, base) in self.ring.relations.items():
            root = self.ring.gens[number]
            _, up = powers.get(str(root), (root, 0))
            _, down = powers.get(str(base), (base, 0))
            if up > 0 > down:
                # root**1 * base**-k = root**-1 * base**(1 - k): one root stays below
                powers[str(root)] = (root, up - order)
                powers[str(base)] = (base, down + 1)
        ordered = sorted(powers.values(), key=lambda pair: self._place(pair[0]))
        return [(self._polynomial(poly), e) for poly, e in ordered if e]

    def _place(self, poly: Poly) -> tuple[int, int]:
        key = self.ring.key_of(poly)
        return (1, 0) if key is None else (0, self.ring.found[key])

    def _polynomial(self, poly: Poly) -> Expr:
        """Positive terms first, low degrees first: ``1 + x - x * y``."""
        terms = [(tuple(map(int, exps)), _fraction(c)) for exps, c in poly.terms()]
        terms.sort(key=lambda term: (term[1] < 0, sum(term[0]), [-e for e in term[0]]))
        total: Expr | None = None
        for exponents, coefficient in terms:
            monomial = self._monomial(exponents, abs(coefficient))
            if total is None:
                negative = coefficient < 0
                total = fold(Apply("neg", (monomial,))) if negative else monomial
            else:
                op = "sub" if coefficient < 0 else "add"
                total = Apply(op, (total, monomial))
        return Const(Fraction(0)) if total is None else total

    def _monomial(self, exponents: tuple[int, ...], coefficient: Fraction) -> Expr:
        keys = self.ring.keys
        factors = [
            power(self._kernels[keys[number]], exponent)
            for number, exponent in enumerate(exponents)
            if exponent
        ]
        whole = [] if coefficient == 1 and factors else [Const(coefficient)]
        return product([*whole, *factors])


def power(base: Expr, exponent: int) -> Expr:
    match exponent:
        case 1:
            return base
        case 2:
            return Apply("square", (base,))
        case _:
            return Apply("pow", (base, Const(Fraction(exponent))))


def product(factors: list[Expr]) -> Expr:
    total: Expr = ONE
    for factor in factors:
        total = fold(Apply("mul", (total, factor)))
    return total


def _fraction(number: Any) -> Fraction:
    return Fraction(int(number.p), int(number.q))
