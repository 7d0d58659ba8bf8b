"""The normal form of a smooth expression: a fraction over variables and kernels.

``exp(2 * x + log(y))`` becomes ``E**2 * y`` with ``E`` the kernel ``exp(x)``,
``log(1 + exp(x)) - x`` becomes ``log(1 + E) - log(E)``, roots are split by their
factors. Each step is an identity wherever both sides are defined; where one needs a
sign that the facts do not give, :class:`Split` asks for the region to be divided.
Whatever else is not known stays a kernel by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

from gradspec.ir.evaluate import Known, evaluate
from gradspec.ir.expr import Expr, Key, Select
from gradspec.primitives.lookup import elementary, primitive
from gradspec.primitives.row import Primitive
from gradspec.symbolic.proof.ring import (
    Facts,
    Frac,
    Poly,
    Ring,
    TooLarge,
    common,
    fraction,
    primes,
)

_MOST_STEPS = 400


class Split(Exception):
    """Raised where the sign of ``poly`` is needed to go on; ``with_border``: its zeros
    are part of the claim."""

    def __init__(self, poly: Poly, with_border: bool = False) -> None:
        super().__init__()
        self.poly, self.with_border = poly, with_border


class Refine(Exception):
    """A kernel is needed in smaller steps: ``sqrt(x)`` after ``x``, ``exp(x / 2)``."""

    def __init__(self, key: object, step: Fraction) -> None:
        super().__init__()
        self.key, self.step = key, step


class Empty(Exception):
    """The region is empty: its facts contradict each other, or a root or a logarithm
    has a negative argument."""


class Normal:
    """Normal forms on one region. ``steps`` is kept between attempts; ``operations``
    are the primitives of which more than a symmetry is used (`kernels.OPERATIONS`)."""

    def __init__(
        self,
        ring: Ring,
        facts: Facts,
        steps: dict[Any, Fraction],
        operations: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.ring, self.facts, self.steps = ring, facts, steps
        self.operations = operations
        self.values: dict[str, Frac] = {}
        self.whole: frozenset[tuple[str, str]] = frozenset()  # keys of integer inputs
        self.known: Known = {}

    def of(self, root: Expr) -> Frac:
        """The normal form of an expression, with the branches that the region takes.

        Conditions come first: what they ask for divides regions best.
        """
        for _ in self.taken_nodes(root, self.known):
            pass
        return evaluate(root, self, self.known)  # type: ignore[no-any-return]

    def taken_nodes(self, root: Expr, without: Container[Key] = ()) -> Iterator[Expr]:
        """The nodes of an expression in the branches that the region takes, conditions
        apart."""
        todo, seen = [root], set[Key]()
        while todo:
            node = todo.pop()
            if node.key in seen or node.key in without:
                continue
            seen.add(node.key)
            yield node
            if isinstance(node, Select):
                is_true = self.truth_of(self.of(elementary(node.condition)))
                todo.append(node.then if is_true else node.other)
            else:
                todo += reversed(node.below)

    # --- the algebra of normal forms

    def constant(self, value: Fraction) -> Frac:
        return self.ring.const(value)

    def operation(self, op: str) -> Callable[..., Any]:
        if op in self.operations:
            return partial(self.operations[op], self)
        row = primitive(op)
        if not row.params:
            raise NotImplementedError("infinity")
        if row.zero_from is not None:
            return lambda part: self.step_function(op, part)
        return lambda *parts: self.opaque(op, parts)

    def truth_of(self, condition: Any) -> bool:
        return condition if isinstance(condition, bool) else self.order(condition) != 0

    def select(self, condition: Any, then: Any, other: Any) -> Any:
        raise NotImplementedError("a condition that is not decided")

    def variable(self, name: str) -> Frac:
        known = self.values.get(name)
        if known is not None:
            return known
        return self.ring.whole(self.ring.generator(("variable", name))[0])

    def pi(self) -> Frac:
        return self._positive(("pi",))

    def sign(self, value: Frac) -> int:
        """1, -1 or 0; where it is not known the region is split."""
        if value.is_zero:
            return 0
        number, _, unknown = self.signed_factors(value)
        for poly, exponent in unknown:
            if exponent % 2:
                raise Split(poly)
        return 1 if number > 0 else -1

    def order(self, value: Frac) -> int:
        """The sign of a difference, for a comparison."""
        return self._order(value.num) * self._order(value.den)

    def _order(self, poly: Poly) -> int:
        sign = self.facts.sign(poly)
        if sign is not None:
            return sign
        number, factors = self.ring.factor(poly)
        total = 1 if number > 0 else -1
        for factor, exponent in factors:
            known = self.facts.sign(factor)
            if known is None:
                gap = self.ring.exponent_gap(factor)
                if gap is None:
                    raise Split(factor)
                known = self.order(gap)
            total *= known if exponent % 2 else abs(known)
        return total

    def _positive(self, key: object) -> Frac:
        generator, _ = self.ring.generator(key)
        self.facts.by_nature.add(self.ring.found[key])
        return self.ring.whole(generator)

    # --- functions of which only symmetries are used

    def step_function(self, op: str, part: Frac) -> Frac:
        """A whole number is its own floor."""
        ring = self.ring
        if part.den.is_one() and all(
            coefficient.q == 1
            and all(
                not exponent or ring.keys[number] in self.whole
                for number, exponent in enumerate(exponents)
            )
            for exponents, coefficient in part.num.terms()
        ):
            return part
        return self.opaque(op, (part,))

    def opaque(self, op: str, parts: tuple[Frac, ...]) -> Frac:
        row = primitive(op)
        if row.symmetry and parts[0].num.leading_coefficient() < 0:
            value = self.opaque(op, (self.ring.neg(parts[0]),))
            return self.ring.neg(value) if row.symmetry == "odd" else value
        if row.symmetry == "odd" and parts[0].is_zero:
            return self.ring.const(0)
        undone = self._undone(row, parts[0])
        if undone is not None:
            return undone
        key = ("function", op, *(part.key for part in parts))
        generator, _ = self.ring.generator(key)
        self.ring.arguments[key] = parts
        if row.bounds[0] and Fraction(row.bounds[0]) > 0:
            self.facts.by_nature.add(self.ring.found[key])
        return self.ring.whole(generator)

    def _undone(self, row: Primitive, part: Frac) -> Frac | None:
        """``u`` of ``erfinv(erf(u))``."""
        key = self.ring.key_of(part.num) if part.den.is_one() else None
        if key is None or key[0] != "function":
            return None
        inner = primitive(key[1])
        is_inverse = inner.inverse == f"{row.name}(out)"
        return self.ring.arguments[key][0] if is_inverse else None

    # --- products of positive factors

    def factors(self, value: Frac) -> tuple[Fraction, list[tuple[Poly, int]]]:
        """``value``, which stands under a root or a logarithm and so is positive, as a
        number times powers of polynomials that are positive here.

        One factor of unknown sign must then be positive itself; of two, the region is
        split.
        """
        number, known, unknown = self.signed_factors(value)
        for poly, exponent in unknown:
            if exponent % 2 == 0 or len(unknown) > 1:
                raise Split(poly)
        for poly, exponent in unknown:
            positive = poly if number > 0 else -poly
            self.facts.assume(positive, closed=True)
            if not self.facts.has_interior():
                raise Empty if self.facts.is_empty() else NotImplementedError
            known.append((positive, exponent))
            number = abs(number)
        return number, known

    def signed_factors(
        self, value: Frac
    ) -> tuple[Fraction, list[tuple[Poly, int]], list[tuple[Poly, int]]]:
        """A number, the factors of known sign (turned positive), and the others."""
        number, parts = self._factor(value)
        known: list[tuple[Poly, int]] = []
        unknown: list[tuple[Poly, int]] = []
        for poly, exponent in parts:
            sign = self.facts.sign(poly)
            if sign is None:
                unknown.append((poly, exponent))
                continue
            if sign < 0 and exponent % 2:
                number = -number
            known.append((poly if sign > 0 else -poly, exponent))
        return number, known, unknown

    def _factor(self, value: Frac) -> tuple[Fraction, list[tuple[Poly, int]]]:
        number, above = self._split_up(value.num)
        divisor, below = self._split_up(value.den)
        parts = [*above, *((poly, -exponent) for poly, exponent in below)]
        return fraction(number) / fraction(divisor), parts

    def _split_up(self, poly: Poly) -> tuple[Any, list[tuple[Poly, int]]]:
        """Irreducible factors, with ``sin**2`` in place of ``(1 - cos) * (1 +
        cos)``."""
        number, parts = self.ring.factor(poly)
        found = {str(base): exponent for base, exponent in parts}
        for key in [k for k in self.ring.keys if k[0] == "sin"]:
            cosine, _ = self.ring.generator(("cos", key[1]))
            low, high = cosine - 1, cosine + 1
            times = min(found.get(str(low), 0), found.get(str(high), 0))
            if times:
                sine, _ = self.ring.generator(key)
                left = [(b, e - times if b in (low, high) else e) for b, e in parts]
                parts = [(b, e) for b, e in left if e] + [(sine, 2 * times)]
                number = -number if times % 2 else number
        return number, parts

    def log(self, value: Frac) -> Frac:
        number, parts = self.factors(value)
        if number <= 0:
            raise Empty
        total = self._log_number(number)
        for poly, exponent in parts:
            part = self.ring.mul(self.ring.const(exponent), self._log_of(poly))
            total = self.ring.add(total, part)
        return total

    def _log_number(self, number: Fraction) -> Frac:
        total = self.ring.const(0)
        for prime, exponent in primes(number):
            key = ("log", str(prime))
            self.ring.bases[key] = self.ring.const(prime).num
            generator = self._positive(key)
            part = self.ring.mul(self.ring.const(exponent), generator)
            total = self.ring.add(total, part)
        return total

    def _log_of(self, poly: Poly) -> Frac:
        """Of one positive factor; of an exponential or a root, what it was made
        from."""
        known = self._kernel_log(poly)
        if known is not None:
            return known
        key = ("log", str(poly))
        self.ring.bases[key] = poly
        return self.ring.whole(self.ring.generator(key)[0])

    def _kernel_log(self, poly: Poly) -> Frac | None:
        key = self.ring.key_of(poly)
        if key is None:
            return None
        if key[0] == "root":
            step = self.ring.const(self.steps[key])
            base = self.ring.relations[self.ring.found[key]][1]
            return self.ring.mul(step, self._log_of(base))
        return self.ring.logarithms.get(key)

    def rational_power(self, value: Frac, power: Fraction) -> Frac:
        if power.denominator == 1:
            return self.ring.power(value, int(power))
        if value.is_zero:
            return value
        number, parts = self.factors(value)
        if number < 0:
            raise Empty
        result = self.ring.const(1)
        for prime, exponent in primes(number):
            base = self.ring.const(prime).num
            result = self.ring.mul(result, self._root(base, exponent * power))
        for poly, exponent in parts:
            result = self.ring.mul(result, self._root(poly, exponent * power))
        return result

    def _root(self, base: Poly, power: Fraction) -> Frac:
        """``base ** power`` for a positive base."""
        if power.denominator == 1:
            return self.ring.power(self.ring.whole(base), int(power))
        logarithm = self._kernel_log(base)
        if logarithm is not None:
            return self.exp(self.ring.mul(self.ring.const(power), logarithm))
        plain = self._denest(base) if power.denominator == 2 else None
        if plain is not None:
            return self.ring.power(plain, int(2 * power))
        key = ("root", str(base))
        step = self.step(key, Fraction(1, power.denominator))
        generator, fresh = self.ring.generator(key)
        if fresh:
            self.ring.relate(key, step.denominator, base)
            self.facts.by_nature.add(self.ring.found[key])
        return self.ring.power(self.ring.whole(generator), int(power / step))

    def _denest(self, base: Poly) -> Frac | None:
        """The square root of ``a + b``, where ``b`` holds a root and ``a**2 - b**2`` is
        the square of a ``c``: ``sqrt((a + c) / 2) + sign(b) * sqrt((a - c) / 2)``."""
        ring, half = self.ring, Fraction(1, 2)
        degrees = base.degrees()
        for number in reversed(ring.relations):
            power, below = ring.relations[number]
            if power != 2 or degrees[number] != 1:
                continue
            slope = base.derivative(number)
            rest = base - slope * ring.gens[number]
            root = self._square_root(ring.lower(rest * rest - slope * slope * below))
            if root is None:
                continue
            halves = [
                ring.mul(ring.const(half), ring.whole(part))
                for part in (rest + root, rest - root)
            ]
            first, second = (self.rational_power(part, half) for part in halves)
            if self.sign(ring.whole(slope)) < 0:
                return ring.sub(first, second)
            return ring.add(first, second)
        return None

    def _square_root(self, poly: Poly) -> Poly | None:
        if poly.is_zero():
            return None
        number, parts = self.ring.factor(poly)
        if number < 0 or any(exponent % 2 for _, exponent in parts):
            return None
        above, below = isqrt(int(number.p)), isqrt(int(number.q))
        if above * above != number.p or below * below != number.q:
            return None
        root = self.ring.const(Fraction(above, below)).num
        for factor, exponent in parts:
            root *= factor ** (exponent // 2)
        return root

    def step(self, key: object, wanted: Fraction) -> Fraction:
        """The unit in which a kernel is counted; smaller ones start all over."""
        have = self.steps.setdefault(key, abs(wanted))
        if (wanted / have).denominator != 1:
            raise Refine(key, common(have, abs(wanted)))
        return have

    # --- sums of terms: exponentials and trigonometry

    def terms(self, value: Frac) -> list[tuple[Frac, Fraction]]:
        """A fraction as a sum of products with rational coefficients taken out."""
        found: dict[str, tuple[Frac, Fraction]] = {}
        for exponents, coefficient in value.num.terms():
            monomial = self.ring.context.from_dict({tuple(exponents): 1})
            part = self.ring.normal(monomial, value.den)
            lead = part.num.leading_coefficient()
            unit = Frac(part.num / lead, part.den)
            scale = fraction(coefficient * lead)
            _, before = found.get(unit.key, (unit, Fraction(0)))
            found[unit.key] = (unit, before + scale)
        return [(unit, scale) for unit, scale in found.values() if scale]

    def exp(self, value: Frac) -> Frac:
        result = self.ring.const(1)
        for unit, scale in self.terms(value):
            result = self.ring.mul(result, self._exp_term(unit, scale))
        return result

    def _exp_term(self, unit: Frac, scale: Fraction) -> Frac:
        base = self._log_base(unit)
        if base is not None:
            return self._root(base, scale)
        key = ("exp", unit.key)
        step = self.step(key, scale)
        generator, fresh = self.ring.generator(key)
        if fresh:
            self.facts.by_nature.add(self.ring.found[key])
            self.ring.logarithms[key] = self.ring.mul(self.ring.const(step), unit)
        times = int(scale / step)
        if abs(times) > _MOST_STEPS:
            raise TooLarge
        return self.ring.power(self.ring.whole(generator), times)

    def _log_base(self, unit: Frac) -> Poly | None:
        """``b`` if the term is ``log(b)``."""
        key = self.ring.key_of(unit.num) if unit.den.is_one() else None
        return None if key is None else self.ring.bases.get(key)

    # --- operations

    def power(self, base: Frac, exponent: Frac) -> Frac:
        if exponent.num.is_constant() and exponent.den.is_one():
            value = exponent.num.leading_coefficient() if not exponent.is_zero else 0
            return self.rational_power(base, fraction(value))
        return self._formal_power(base, exponent)

    def _formal_power(self, base: Frac, exponent: Frac) -> Frac:
        """``exp(exponent * log(base))``; the logarithm is only a name for what obeys
        the laws of powers, so that nothing is assumed of the base's sign."""
        number, known, unknown = self.signed_factors(base)
        if number <= 0 or any(times % 2 == 0 for _, times in unknown):
            return self.opaque("pow", (base, exponent))
        if len(unknown) > 1:
            return self.opaque("pow", (base, exponent))
        total = self._log_number(number)
        for poly, times in (*known, *unknown):
            part = self.ring.mul(self.ring.const(times), self._log_of(poly))
            total = self.ring.add(total, part)
        return self.exp(self.ring.mul(exponent, total))

    def cube_root(self, value: Frac) -> Frac:
        """Of either sign."""
        if value.is_zero:
            return value
        number, _, unknown = self.signed_factors(value)
        if unknown:
            raise Split(unknown[0][0])
        if number > 0:
            return self.rational_power(value, Fraction(1, 3))
        root = self.rational_power(self.ring.neg(value), Fraction(1, 3))
        return self.ring.neg(root)
