"""Powers of a sum with 1, through what they are more than 1.

``(1 + v)**a`` is ``1 + g`` with ``g = expm1(a * log1p(v))``. Where ``v`` is small, or ``a`` is,
digits are lost as the sum is formed, in float64 too; and ``((1 + v)**a - 1) / v`` and its
slopes are polynomials in ``g``, in which what is added to 1 only to be taken off again
cancels by algebra. Exponents that differ by whole numbers are one power and as many
factors ``1 + v``; which of them stays an exponent is a choice, and each is proposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, size
from gradspec.stabilise.decayed import decayed
from gradspec.stabilise.terms import terms_of
from gradspec.stabilise.united import may_go
from gradspec.symbolic.gather import gathered
from gradspec.symbolic.grouped import Collected
from gradspec.symbolic.powers import is_power
from gradspec.symbolic.ring import Frac, TooLarge, Undefined

_LARGEST = 200
_LEAST = Const(Fraction(-1))
"""What ``v`` is above, for there to be a logarithm."""


def compounded(meaning: Expr, closed: Expr) -> Iterator[Expr]:
    """``meaning`` as such a polynomial over another where that is defined, and ``closed``
    elsewhere; with the powers that are nearly 0, too."""
    powers = [node for node in nodes(meaning) if is_power(node)]
    bases = dict.fromkeys(power.below[0] for power in powers)
    if len(bases) != 1 or size(meaning) > _LARGEST:
        return
    (base,) = bases
    if not _is_beside_one(base):
        return
    exponents = dict.fromkeys(power.below[1] for power in powers)
    forms: list[tuple[Expr, Expr]] = []
    small: Expr = ZERO
    for exponent in exponents:
        work = _Compounded(base, exponent)
        try:
            form, small = work.fraction(meaning), tidy(work.back(work.small))
        except (TooLarge, Undefined):
            return
        forms.append((exponent, form))
    above = Apply("gt", (small, _LEAST))
    for form in (*(form for _, form in forms), *_by_exponents(forms)):
        for other in (form, *decayed(form)):
            yield tidy(Select(above, other, closed))


def _by_exponents(forms: list[tuple[Expr, Expr]]) -> Iterator[Expr]:
    """That of two whose exponent is smaller: what is more than 1 is small where it is."""
    for (one, form), (other, further) in combinations(forms, 2):
        sizes = (Apply("abs", (one,)), Apply("abs", (other,)))
        yield Select(Apply("lt", sizes), form, further)


_GROWN, _LOGARITHM = "grown", "logarithm"


def _is_beside_one(base: Expr) -> bool:
    """Whether it is a sum with 1 among its terms."""
    terms = [*terms_of(base)]
    return len(terms) > 1 and any(term.expr() == ONE for term in terms)


class _Compounded(Collected):
    """Gathers where a power of ``1 + v`` is what it is more than 1, and its logarithm
    ``log1p(v)``. What is asked, whether a factor is 0, is left out: the product is 0 there."""

    def __init__(self, base: Expr, exponent: Expr) -> None:
        super().__init__()
        self._base, self._exponent = base, exponent
        self.small = self.ring.sub(self.of(base), self.ring.const(1))
        log = Apply("log1p", (tidy(self.back(self.small)),))
        self._log = self._kernel(_LOGARITHM, log)
        grown = Apply("expm1", (tidy(Apply("mul", (exponent, log))),))
        self._grown = self._kernel(_GROWN, grown)

    def fraction(self, meaning: Expr) -> Expr:
        value = self.of(meaning)
        self.by = self.ring.found[_GROWN]
        return tidy(self.back(value))

    def _convert(self, node: Expr) -> Frac:
        match node:
            case Apply(op="pow", args=(base, exponent)) if is_power(node):
                return self._power(exponent)
            case Apply(op="log", args=(base,)) if base == self._base:
                return self._log
            case Apply(op="xlogy", args=(factor, base)) if base == self._base:
                return self.ring.mul(self.of(factor), self._log)
            case Select(
                condition=Apply(op="ne", args=(asked, number)), then=then, other=other
            ) if number == ZERO == other and may_go(asked, then):
                return self.of(then)
            case Select():
                raise TooLarge
            case _:
                return super()._convert(node)

    def _power(self, exponent: Expr) -> Frac:
        step = gathered(fold(Apply("sub", (exponent, self._exponent))))
        if not isinstance(step, Const) or step.value.denominator != 1:
            raise TooLarge
        whole = self.ring.power(self.of(self._base), int(step.value))
        return self.ring.mul(self.ring.add(self.ring.const(1), self._grown), whole)
