"""Fractions of polynomials over the rationals in a growing set of generators, and signs
of polynomials on a region.

A generator is a variable or a kernel: the exponential of a term, a logarithm, a root, a
sine, a function of which nothing is known. A kernel may obey one relation ``g**q =
base`` (roots; ``sin**2 = 1 - cos**2``), with which high powers are lowered. Kernels are
otherwise treated as independent, so that a fraction that is 0 here is 0 as a function;
the converse may fail, which makes the proof incomplete and never wrong.

The arithmetic is FLINT's; every size is bounded, because nothing can interrupt it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, TypeAlias

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpz

from gradspec.primitives.lookup import is_primitive, primitive
from gradspec.symbolic.limit import Effort

Key: TypeAlias = Any
"""A tuple that begins with the kind of kernel: ``("exp", …)``, ``("root", …)``."""

Poly: TypeAlias = Any
"""A FLINT ``fmpq_mpoly`` (FLINT has no types to check against)."""

GENERATORS = 28
"""At least; with many variables one more for each of them, and a few."""
_KERNELS = 8
LARGEST = 3000
"""Terms of a polynomial beyond which we give up: products then take milliseconds."""
HIGHEST = 400
_STEP = 1024
"""Pairs of terms that count as one step."""

_WORTH_FACTORING = 200
_WORTH_REDUCING = 40_000
"""A common factor of larger polynomials takes too long to find; not to look for one
only makes two equal arguments of a kernel look different."""


class TooLarge(Exception):
    """The expression is too large for a proof in reasonable time."""


class Undefined(Exception):
    """A denominator is identically 0."""


@dataclass(frozen=True, slots=True)
class Frac:
    """``num / den`` in lowest terms, ``den`` with leading coefficient 1."""

    num: Poly
    den: Poly

    @property
    def is_zero(self) -> bool:
        return bool(self.num.is_zero())

    @property
    def key(self) -> str:
        """A text that equal fractions share."""
        return f"{self.num} / {self.den}"


class Ring:
    """The generators in use, their relations, and arithmetic on fractions."""

    def __init__(self, effort: Effort | None = None, variables: int = 0) -> None:
        self.effort = effort
        count = max(GENERATORS, 2 * variables + _KERNELS)
        names = tuple(f"g{number}" for number in range(count))
        self.context = fmpq_mpoly_ctx.get(names, Ordering.degrevlex)
        self.gens = self.context.gens()
        self.found: dict[Key, int] = {}
        self.keys: list[Key] = []
        self.relations: dict[int, tuple[int, Poly]] = {}
        self.logarithms: dict[Key, Frac] = {}  # of exponential kernels
        self.bases: dict[Key, Poly] = {}  # what a logarithm kernel is of
        self.arguments: dict[Key, tuple[Frac, ...]] = {}  # of function kernels
        self.one = self.context.constant(1)
        self.zero = self.context.constant(0)

    def generator(self, key: Key) -> tuple[Poly, bool]:
        """The generator for a key, and whether it is new."""
        known = self.found.get(key)
        if known is None:
            if len(self.found) == len(self.gens):
                raise TooLarge
            self.found[key] = known = len(self.found)
            self.keys.append(key)
            return self.gens[known], True
        return self.gens[known], False

    def relate(self, key: Key, power: int, base: Poly) -> None:
        """From now on ``generator ** power`` is ``base`` (of earlier generators)."""
        self.relations[self.found[key]] = (power, base)

    def key_of(self, poly: Poly) -> Any:
        """The key of the generator that a polynomial is, None if it is not one."""
        if len(poly) != 1 or poly.leading_coefficient() != 1:
            return None
        if poly.total_degree() != 1:
            return None
        number = next(n for n, degree in enumerate(poly.degrees()) if degree)
        return self.keys[number]

    def exponent_gap(self, poly: Poly) -> Frac | None:
        """``t`` if the polynomial is a positive multiple of ``exp(t) - 1`` times
        another exponential: it then has the sign of ``t``."""
        if len(poly) != 2:
            return None
        (first, a), (second, b) = poly.terms()
        if a != -b:
            return None
        total = self.const(0)
        for number, (up, down) in enumerate(zip(first, second, strict=True)):
            if up == down == 0:
                continue
            logarithm = self._logarithm(number)
            if logarithm is None:  # a common factor whose sign is not known either
                return None
            step = self.const(int(up) - int(down))
            total = self.add(total, self.mul(step, logarithm))
        return total if a > 0 else self.neg(total)

    def _logarithm(self, number: int) -> Frac | None:
        return self.logarithms.get(self.keys[number])

    def _count(self, steps: int) -> None:
        if self.effort is not None and not self.effort.take(steps):
            raise TooLarge

    # --- fractions

    def const(self, value: Fraction | int) -> Frac:
        exact = Fraction(value)
        number = fmpq(exact.numerator, exact.denominator)
        return Frac(self.context.constant(number), self.one)

    def whole(self, poly: Poly) -> Frac:
        return self.normal(poly, self.one)

    def normal(self, num: Poly, den: Poly) -> Frac:
        """Powers lowered, common factors and roots below the line removed."""
        self._count(1 + len(num) * len(den) // _STEP)
        num, den = self.lower(num), self.lower(den)
        if den.is_zero():
            raise Undefined
        if num.is_zero():
            return Frac(self.zero, self.one)
        num, den = self._roots_up(num, den)
        if not den.is_constant() and len(num) * len(den) <= _WORTH_REDUCING:
            common = num.gcd(den)
            if not common.is_one():
                num, den = num / common, den / common
        lead = den.leading_coefficient()
        return Frac(num / lead, den / lead)

    def add(self, a: Frac, b: Frac) -> Frac:
        if a.den == b.den:
            return self.normal(a.num + b.num, a.den)
        top = self.mul_poly(a.num, b.den) + self.mul_poly(b.num, a.den)
        return self.normal(top, self.mul_poly(a.den, b.den))

    def neg(self, a: Frac) -> Frac:
        return Frac(-a.num, a.den)

    def sub(self, a: Frac, b: Frac) -> Frac:
        return self.add(a, self.neg(b))

    def mul(self, a: Frac, b: Frac) -> Frac:
        return self.normal(self.mul_poly(a.num, b.num), self.mul_poly(a.den, b.den))

    def div(self, a: Frac, b: Frac) -> Frac:
        return self.normal(self.mul_poly(a.num, b.den), self.mul_poly(a.den, b.num))

    def power(self, a: Frac, exponent: int) -> Frac:
        if exponent < 0:
            return self.div(self.const(1), self.power(a, -exponent))
        return self.normal(
            self.power_poly(a.num, exponent), self.power_poly(a.den, exponent)
        )

    # --- polynomials

    def factor(self, poly: Poly) -> tuple[Any, list[tuple[Poly, int]]]:
        """A number and irreducible factors."""
        if len(poly) > _WORTH_FACTORING or poly.total_degree() > HIGHEST:
            raise TooLarge
        number, parts = poly.factor()
        return number, [(base, int(exponent)) for base, exponent in parts]

    def mul_poly(self, a: Poly, b: Poly) -> Poly:
        if len(a) * len(b) > 60 * LARGEST:
            raise TooLarge
        self._count(len(a) * len(b) // _STEP)
        product = a * b
        if len(product) > LARGEST:
            raise TooLarge
        return product

    def power_poly(self, a: Poly, exponent: int) -> Poly:
        if len(a) == 1:
            if max(a.total_degree(), 1) * exponent > 10_000 * HIGHEST:
                raise TooLarge
            return a**exponent
        if exponent * a.total_degree() > HIGHEST:
            return self._high_power(a, exponent)
        result = self.one
        for _ in range(exponent):
            result = self.mul_poly(result, a)
        return result

    def _high_power(self, a: Poly, exponent: int) -> Poly:
        """With a kernel for each factor: multiplied out it has too many terms."""
        number, parts = self.factor(a)
        bits = max(int(number.p).bit_length(), int(number.q).bit_length())
        if exponent * bits > 100 * HIGHEST:
            raise TooLarge
        result = self.context.constant(number**exponent)
        for base, times in parts:
            kernel, _ = self.generator(("base", str(base)))
            result *= self.power_poly(kernel, times * exponent)
        return result

    def lower(self, poly: Poly) -> Poly:
        """With every relation applied, latest kernels first: their bases are made of
        earlier ones."""
        if len(poly) > LARGEST:
            raise TooLarge
        for number in reversed(self.relations):
            power, base = self.relations[number]
            while poly.degrees()[number] >= power:
                poly = self._lower(poly, number, power, base)
        return poly

    def _lower(self, poly: Poly, number: int, power: int, base: Poly) -> Poly:
        groups: dict[int, dict[tuple[int, ...], Any]] = {}
        for exponents, coefficient in poly.terms():
            times, rest = divmod(int(exponents[number]), power)
            left = (*exponents[:number], rest, *exponents[number + 1 :])
            groups.setdefault(times, {})[left] = coefficient
        result = self.zero
        for times, terms in sorted(groups.items()):
            part = self.context.from_dict(terms)
            result += self.mul_poly(part, self.power_poly(base, times))
        return result

    def _roots_up(self, num: Poly, den: Poly) -> tuple[Poly, Poly]:
        """``1 / sqrt(x)`` as ``sqrt(x) / x``, so that equal fractions look the same."""
        shared = den.term_content()
        degrees = shared.degrees()
        for number, (power, _) in self.relations.items():
            if degrees[number]:
                lift = self.gens[number] ** (power - int(degrees[number]))
                num = self.lower(self.mul_poly(num, lift))
                den = self.lower(self.mul_poly(den, lift))
        return num, den


# --- rational numbers ----------------------------------------------------------------


def primes(number: Fraction) -> list[tuple[int, int]]:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 96:
        raise TooLarge
    above = [(int(p), int(e)) for p, e in fmpz(number.numerator).factor()]
    below = [(int(p), -int(e)) for p, e in fmpz(number.denominator).factor()]
    return above + below


def fraction(value: Any) -> Fraction:
    return (
        Fraction(int(value.p), int(value.q)) if hasattr(value, "p") else Fraction(value)
    )


def common(a: Fraction, b: Fraction) -> Fraction:
    """The largest number of which both are whole multiples."""
    top = gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    return Fraction(top, a.denominator * b.denominator)


# --- signs of polynomials on a region -------------------------------------------------
# A sign follows from the signs of the terms, or, by elimination (Fourier and Motzkin),
# from known inequalities that are linear in the monomials. "Unknown" is always a right
# answer.


_Row: TypeAlias = "dict[tuple[int, ...], Any]"
"""A polynomial that is positive, by monomial."""

_MOST_ROWS = 60
_SHORT = 24
"""Terms of a polynomial whose roots are looked at."""

_PI = fmpq(3141592653589793, 10**15)
"""The first sixteen digits of pi, which is larger."""


class Facts:
    """Polynomials that are positive in the interior of a region, and generators that
    are by their nature. ``closed`` are those that may be 0 on the region itself."""

    def __init__(
        self, ring: Ring, positive: Iterable[Poly] = (), closed: Iterable[Poly] = ()
    ) -> None:
        self.ring = ring
        self.positive: list[Poly] = list(positive)
        self.closed: list[Poly] = list(closed)
        self.by_nature: set[int] = set()

    def copy(self) -> Facts:
        twin = Facts(self.ring, self.positive, self.closed)
        twin.by_nature = self.by_nature  # shared: it holds on every region
        return twin

    def assume(self, poly: Poly, closed: bool = False) -> None:
        """``poly > 0``; ``closed``: ``poly >= 0``."""
        if not any(poly == known for known in self.positive):
            self.positive.append(poly)
            if closed:
                self.closed.append(poly)
        elif not closed:
            self.closed = [known for known in self.closed if known != poly]

    def has_interior(self) -> bool:
        """False if the facts exclude an interior (True may be wrong)."""
        return not _infeasible(self._rows(()))

    def is_empty(self) -> bool:
        """True if no point satisfies the facts, borders included."""
        return _infeasible(self._rows((), with_borders=True))

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

    def _rows(
        self, more: tuple[Poly, ...], with_borders: bool = False
    ) -> list[tuple[_Row, bool]]:
        """Everything positive, also the monomials in it whose sign is known: they are
        variables of their own to the elimination. The flag is False of what may be 0,
        if borders count."""
        closed = self.closed if with_borders else []
        known = [(p, not any(p == c for c in closed)) for p in self.positive]
        rows = [
            (_row(poly), strict)
            for poly, strict in (*known, *((p, True) for p in more))
        ]
        for monomial in _monomials(rows, lambda degree: degree > 1):
            sign, never_zero = self._term(monomial)
            if sign is not None and never_zero:
                rows.append(({monomial: sign}, True))
        for monomial in _monomials(rows, lambda degree: degree == 1):
            number = monomial.index(1)
            if number in self.by_nature:
                rows.append(({monomial: 1}, True))
            rows += [(row, not with_borders) for row in self._ranges(number, monomial)]
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


def _monomials(
    rows: list[tuple[_Row, bool]], wanted: Callable[[int], bool]
) -> list[tuple[int, ...]]:
    """The monomials of the degrees that are wanted."""
    return list(dict.fromkeys(m for row, _ in rows for m in row if wanted(sum(m))))


def _infeasible(rows: list[tuple[_Row, bool]]) -> bool:
    """True if not all rows can be positive (those without the flag: at least 0),
    monomials taken as free variables."""
    while rows:
        for row, strict in rows:
            if _is_constant(row):
                value = _constant(row)
                if value < 0 or (strict and value == 0):
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


def _pivot(rows: list[tuple[_Row, bool]]) -> tuple[int, ...] | None:
    """The monomial whose elimination makes the fewest rows."""
    counts: dict[tuple[int, ...], list[int]] = {}
    for row, _ in rows:
        for monomial, value in row.items():
            if any(monomial):
                counts.setdefault(monomial, [0, 0])[value > 0] += 1
    if not counts:
        return None
    return min(sorted(counts), key=lambda m: counts[m][0] * counts[m][1])


def _eliminate(
    rows: list[tuple[_Row, bool]], pivot: tuple[int, ...]
) -> list[tuple[_Row, bool]]:
    kept = [entry for entry in rows if pivot not in entry[0]]
    above = [entry for entry in rows if entry[0].get(pivot, 0) > 0]
    below = [entry for entry in rows if entry[0].get(pivot, 0) < 0]
    for up, is_up_strict in above:
        for down, is_down_strict in below:
            joined: _Row = {}
            for row, factor in ((up, -down[pivot]), (down, up[pivot])):
                for monomial, value in row.items():
                    joined[monomial] = joined.get(monomial, 0) + factor * value
            row = {m: v for m, v in joined.items() if v != 0}
            kept.append((row, is_up_strict or is_down_strict))
    return kept
