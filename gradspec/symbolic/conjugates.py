"""Sums that cancel about a root, as what is left of them over their conjugates.

A sum that is linear in the ``q``-th root ``r`` of ``b``, ``p + s * r``, is a quotient:

    p + s * r = (p**q - (-s)**q * b) / (p**(q - 1) - p**(q - 2) * s * r + …)

The numerator, its *norm*, has no such root. Where powers cancel in it, whatever the inputs
are, the sum cancels for some of them, and the quotient does not: ``g - sqrt(g**2 - h**2)``
is ``h**2 / (g + sqrt(g**2 - h**2))``, ``1 - x / sqrt(x**2 + 4 * q**2)`` the like, and of
``cbrt(x + t) - cbrt(x)`` the norm is ``t``. For even ``q`` the conjugate cancels where the
sum does not: which of the two is taken the sign of ``p * s`` says. For odd ``q`` it is a
positive form that cancels nowhere.

So a whole fraction is gathered, in which a root knows its power, a magnitude its sign;
roots leave sums below the line; and of each factor of what comes of it the norm is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import nodes, size
from gradspec.symbolic.gather import OfSigns, power, product
from gradspec.symbolic.ordered import Term, in_order, place, root_of, total
from gradspec.symbolic.ring import Frac, Poly, TooLarge, Undefined

IsPositive = Callable[[Expr], bool]
"""Whether an expression is positive at all points."""

_HIGHEST = 6
"""The order of a root beyond which it is a function of which nothing is known."""

_REGIMES = 2
"""Signs that are asked for, one within the other."""

_DEPTH = 3
_LONGEST = 200
"""Nodes of what comes of it."""

_ROOTS = {"sqrt": 2, "cbrt": 3}


def conjugated(expr: Expr, is_positive: IsPositive) -> Expr | None:
    """``expr`` as a fraction, with all its conjugates taken; None where it has no roots,
    nor sums of three terms, or is too large for that."""
    try:
        work = _Conjugates(is_positive)
        found = work.told(work.rational(work.of(expr)))
    except (TooLarge, Undefined):
        return None
    form = tidy(found)
    is_new = work.is_used or any(map(_order, nodes(expr)))
    return form if is_new and size(form) <= _LONGEST else None


def _order(node: Expr) -> int:
    """The order of a root, 0 of anything else."""
    match node:
        case Apply(op=op) if op in _ROOTS:
            return _ROOTS[op]
        case Apply(op="pow", args=(_, Const(value=value))) if (
            1 < value.denominator <= _HIGHEST
        ):
            return value.denominator
        case _:
            return 0


@dataclass(frozen=True, slots=True)
class _Split:
    """A factor ``p + s * r`` as ``norm / conjugate``, where ``asked`` is below 0, or, not
    ``is_below``, where it is not; None where the conjugate never cancels."""

    norm: Frac
    conjugate: Poly
    asked: Expr | None
    is_below: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """A fraction times some roots, and the factors whose conjugates may be taken."""

    value: Frac
    roots: tuple[Poly, ...]
    splits: list[tuple[Poly, int, _Split]]
    depth: int


class _Conjugates(OfSigns):
    """Knows what powers of roots are, of quotients too: with ``n / d`` under it,
    ``d * root`` is one of a polynomial, whatever the sign of ``d``."""

    def __init__(self, is_positive: IsPositive) -> None:
        super().__init__()
        self._is_positive = is_positive
        self._signs: dict[int, Poly] = {}  # what has the sign of a root
        self._bases: dict[str, tuple[Expr, int]] = {}  # polynomials under roots
        self.is_used = False

    # --- into fractions --------------------------------------------------------------

    def _convert(self, node: Expr) -> Frac:
        order = _order(node)
        match node:
            case Apply(op="rsqrt", args=(a,)):
                return self.ring.div(self.ring.const(1), self._rooted(a, 2))
            case Apply(op="pow", args=(a, Const(value=value))) if order:
                return self.ring.power(self._rooted(a, order), value.numerator)
            case Apply(args=(a,)) if order:
                return self._rooted(a, order)
            case _:
                return super()._convert(node)

    def _root(self, base: Expr) -> Frac:
        return self._rooted(base, 2)

    def _rooted(self, base: Expr, order: int) -> Frac:
        under = self.rational(self.of(base))
        if under.is_zero:
            return under
        key = "root", order, under.key
        fresh = key not in self._kernels
        below = under.den
        if not fresh:
            known = self.ring.whole(self.ring.generator(key)[0])
            return self.ring.div(known, self.ring.whole(below))
        inside = self._inside(base, under)
        root = self._of_order(inside, order)
        if not below.is_one():
            root = Apply("mul", (self._polynomial(below), root))
        found = self._kernel(key, root)
        raised = self.ring.power_poly(below, order - 1)
        self.ring.relate(key, order, self.ring.mul_poly(under.num, raised))
        self._signs[self.ring.found[key]] = below
        if below.is_one():
            self._bases[str(under.num)] = inside, order
        return self.ring.div(found, self.ring.whole(below))

    def _inside(self, base: Expr, under: Frac) -> Expr:
        """What is under a root: gathered, if a conjugate is taken or it is shorter so."""
        before, self.is_used = self.is_used, False
        form = tidy(self.told(under))
        form = form if self.is_used or size(form) < size(base) else base
        self.is_used |= before
        return form

    @staticmethod
    def _of_order(inside: Expr, order: int) -> Expr:
        for op, known in _ROOTS.items():
            if known == order:
                return Apply(op, (inside,))
        return Apply("pow", (inside, Const(Fraction(1, order))))

    # --- conjugates ------------------------------------------------------------------

    def rational(self, value: Frac) -> Frac:
        """``value`` without sums with roots below the line."""
        ring = self.ring
        for _ in range(_DEPTH):
            _, factors = ring.factor(value.den)
            number, poly = next(
                ((n, p) for p, _ in factors for n in self._linear_in(p)), (-1, None)
            )
            if poly is None:
                return value
            above, conjugate = self._parts(poly, number)
            rest = ring.div(
                ring.whole(value.num), ring.whole(divmod(value.den, poly)[0])
            )
            lifted = ring.mul(rest, ring.whole(conjugate))
            value = ring.div(lifted, ring.whole(above))
        return value

    def _linear_in(self, poly: Poly) -> list[int]:
        """The roots that a sum is linear in, the last first; none of a product."""
        if len(poly) == 1:
            return []
        degrees = poly.degrees()
        return [n for n in reversed(self.ring.relations) if self._is_root(n, degrees)]

    def _is_root(self, number: int, degrees: Any) -> bool:
        return number in self._signs and int(degrees[number]) == 1

    def _parts(self, poly: Poly, number: int) -> tuple[Poly, Poly]:
        """The norm of ``p + s * r`` in the root of this number, and the conjugate."""
        ring = self.ring
        order, _ = ring.relations[number]
        first, slope = self._halves(poly, number)
        turned = -slope * ring.gens[number]
        conjugate = ring.zero
        for k in range(order):
            conjugate += ring.mul_poly(
                ring.power_poly(first, order - 1 - k), ring.power_poly(turned, k)
            )
        conjugate = ring.lower(conjugate)
        return ring.lower(ring.mul_poly(poly, conjugate)), conjugate

    def told(self, value: Frac, depth: int = 0) -> Expr:
        """``value`` with the conjugates of its factors."""
        num, roots = self._without_roots(value)
        left = Frac(num, value.den)
        splits = [*self._splits(left)] if depth < _DEPTH else []
        asked = [s.asked for _, _, s in splits if s.asked is not None]
        if not splits or len(set(asked)) > _REGIMES:
            return self.back(value)
        task = _Task(left, tuple(roots), splits, depth)
        return self._told(task, [*dict.fromkeys(asked)], {})

    def _told(self, task: _Task, asked: list[Expr], known: dict[Expr, bool]) -> Expr:
        if asked:
            first, *rest = asked
            ways = {s.is_below for _, _, s in task.splits if s.asked == first}
            below = self._told(task, rest, {**known, first: True})
            above = self._told(task, rest, {**known, first: False})
            if True in ways:  # what it is at 0 the sum itself says: a sign is 0 there
                return Select(Apply("lt", (first, ZERO)), below, above)
            return Select(Apply("gt", (first, ZERO)), above, below)
        ring, value, top, bottom = self.ring, task.value, list[Expr](), list[Expr]()
        for factor, exponent, split in task.splits:
            if split.asked is None or known[split.asked] is split.is_below:
                change = ring.div(split.norm, ring.whole(factor))
                value = ring.mul(value, ring.power(change, exponent))
                side = bottom if exponent > 0 else top
                side.append(power(self._polynomial(split.conjugate), abs(exponent)))
        self.is_used |= bool(top or bottom)
        for root in task.roots:
            value = ring.mul(value, ring.whole(root))
        rest_of = (
            self.told(value, task.depth + 1) if top or bottom else self.back(value)
        )
        whole = reduce(lambda a, b: Apply("mul", (a, b)), top, rest_of)
        return Apply("div", (whole, product(bottom))) if bottom else whole

    def _without_roots(self, value: Frac) -> tuple[Poly, list[Poly]]:
        """The same for roots of any order."""
        ring, num, roots = self.ring, value.num, list[Poly]()
        for number, (order, base) in ring.relations.items():
            if number not in self._signs or not num.degrees()[number]:
                continue
            if not divmod(value.den, base)[1].is_zero():
                continue
            root = ring.gens[number]
            lifted = ring.lower(ring.mul_poly(num, root ** (order - 1)))
            quotient, rest = divmod(lifted, base)
            if rest.is_zero():
                num = quotient
                roots.append(root)
        return num, roots

    def _powers(self, parts: list[tuple[Poly, int]]) -> list[tuple[Expr, int]]:
        """Roots of quotients as they are, what is below in them with its like."""
        every, plain = list[tuple[Poly, int]](), dict[Expr, Expr]()
        for poly, exponent in parts:
            every.append((poly, exponent))
            key = self.ring.key_of(poly)
            below = self._signs.get(-1 if key is None else self.ring.found[key])
            number, factors = self.ring.factor(below) if below is not None else (1, [])
            if factors and number == 1:
                every += [(factor, exponent * e) for factor, e in factors]
                times = self._kernels[key]
                assert isinstance(times, Apply)
                plain[times] = times.args[1]
        return [(plain.get(form, form), e) for form, e in super()._powers(every)]

    def _polynomial(self, poly: Poly) -> Expr:
        """What is under a root as it stands there; what stands before each product of
        roots together: ``a - c + r``, not ``a + r - c``, which loses ``r``."""
        known = self._bases.get(str(poly))
        if known is not None:
            return known[0]
        groups: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
        for powers, coefficient in poly.terms():
            exponents = tuple(map(int, powers))
            of_roots = tuple(e * (n in self._signs) for n, e in enumerate(exponents))
            rest = tuple(a - b for a, b in zip(exponents, of_roots, strict=True))
            groups.setdefault(of_roots, {})[rest] = coefficient
        if len(groups) == 1:
            return self._ordered(poly) or super()._polynomial(poly)
        context, parts = self.ring.context, list[tuple[bool, Expr]]()
        for of_roots in sorted(groups, key=place):
            before = context.from_dict(groups[of_roots])
            is_minus = before.leading_coefficient() < 0
            size_of = self._polynomial(-before if is_minus else before)
            roots = self._monomial(of_roots, Fraction(1))
            form = size_of if roots == ONE else fold(Apply("mul", (size_of, roots)))
            parts.append((is_minus, form))
        return total(parts)

    def _ordered(self, poly: Poly) -> Expr | None:
        """A sum of three terms of known signs."""
        terms = [self._term(*term) for term in poly.terms()] if len(poly) == 3 else []
        known = [term for term in terms if term is not None]
        found = in_order(known) if len(known) == len(terms) else None
        self.is_used |= found is not None
        return found

    def _term(self, powers: Any, coefficient: Any) -> Term | None:
        """One that is not negative but for its sign."""
        exponents = tuple(map(int, powers))
        number = Fraction(int(coefficient.p), int(coefficient.q))
        form = self._monomial(exponents, abs(number))
        if any(e % 2 for e in exponents):
            return Term(number < 0, form) if self._is_positive(form) else None
        halves, root = tuple(e // 2 for e in exponents), root_of(abs(number))
        half = None if root is None else self._monomial(halves, root)
        return Term(number < 0, form, half)

    def _splits(self, value: Frac) -> Iterator[tuple[Poly, int, _Split]]:
        for poly, other, side in (
            (value.num, value.den, 1),
            (value.den, value.num, -1),
        ):
            for factor, exponent in self.ring.factor(poly)[1]:
                found = self._split(factor, other)
                if found is not None:
                    yield factor, side * exponent, found

    def _split(self, poly: Poly, other: Poly) -> _Split | None:
        """In the root whose norm is shortest, if powers cancel in it, or what is on the
        ``other`` side of the line with it."""
        best: _Split | None = None
        shortest = 0
        for number in self._linear_in(poly):
            norm, conjugate = self._parts(poly, number)
            if norm.is_zero() or (best is not None and len(norm) >= shortest):
                continue
            is_less = len(norm) < self._apart(poly, number)
            if not is_less and norm.gcd(other).is_constant():
                continue
            asked = self._asked(poly, number)
            if asked is not None:
                best, shortest = (
                    _Split(self.ring.whole(norm), conjugate, *asked),
                    len(norm),
                )
        return best

    def _halves(self, poly: Poly, number: int) -> tuple[Poly, Poly]:
        """``p`` and ``s``."""
        slope = poly.derivative(number)
        return poly - slope * self.ring.gens[number], slope

    def _apart(self, poly: Poly, number: int) -> int:
        """How many terms the norm has if none cancel."""
        ring = self.ring
        order, base = ring.relations[number]
        first, last = (ring.power_poly(p, order) for p in self._halves(poly, number))
        last = ring.lower(ring.mul_poly(ring.lower(last), base))
        return len(ring.lower(first)) + len(last)

    def _asked(self, poly: Poly, number: int) -> tuple[Expr | None, bool] | None:
        """What is of one sign where ``p`` and ``s * r`` are of unlike signs, and whether
        that is below 0; None if they never are."""
        ring = self.ring
        if ring.relations[number][0] % 2:
            return None, True
        is_minus, odd = False, dict[str, Poly]()
        for part in (*self._halves(poly, number), self._signs[number]):
            leading, found = ring.factor(part)
            is_minus ^= leading < 0
            for factor, exponent in found:
                if exponent % 2:
                    odd[str(factor)] = factor if str(factor) not in odd else ring.one
        left: list[Expr] = []
        for factor in odd.values():
            _, order = self._bases.get(str(factor), (None, 1))
            if order % 2 == 0:
                continue
            form = self._signed(factor)
            if self._is_positive(form):
                continue
            if self._is_positive(tidy(Apply("neg", (form,)))):
                is_minus = not is_minus
            else:
                left.append(form)
        if not left:
            return (None, True) if is_minus else None
        return product(left), not is_minus

    def _signed(self, factor: Poly) -> Expr:
        """A factor; of an even root, which is no negative number, what has its sign."""
        key = self.ring.key_of(factor)
        number = None if key is None else self.ring.found[key]
        if number in self._signs and self.ring.relations[number][0] % 2 == 0:
            return self._polynomial(self._signs[number])
        return self._polynomial(factor)
