"""A gradient as a polynomial in an input, with functions of one product for coefficients.

``exp(-x) * (x * cosh(e * x) / e - sinh(e * x) / e**2 + x * sinh(e * x))`` loses all digits where
``u = e * x`` is small. In ``x`` and ``u`` in place of ``x`` and ``e`` its terms are collected: it is
``exp(-x) * (x * sinh(u) + x**2 * c(u))``, and all that cancels does so in ``c(u) = (u * cosh(u) -
sinh(u)) / u**2``, a function of one variable, which has a series. So it is for any fraction of
exponentials (`peeled.py`) whose denominator is a product of inputs. Where ``u`` is not
small nothing cancels in the bounded form with one exponential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any

from gradspec.derive.build import plus, scale, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size
from gradspec.stabilise.inner import INNER, put_back
from gradspec.stabilise.peeled import Exponentials, as_exponentials, peeled_of
from gradspec.stabilise.series import points_of, series_about
from gradspec.symbolic.ring import Frac

_LARGEST, _GROUPS = 160, 4
_SMALL = Fraction(1)
"""What is below it is small."""


def collected(meaning: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """``meaning`` so where a product of two inputs is small, bounded elsewhere."""
    used = sorted(upstream & names(meaning))
    is_fit = not used or (len(used) == 1 and is_linear(meaning, upstream))
    if not is_fit or size(meaning) > _LARGEST:
        return
    factor = coefficient(meaning, used[0], upstream) if used else meaning
    found = as_exponentials(factor)
    far = None if found is None else peeled_of(*found)
    if found is None or far is None:
        return
    for way in _ways(found[0]):
        near = way.form(found[1])
        if near is not None:
            small = Apply("lt", (Apply("abs", (way.inner,)), Const(_SMALL)))
            form = tidy(Select(small, near, far))
            yield times(Ref(used[0]), form) if used else form


def _ways(work: Exponentials) -> Iterator[_Way]:
    """For each exponential of a product of two inputs, either of which may be kept."""
    ring = work.ring
    for number, key in enumerate(tuple(ring.keys)):
        log = ring.logarithms.get(key)
        if log is None or not log.den.is_one() or len(log.num) != 1:
            continue
        ((powers, rate),) = log.num.terms()
        places = [n for n, power in enumerate(powers) if power]
        if [int(powers[n]) for n in places] == [1, 1]:
            for kept, gone in permutations(places):
                rated = Fraction(int(rate.p), int(rate.q))
                yield _Way(work, number, rated, kept, gone)


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """``exp(rate * u)`` is the generator ``number``; ``gone`` is ``u / kept``."""

    work: Exponentials
    number: int
    rate: Fraction
    kept: int
    gone: int

    @property
    def inner(self) -> Expr:
        return fold(Apply("mul", (self._base(self.gone), self._base(self.kept))))

    def _base(self, place: int) -> Expr:
        return self.work.back(self.work.ring.whole(self.work.ring.gens[place]))

    def form(self, value: Frac) -> Expr | None:
        """The sum of the groups; None if a coefficient has no form, or none has two terms."""
        if len(value.den) != 1:
            return None
        groups = self._groups(value)
        if len(groups) > _GROUPS or all(len(terms) < 2 for terms in groups.values()):
            return None
        total: Expr = ZERO
        common = self._exponents(next(iter(groups)))
        for powers, terms in groups.items():
            part = _function(terms, self.rate)
            if part is None or self._exponents(powers).key != common.key:
                return None
            total = plus(total, self._product(powers, put_back(part, self.inner)))
        if common.is_zero:
            return total
        return Apply("mul", (Apply("exp", (self.work.back(common),)), total))

    def _groups(self, value: Frac) -> dict[tuple[int, ...], list[_Term]]:
        """Terms by the powers of all but ``u`` and its exponential."""
        ((below, divisor),) = value.den.terms()
        groups: dict[tuple[int, ...], list[_Term]] = {}
        for above, number in value.num.terms():
            powers = [int(a) - int(b) for a, b in zip(above, below, strict=True)]
            exponent, degree = powers[self.number], powers[self.gone]
            powers[self.kept] -= degree
            powers[self.number] = powers[self.gone] = 0
            share = number / divisor
            term = Fraction(int(share.p), int(share.q)), degree, exponent
            groups.setdefault(tuple(powers), []).append(term)
        return groups

    def _exponents(self, powers: tuple[int, ...]) -> Frac:
        """The logarithm of the exponentials of the rest."""
        ring = self.work.ring
        total = ring.const(0)
        for place, power in enumerate(powers):
            log = ring.logarithms.get(ring.keys[place]) if power else None
            if log is not None:
                total = ring.add(total, ring.mul(ring.const(power), log))
        return total

    def _product(self, powers: tuple[int, ...], function: Expr) -> Expr:
        """The inputs of the rest, and the function."""
        top, bottom = function, _power(ONE, 0)
        for place, power in enumerate(powers):
            if not power or self.work.ring.keys[place] in self.work.ring.logarithms:
                continue
            if power > 0:
                top = times(_power(self._base(place), power), top)
            else:
                bottom = times(_power(self._base(place), -power), bottom)
        return top if bottom == ONE else fold(Apply("div", (top, bottom)))


_Term = tuple[Fraction, int, int]
"""A number, and the powers of the variable and of its exponential."""


def _function(terms: list[_Term], rate: Fraction) -> Expr | None:
    """The sum of the terms by its series, which is right where ``u`` is small."""
    u: Any = Ref(INNER)
    lowest = min(0, *(degree for _, degree, _ in terms), 0)
    total: Expr = ZERO
    for number, degree, exponent in terms:
        term = times(Const(number), _power(u, degree - lowest))
        if exponent:
            term = times(term, Apply("exp", (scale(exponent * rate, u),)))
        total = plus(total, term)
    alone = tidy(Apply("div", (total, _power(u, -lowest))) if lowest else total)
    if not any(isinstance(n, Apply) and n.op == "exp" for n in nodes(alone)):
        return alone
    (point,) = (p for p in points_of(alone, INNER) if p.near == 0)
    found = series_about(alone, INNER, point, _SMALL)
    return None if found is None else found[1]


def _power(base: Expr, exponent: int) -> Expr:
    one: Expr = ONE
    return reduce(times, [base] * exponent, one)
