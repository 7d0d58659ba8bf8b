"""Fractions of exponentials of several inputs, with one exponential outside.

``sinh(x) * y / cosh(x + z)`` is an ordinary number where both functions overflow, and so is
``exp(a) / (1 + exp(b))``. As a fraction of polynomials in ``exp(x)`` and ``exp(z)``, in lowest
terms, nothing is left in it that cancels: the slope ``y * (cosh(x) * cosh(x + z) - sinh(x) *
sinh(x + z)) / cosh(x + z)**2`` has become ``y * cosh(z) / cosh(x + z)**2``, and that of
``expm1(p + q) / (expm1(p) * expm1(q))`` in ``p`` is ``-exp(p) / expm1(p)**2``. Each factor ``sum
c * exp(L)`` then is ``exp(M)`` with ``M = max(L)``, times ``sum c * exp(L - M)``, which is
bounded (``exp(p) - exp(q)`` through ``expm1`` of the smaller difference), and the exponents
of all factors are one.

Their sum ``E + max(A1, A2) - max(B1, B2)`` must not be added up as it stands, since an
exponential makes an absolute error of its argument a relative one. It is the largest,
over ``i``, of the least, over ``j``, of ``E + Ai - Bj``, and these are gathered by algebra:
``|x| - |x + z|`` is ``max(min(-z, 2 * x + z), min(-2 * x - z, z))``. Before that, maxima of
multiples of one difference are one: ``max(p, q) = q + max(p - q, 0)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import product as choices
from math import gcd, lcm, prod

from gradspec.derive.build import negate, plus, times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, size, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_bounds import VANISHING
from gradspec.symbolic.gather import Gather
from gradspec.symbolic.ring import Frac, Poly, TooLarge, Undefined

_LARGEST = 300
_HIGHEST = 24
"""How often an exponential may be multiplied with itself."""

_TERMS, _WAYS, _MOST = 4, 24, 8
"""Exponentials of one factor that may be its largest, sums of exponents that are compared,
and exponentials of one factor at all."""

_LONGEST = 260
_TURNS = 4

_RATIONAL = frozenset(["add", "sub", "mul", "div", "neg", "square", "exp"])


def peeled(starts: tuple[Expr, ...]) -> Iterator[Expr]:
    """The forms of ``starts`` (without conditionals) that have several exponentials."""
    for start in dict.fromkeys(starts):
        form = _peeled(start) if _is_suitable(start) else None
        if form is not None and size(form) <= _LONGEST:
            yield form


def _is_suitable(start: Expr) -> bool:
    found = tuple(nodes(start))
    if size(start) > _LARGEST or any(isinstance(node, Select) for node in found):
        return False
    return any(isinstance(n, Apply) and _meaning(n.op) is not None for n in found)


@lru_cache(maxsize=256)
def _peeled(start: Expr) -> Expr | None:
    found = as_exponentials(start)
    return None if found is None else peeled_of(*found)


def peeled_of(work: Exponentials, value: Frac) -> Expr | None:
    """The fraction with one exponential outside; None if it is too large for that."""
    try:
        return work.form(value)
    except (TooLarge, Undefined):
        return None


def vanishes(expr: Expr) -> bool:
    """Whether an expression is 0 as a fraction of exponentials; False if it is not known."""
    found = as_exponentials(expr)
    return found is not None and found[1].is_zero


def as_exponentials(expr: Expr) -> tuple[Exponentials, Frac] | None:
    """An expression as a fraction of exponentials, with the ring that it is of."""
    steps: dict[str, Fraction] = {}
    for _ in range(_TURNS):
        work = Exponentials(steps)
        try:
            return work, work.of(expr)
        except _Finer:
            continue
        except (TooLarge, Undefined):
            return None
    return None


@lru_cache(maxsize=256)
def _meaning(op: str) -> Expr | None:
    """A function as a fraction of exponentials; None if it is none."""
    if op == "exp":
        return Apply("exp", (Ref("x"),))
    row = primitive(op)
    if row.meaning is None:
        return None
    form = formula(row.meaning)
    used = {node.op for node in nodes(form) if isinstance(node, Apply)}
    others = used - _RATIONAL
    is_plain = not any(isinstance(node, Select) for node in nodes(form))
    known = all(inner != op and _meaning(inner) is not None for inner in others)
    return form if is_plain and known and (others or "exp" in used) else None


class _Finer(Exception):
    """An exponential is needed in smaller steps: ``exp(x / 2)`` after ``exp(x)``."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """What is bounded, the exponents of which the largest is outside, and the power."""

    bounded: Expr
    exponents: tuple[Frac, ...]
    power: int


class Exponentials(Gather):
    """Exponentials of sums are products; each term of an exponent has a kernel."""

    def __init__(self, steps: dict[str, Fraction]) -> None:
        super().__init__()
        self._steps = steps

    def _convert(self, node: Expr) -> Frac:
        match node:
            case Apply(op=op, args=(a, b)) if op == VANISHING:
                return self.ring.mul(self.of(a), self.of(b))
            case Apply(op=op, args=args) if op not in _RATIONAL:
                meaning = _meaning(op)
                if meaning is None:
                    return super()._convert(node)
                values = dict(zip(primitive(op).params, args, strict=True))
                return self.of(substitute(meaning, values))
            case _:
                return super()._convert(node)

    def _exponential(self, exponent: Expr) -> Frac:
        value, total = self.of(exponent), self.ring.const(1)
        for powers, number in value.num.terms():
            monomial = self.ring.context.from_dict({tuple(powers): 1})
            unit = self.ring.normal(monomial, value.den)
            rate = Fraction(int(number.p), int(number.q))
            total = self.ring.mul(total, self._of_term(unit, rate))
        return total

    def _of_term(self, unit: Frac, rate: Fraction) -> Frac:
        step = self._steps.setdefault(unit.key, abs(rate))
        if (rate / step).denominator != 1:
            self._steps[unit.key] = _common(step, rate)
            raise _Finer
        if abs(rate / step) > _HIGHEST:
            raise TooLarge
        key = "exp", unit.key
        self.ring.logarithms[key] = self._scaled(unit, step)
        kernel = self._kernel(key, Apply("exp", (self.back(unit),)))
        return self.ring.power(kernel, int(rate / step))

    def _scaled(self, value: Frac, number: Fraction | int) -> Frac:
        return self.ring.mul(self.ring.const(number), value)

    # --- factors ---------------------------------------------------------------------

    def form(self, value: Frac) -> Expr | None:
        """The whole with one exponential; None without several exponents, or with more
        than can be compared."""
        number, above = self.ring.factor(value.num)
        divisor, below = self.ring.factor(value.den)
        found: list[_Factor] = []
        for poly, power in (*above, *((p, -n) for p, n in below)):
            factor = self._factor(poly, power)
            if factor is None:
                return None
            found.append(factor)
        outside = self._outside(found)
        if outside is None:
            return None
        whole = Fraction(int(number.p), int(number.q))
        whole /= Fraction(int(divisor.p), int(divisor.q))
        top = [_power(f.bounded, f.power) for f in found if f.power > 0]
        bottom = [_power(f.bounded, -f.power) for f in found if f.power < 0]
        form = _product([Const(whole), *top, Apply("exp", (outside,))])
        return tidy(Apply("div", (form, _product(bottom))) if bottom else form)

    def _factor(self, poly: Poly, power: int) -> _Factor | None:
        """A polynomial by its exponentials, the largest of them outside."""
        grouped: dict[str, tuple[Frac, Poly]] = {}
        for powers, coefficient in poly.terms():
            exponent, rest = self.ring.const(0), [int(n) for n in powers]
            for number, degree in enumerate(rest):
                log = self._logarithm(number) if degree else None
                if log is not None:
                    exponent = self.ring.add(exponent, self._scaled(log, degree))
                    rest[number] = 0
            plain = self.ring.context.from_dict({tuple(rest): coefficient})
            _, before = grouped.get(exponent.key, (exponent, self.ring.zero))
            grouped[exponent.key] = exponent, before + plain
        exponents = tuple(exponent for exponent, _ in grouped.values())
        ends = self._ends(exponents)
        if len(ends) > _TERMS or len(exponents) > _MOST:
            return None
        weights = [weight for _, weight in grouped.values()]
        return _Factor(self._bounded(exponents, weights, ends), ends, power)

    def _ends(self, exponents: tuple[Frac, ...]) -> tuple[Frac, ...]:
        """Those that may be the largest: of several on a line, the two outermost."""
        if len(exponents) <= 2:
            return exponents
        first, *rest = exponents
        gaps = [self.ring.sub(other, first) for other in rest]
        rates = [self.ring.div(gap, gaps[0]) for gap in gaps]
        if not all(r.num.is_constant() and r.den.is_constant() for r in rates):
            return exponents
        numbers = [Fraction(0)]
        numbers += [_number(r.num) / _number(r.den) for r in rates]
        places = sorted(range(len(exponents)), key=lambda place: numbers[place])
        return exponents[places[0]], exponents[places[-1]]

    def _logarithm(self, number: int) -> Frac | None:
        return self.ring.logarithms.get(self.ring.keys[number])

    def _bounded(
        self, exponents: tuple[Frac, ...], weights: list[Poly], ends: tuple[Frac, ...]
    ) -> Expr:
        """``sum w * exp(L - max(L))``; where the numbers ``w`` add up to 0, of ``expm1``."""
        given = [self._polynomial(weight) for weight in weights]
        if len(exponents) == 1:
            return given[0]
        cancels = sum(weights, start=self.ring.zero).is_zero()
        if len(exponents) == 2 and (cancels or weights[0] == weights[1]):
            return times(given[0], _of_two(self._difference(*exponents), cancels))
        total: Expr = ZERO
        for place, weight in enumerate(given):
            others = [e for e in ends if e.key != exponents[place].key]
            gaps = [self._difference(exponents[place], other) for other in others]
            below = reduce(_smaller, [ZERO, *gaps])
            term = Apply("expm1" if cancels else "exp", (below,))
            total = plus(total, times(weight, term))
        return total

    def _difference(self, one: Frac, other: Frac) -> Expr:
        return self.back(self.ring.sub(one, other))

    # --- their exponents --------------------------------------------------------------

    def _outside(self, factors: list[_Factor]) -> Expr | None:
        """The largest exponent of each factor, as often as its power says."""
        exponent = self.ring.const(0)
        ridges: dict[str, tuple[Frac, Fraction]] = {}
        lists: list[tuple[int, list[Frac]]] = []
        for factor in factors:
            first, *rest = factor.exponents
            exponent = self.ring.add(exponent, self._scaled(first, factor.power))
            gaps = [self.ring.sub(other, first) for other in rest]
            if not gaps:
                continue
            if len(gaps) == 1:
                exponent = self._gathered(ridges, exponent, gaps[0], factor.power)
            else:
                tops = [self._scaled(gap, factor.power) for gap in gaps]
                lists.append((factor.power, [self.ring.const(0), *tops]))
        for unit, weight in ridges.values():
            if weight:
                both = [self.ring.const(0), self._scaled(unit, weight)]
                lists.append((1 if weight > 0 else -1, both))
        above, below = ([e for side, e in lists if side * s > 0] for s in (1, -1))
        if prod(len(each) for _, each in lists) > _WAYS:
            return None
        rows = []
        for one in choices(*above):
            start = reduce(self.ring.add, one, exponent)
            row = [self.back(reduce(self.ring.add, o, start)) for o in choices(*below)]
            rows.append(reduce(_smaller, dict.fromkeys(row)))
        return reduce(_larger, dict.fromkeys(rows))

    def _gathered(
        self,
        ridges: dict[str, tuple[Frac, Fraction]],
        exponent: Frac,
        gap: Frac,
        power: int,
    ) -> Frac:
        """``power * max(gap, 0)`` put to those of multiples of ``gap``: ``max(-g, 0)`` is
        ``max(g, 0) - g``."""
        lead = gap.num.leading_coefficient()
        unit = Frac(gap.num / lead, gap.den)
        rate = power * Fraction(int(lead.p), int(lead.q))
        _, before = ridges.get(unit.key, (unit, Fraction(0)))
        ridges[unit.key] = unit, before + abs(rate) * (1 if power > 0 else -1)
        return (
            exponent if lead > 0 else self.ring.add(exponent, self._scaled(gap, power))
        )


def _of_two(gap: Expr, cancels: bool) -> Expr:
    """``1 + exp(-|gap|)``, or, for a difference, ``1 - exp(-|gap|)`` with the sign."""
    falling = negate(Apply("abs", (gap,)))
    if not cancels:
        return Apply("add", (ONE, Apply("exp", (falling,))))
    fallen = Apply("expm1", (falling,))
    return Select(Apply("lt", (gap, ZERO)), fallen, Apply("neg", (fallen,)))


def _product(parts: list[Expr]) -> Expr:
    """One after the other, conditionals as they are."""
    total: Expr = ONE
    for part in parts:
        total = fold(Apply("mul", (total, part)))
    return total


def _smaller(one: Expr, other: Expr) -> Expr:
    return Apply("min", (one, other))


def _larger(one: Expr, other: Expr) -> Expr:
    return Apply("max", (one, other))


def _power(base: Expr, exponent: int) -> Expr:
    if exponent == 1:
        return base
    if exponent == 2:
        return Apply("square", (base,))
    return Apply("pow", (base, Const(Fraction(exponent))))


def _common(one: Fraction, other: Fraction) -> Fraction:
    """The greatest number of which both are whole multiples."""
    below = lcm(one.denominator, other.denominator)
    return Fraction(gcd(int(one * below), int(other * below)), below)


def _number(constant: Poly) -> Fraction:
    value = constant.leading_coefficient()
    return Fraction(int(value.p), int(value.q))
