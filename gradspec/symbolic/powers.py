"""A fraction in which the powers of one base are one power.

The slope of ``c / x**b`` comes as ``-c * (b * x**(b - 1) if b != 0 else 0) / x**b / x**b``,
which is no number where ``x**b`` or its square leaves the range: ``-c * b * x**(-b - 1)`` is,
wherever the result is in it, and it takes one power in place of three. ``x**(b + k)`` is
``x**b * x**k`` for whole ``k`` and every ``x`` but 0, also where ``x < 0`` and ``b`` is whole;
so whole numbers are taken out of exponents, what cancels is gone, and what is left of a
base is put together again. At ``b = 0``, where a derived slope says 0 of its own, it is
what is left of the expression there.
"""

from __future__ import annotations

from fractions import Fraction

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, substitute
from gradspec.symbolic.gather import Gather, gathered
from gradspec.symbolic.ring import Frac, Poly, TooLarge, Undefined

_LARGEST = 24
"""Whole numbers beyond this stay in exponents."""


def with_powers_merged(expr: Expr) -> Expr | None:
    """``expr`` gathered, with one power of each base; None without such powers."""
    if not any(is_power(node) for node in nodes(expr)):
        return None
    work = _Powers()
    try:
        form = tidy(work.back(work.of(expr)))
    except (TooLarge, Undefined):
        return None
    for name in work.asked:
        at_zero = tidy(substitute(expr, {name: ZERO}))
        at_zero = gathered(at_zero) or at_zero
        if form != at_zero:
            is_other = Apply("ne", (Ref(name), ZERO))
            form = tidy(Select(is_other, form, at_zero))
    return form


def is_power(node: Expr) -> bool:
    """Whether it is a power that has no number for its exponent."""
    match node:
        case Apply(op="pow", args=(_, Const())):
            return False
        case Apply(op="pow"):
            return True
        case _:
            return False


class _Powers(Gather):
    """``asked``: the exponents of which a conditional asks whether they are 0."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._bases: dict[int, Frac] = {}  # of the generators that are powers
        self._exponents: dict[int, Frac] = {}
        self._base_of: dict[str, Expr] = {}

    def _convert(self, node: Expr) -> Frac:
        match node:
            case Apply(op="pow", args=(base, exponent)) if is_power(node):
                return self._power(base, exponent)
            case Select(
                condition=Apply(op="ne", args=(Ref(name=name), number)),
                then=then,
                other=other,
            ) if number == ZERO == other:
                if name not in self.asked:
                    self.asked.append(name)
                return self.of(then)
            case Select():
                raise TooLarge
            case _:
                return super()._convert(node)

    def _power(self, base: Expr, exponent: Expr) -> Frac:
        """A product of powers, one for each term of the exponent."""
        inside, value = self.of(base), self.of(exponent)
        total = self.ring.const(1)
        for powers, number in value.num.terms():
            monomial = self.ring.context.from_dict({tuple(powers): 1})
            term = self.ring.normal(monomial, value.den)
            rate = Fraction(int(number.p), int(number.q))
            if term.num.is_constant() and term.den.is_constant():
                factor = self._of_number(base, inside, rate)
            else:
                factor = self._of_term(base, inside, term, rate)
            total = self.ring.mul(total, factor)
        return total

    def _of_number(self, base: Expr, inside: Frac, rate: Fraction) -> Frac:
        whole = rate.numerator // rate.denominator
        if abs(whole) > _LARGEST:
            raise TooLarge
        total = self.ring.power(inside, whole)
        if rate == whole:
            return total
        rest = self.ring.const(rate - whole)
        return self.ring.mul(total, self._kernel_of(base, inside, rest))

    def _of_term(self, base: Expr, inside: Frac, term: Frac, rate: Fraction) -> Frac:
        if abs(rate.numerator) > _LARGEST:
            raise TooLarge
        unit = self.ring.mul(self.ring.const(Fraction(1, rate.denominator)), term)
        return self.ring.power(self._kernel_of(base, inside, unit), rate.numerator)

    def _kernel_of(self, base: Expr, inside: Frac, exponent: Frac) -> Frac:
        key = "pow", inside.key, exponent.key
        found = self._kernel(key, Apply("pow", (base, self.back(exponent))))
        number = self.ring.found[key]
        self._bases[number], self._exponents[number] = inside, exponent
        self._base_of.setdefault(inside.key, base)
        return found

    # --- and back --------------------------------------------------------------------

    def _powers(self, parts: list[tuple[Poly, int]]) -> list[tuple[Expr, int]]:
        """The powers of a base, and the base itself, as one."""
        merged: dict[str, Frac] = {}
        rest: list[tuple[Poly, int]] = []
        for poly, times in parts:
            number = self._number_of(poly)
            if number is None:
                rest.append((poly, times))
                continue
            key = self._bases[number].key
            before = merged.get(key, self.ring.const(0))
            step = self.ring.mul(self.ring.const(times), self._exponents[number])
            merged[key] = self.ring.add(before, step)
        left: list[tuple[Poly, int]] = []
        signs: list[tuple[Expr, int]] = []
        for poly, times in rest:
            keys = [self.ring.whole(p).key for p in (poly, -poly)]
            key = next((key for key in keys if key in merged), "")
            if not key:
                left.append((poly, times))
                continue
            merged[key] = self.ring.add(merged[key], self.ring.const(times))
            if key == keys[1] and times % 2:
                signs.append((Const(Fraction(-1)), 1))
        powers = [
            (fold(Apply("pow", (self._base_of[key], self.back(exponent)))), 1)
            for key, exponent in merged.items()
        ]
        return [*signs, *super()._powers(left), *powers]

    def _number_of(self, poly: Poly) -> int | None:
        """Of the generator that is a power."""
        key = self.ring.key_of(poly)
        number = None if key is None else self.ring.found[key]
        return number if number in self._bases else None
