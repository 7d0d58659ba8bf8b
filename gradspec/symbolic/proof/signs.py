"""Signs of polynomials on a region.

A sign follows from the signs of the terms, or, by elimination (Fourier and Motzkin),
from known inequalities that are linear in the monomials. "Unknown" is always a right
answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from flint import fmpq

from gradspec.primitives.lookup import is_primitive, primitive
from gradspec.symbolic.proof.ring import Frac, Poly, Ring

_Row: TypeAlias = "dict[tuple[int, ...], Any]"
"""A polynomial that is positive, by monomial."""

_MOST_ROWS = 60
_SHORT = 24
"""Terms of a polynomial whose roots are looked at."""

_PI = fmpq(3141592653589793, 10**15)
"""The first sixteen digits of pi, which is larger."""


class Facts:
    """Polynomials known to be positive, and generators that are by their nature."""

    def __init__(self, ring: Ring, positive: Iterable[Poly] = ()) -> None:
        self.ring = ring
        self.positive: list[Poly] = list(positive)
        self.by_nature: set[int] = set()

    def copy(self) -> Facts:
        twin = Facts(self.ring, self.positive)
        twin.by_nature = self.by_nature  # shared: it holds on every region
        return twin

    def assume(self, poly: Poly) -> None:
        if not any(poly == known for known in self.positive):
            self.positive.append(poly)

    def is_contradictory(self) -> bool:
        return _infeasible(self._rows(()))

    def sign(self, poly: Poly) -> int | None:
        """1, -1 or 0; None if it is not known."""
        if poly.is_zero():
            return 0
        by_terms = self._by_terms(poly)
        if by_terms is not None:
            return by_terms
        gap = self.ring.exponent_gap(poly)
        if gap is not None:
            return self.sign_of(gap)
        for sign, candidate in ((1, poly), (-1, -poly)):
            if any(known == candidate for known in self.positive):
                return sign
        by_root = self._by_root(poly) if len(poly) <= _SHORT else None
        if by_root is not None:
            return by_root
        for sign, candidate in ((1, poly), (-1, -poly)):
            if self.positive and _infeasible(self._rows((-candidate,))):
                return sign
        return None

    def sign_of(self, value: Frac) -> int | None:
        """The sign of a fraction."""
        above, below = self.sign(value.num), self.sign(value.den)
        return None if above is None or below is None else above * below

    def _by_root(self, poly: Poly) -> int | None:
        """``a * r + b`` with a square root ``r`` has the sign of the larger part; which
        one that is, their squares tell."""
        degrees = poly.degrees()
        for number in reversed(self.ring.relations):
            power, base = self.ring.relations[number]
            if power != 2 or degrees[number] != 1 or number not in self.by_nature:
                continue
            slope = poly.derivative(number)
            rest = poly - slope * self.ring.gens[number]
            larger = self.sign(self.ring.lower(slope * slope * base - rest * rest))
            if not larger:
                return None
            return self.sign(slope if larger > 0 else rest)
        return None

    def _rows(self, more: tuple[Poly, ...]) -> list[_Row]:
        """Everything positive, also the monomials in it whose sign is known: they are
        variables of their own to the elimination."""
        rows = [_row(poly) for poly in (*self.positive, *more)]
        for monomial in dict.fromkeys(m for row in rows for m in row if sum(m) > 1):
            sign, never_zero = self._term(monomial)
            if sign is not None and never_zero:
                rows.append({monomial: sign})
        for monomial in dict.fromkeys(m for row in rows for m in row if sum(m) == 1):
            number = monomial.index(1)
            if number in self.by_nature:
                rows.append({monomial: 1})
            rows.extend(self._ranges(number, monomial))
        return rows

    def _ranges(self, number: int, monomial: tuple[int, ...]) -> Iterable[_Row]:
        """Bounds of a kernel by its name alone."""
        one = tuple(0 for _ in monomial)
        key = self.ring.keys[number]
        if key == ("pi",):
            yield {monomial: 1, one: -_PI}
            yield {monomial: -1, one: _PI + fmpq(1, 10**15)}
            return
        op = key[1] if key[0] == "function" else key[0]
        least, most = primitive(op).bounds if is_primitive(op) else ("", "")
        if least:
            yield {monomial: 1, one: -fmpq(int(least))}
        if most:
            yield {monomial: -1, one: fmpq(int(most))}

    def _by_terms(self, poly: Poly) -> int | None:
        """All terms of one sign, at least one of them certainly not 0."""
        total, strict = 0, False
        for exponents, coefficient in poly.terms():
            sign, never_zero = self._term(exponents)
            if sign is None:
                return None
            sign = sign if coefficient > 0 else -sign
            if total not in (0, sign):
                return None
            total, strict = sign, strict or never_zero
        return total if strict else None

    def _term(self, exponents: tuple[int, ...]) -> tuple[int | None, bool]:
        sign, never_zero = 1, True
        for number, exponent in enumerate(exponents):
            if not exponent or number in self.by_nature:
                continue
            known = self._of_generator(number)
            if known is None:
                if exponent % 2:
                    return None, False
                never_zero = False
            elif exponent % 2:
                sign *= known
        return sign, never_zero

    def _of_generator(self, number: int) -> int | None:
        generator = self.ring.gens[number]
        for known in self.positive:
            if known == generator:
                return 1
            if known == -generator:
                return -1
        return self._of_logarithm(number)

    def _of_logarithm(self, number: int) -> int | None:
        """The sign of a logarithm: that of its argument less 1."""
        base = self.ring.bases.get(self.ring.keys[number])
        return None if base is None else self.sign(base - 1)


def _row(poly: Poly) -> _Row:
    return {tuple(int(e) for e in exps): value for exps, value in poly.terms()}


def _infeasible(rows: list[_Row]) -> bool:
    """True if not all rows can be positive, monomials taken as free variables. (A row
    that is only ``>= 0`` is treated as positive: a region without interior is
    empty.)"""
    while rows:
        if any(_is_constant(row) and _constant(row) <= 0 for row in rows):
            return True
        pivot = _pivot(rows)
        if pivot is None or len(rows) > _MOST_ROWS:
            return False
        rows = _eliminate(rows, pivot)
    return False


def _is_constant(row: _Row) -> bool:
    return all(not any(monomial) for monomial in row)


def _constant(row: _Row) -> Any:
    return next(iter(row.values()), 0)


def _pivot(rows: list[_Row]) -> tuple[int, ...] | None:
    """The monomial whose elimination makes the fewest rows."""
    counts: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        for monomial, value in row.items():
            if any(monomial):
                counts.setdefault(monomial, [0, 0])[value > 0] += 1
    if not counts:
        return None
    return min(sorted(counts), key=lambda m: counts[m][0] * counts[m][1])


def _eliminate(rows: list[_Row], pivot: tuple[int, ...]) -> list[_Row]:
    kept = [row for row in rows if pivot not in row]
    above = [row for row in rows if row.get(pivot, 0) > 0]
    below = [row for row in rows if row.get(pivot, 0) < 0]
    for up in above:
        for down in below:
            joined: _Row = {}
            for row, factor in ((up, -down[pivot]), (down, up[pivot])):
                for monomial, value in row.items():
                    joined[monomial] = joined.get(monomial, 0) + factor * value
            kept.append({m: v for m, v in joined.items() if v != 0})
    return kept
