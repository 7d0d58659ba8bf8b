"""Products, powers, exponentials and logarithms of polynomials in atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from gradspec.derive.indexed_terms import (
    UNIT,
    Poly,
    Term,
    TooLarge,
    add,
    constant,
    is_condition,
    is_positive,
    merged,
    single,
    text,
    written,
)
from gradspec.ir.expr import ZERO, Apply, Const, Expr


class Algebra(ABC):
    """``bases`` are the atoms that are polynomials themselves."""

    def __init__(self) -> None:
        self.bases: dict[Expr, Poly] = {}

    @abstractmethod
    def poly(self, expr: Expr) -> Poly:
        """The polynomial that an expression is."""

    # --- products --------------------------------------------------------------------

    def times(self, a: Poly, b: Poly) -> Poly:
        found: Poly = {}
        for left, number in a.items():
            for right, other in b.items():
                term = merged(left, right)
                if term is not None:
                    made = self._expanded(term)
                    found = add(found, made, number * other)
        return found

    def _expanded(self, term: Term) -> Poly:
        """Whole positive powers of what is itself a polynomial are multiplied out."""
        for position, (atom, power) in enumerate(term):
            base = self.bases.get(atom)
            if base is None or (power < 1 and len(base) > 1):
                continue
            whole = power.numerator // power.denominator
            if whole == 0:
                continue
            rest = (*term[:position], *term[position + 1 :])
            left = power - whole
            kept = merged(rest, ((atom, left),)) if left else rest
            found: Poly = {(): UNIT} if kept is None else self._expanded(kept)
            factor = base if whole > 0 else self._inverse(base)
            for _ in range(abs(whole)):
                found = self.times(found, factor)
            return found
        return self._parted(term)

    def _parted(self, term: Term) -> Poly:
        """Partial fractions: with ``A = c + d * M``, a number and a product of
        exponentials, ``M / A`` is ``1 / d - c / (d * A)``, and ``1 / (M * A)`` is
        ``1 / (c * M) - d / (c * A)``. So what logistic functions and their derivatives
        are is one form inside of sums, too, where nothing is brought above the line.
        """
        for atom, power in term:
            base = self.bases.get(atom)
            if base is None or power > -1 or (parts := _binomial(base)) is None:
                continue
            number, growth, factor = parts
            powers = dict(term)
            if all(powers.get(a, 0) >= p for a, p in growth):
                sign, first, second = -1, UNIT / factor, -number / factor
            elif all(powers.get(a, 0) <= -p for a, p in growth):
                sign, first, second = 1, UNIT / number, -factor / number
            else:
                continue
            less = merged(term, ((atom, UNIT),))
            moved = merged(term, tuple((a, sign * p) for a, p in growth))
            assert less is not None and moved is not None
            if sign < 0:
                less = merged(moved, ((atom, UNIT),))
                assert less is not None
            found = add({}, self._expanded(less), first)
            return add(found, self._expanded(moved), second)
        return {term: UNIT}

    def _inverse(self, base: Poly) -> Poly:
        ((term, number),) = base.items()
        return {tuple((atom, -power) for atom, power in term): 1 / number}

    def power(self, poly: Poly, power: Fraction) -> Poly:
        if not poly:
            if power > 0:
                return {}
            return single(ZERO, power)
        if power.denominator == 1 and (power > 0 or len(poly) == 1):
            if abs(power) > 8:
                raise TooLarge
            found: Poly = {(): UNIT}
            factor = poly if power > 0 else self._term_inverse(poly)
            for _ in range(abs(int(power))):
                found = self.times(found, factor)
            return found
        return self._root(poly, power)

    def _term_inverse(self, poly: Poly) -> Poly:
        ((term, number),) = poly.items()
        if any(is_condition(atom) for atom, _ in term):
            return single(written(poly), -UNIT)
        return {tuple((atom, -p) for atom, p in term): 1 / number}

    def _root(self, poly: Poly, power: Fraction) -> Poly:
        """A power of a sum, or a root: a positive number and positive factors that all
        terms share are taken out."""
        lead = abs(poly[min(poly, key=lambda t: [(text(a), p) for a, p in t])])
        common = self._common(poly)
        rest = add({}, self.times(poly, _swapped(common)), 1 / lead)
        found = {tuple((a, p * power) for a, p in common): UNIT}
        if lead != 1:
            found = self.times(found, self._number(lead, power))
        if rest == {(): UNIT}:
            return found
        atom = self._base(rest)
        return self.times(found, single(atom, power))

    def _base(self, rest: Poly) -> Expr:
        atom = written(rest)
        if len(rest) > 1 or not _is_atom(rest):
            self.bases[atom] = rest
        return atom

    def _number(self, value: Fraction, power: Fraction) -> Poly:
        if power.denominator == 1:
            return constant(value ** int(power))
        atom = Const(value)
        self.bases[atom] = constant(value)
        return self._expanded(((atom, power),))

    def _common(self, poly: Poly) -> Term:
        """Positive factors by which no power of them is negative, and one of each is 0."""
        atoms = dict.fromkeys(a for term in poly for a, _ in term if is_positive(a))
        none = Fraction(0)
        shared = {a: min(dict(term).get(a, none) for term in poly) for a in atoms}
        pairs = ((a, p) for a, p in shared.items() if p)
        return tuple(sorted(pairs, key=lambda pair: text(pair[0])))

    def exponential(self, poly: Poly) -> Poly:
        found: Poly = {(): UNIT}
        for term, number in poly.items():
            match term:
                case ((Apply(op="log", args=(inner,)), power),) if power == 1:
                    factor = self.power(self.poly(inner), number)
                case _:
                    factor = single(Apply("exp", (written({term: UNIT}),)), number)
            found = self.times(found, factor)
        return found

    def logarithm(self, poly: Poly) -> Poly:
        if len(poly) != 1:
            return single(Apply("log", (written(poly),)))
        ((term, number),) = poly.items()
        found: Poly = {}
        rest: list[tuple[Expr, Fraction]] = []
        for atom, power in term:
            match atom:
                case Apply(op="exp", args=(inner,)):
                    found = add(found, self.poly(inner), power)
                case _ if is_positive(atom):
                    found = add(found, single(Apply("log", (atom,))), power)
                case _:
                    rest.append((atom, power))
        left: Poly = {tuple(rest): number}
        if left == {(): UNIT}:
            return found
        return add(found, single(Apply("log", (written(left),))))

    # --- deciding --------------------------------------------------------------------

    def cleared(self, poly: Poly) -> Poly:
        """Multiplied by the sums below the line, so that fractions can cancel."""
        for _ in range(8):
            found = self._lowest(poly)
            if found is None:
                return poly
            atom, power = found
            poly = self.times(poly, {((atom, power),): UNIT})
        return poly

    def _lowest(self, poly: Poly) -> tuple[Expr, Fraction] | None:
        """A sum below the line of some term, and the power that brings it up."""
        for term in poly:
            for atom, power in term:
                if power < 0 and (atom in self.bases):
                    lowest = min(dict(t).get(atom, Fraction(0)) for t in poly)
                    return atom, Fraction(-(lowest.numerator // lowest.denominator))
        return None


def _binomial(poly: Poly) -> tuple[Fraction, Term, Fraction] | None:
    """A number, a product of exponentials and its factor, if a sum is of these two."""
    if len(poly) != 2 or () not in poly:
        return None
    ((growth, factor),) = ((t, n) for t, n in poly.items() if t)
    if not all(isinstance(a, Apply) and a.op == "exp" and p > 0 for a, p in growth):
        return None
    return poly[()], growth, factor


def _is_atom(poly: Poly) -> bool:
    ((term, number),) = poly.items()
    return number == 1 and len(term) == 1 and term[0][1] == 1


def _swapped(term: Term) -> Poly:
    return {tuple((atom, -power) for atom, power in term): UNIT}
