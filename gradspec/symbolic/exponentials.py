"""Functions of one variable that are fractions of polynomials in it and an exponential.

``tanh``, ``sigmoid``, their derivatives, ``tanh`` of a ``softplus`` and the like are
``A / B`` with ``A`` and ``B`` polynomials in ``x`` and ``E = exp(unit * x)``, factored here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, lcm
from typing import Any, TypeAlias

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.ring import Frac, Poly, Ring, TooLarge, Undefined

Terms: TypeAlias = "tuple[tuple[tuple[int, int], Fraction], ...]"
"""A polynomial: powers of ``x`` and of ``E``, and the coefficient."""

_HIGHEST = 16
_ORDINARY = frozenset(
    ["add", "sub", "mul", "div", "neg", "square", "pow", "exp", "log"]
)


class NoFraction(Exception):
    """The function is not of this kind."""


@dataclass(frozen=True, slots=True)
class Factored:
    """``number * E**shift`` times the factors to their powers, ``E = exp(unit * x)``."""

    unit: Fraction
    number: Fraction
    shift: int
    factors: tuple[tuple[Terms, int], ...]


def factored(expr: Expr, name: str) -> Factored:
    """The fraction that an expression in ``name`` alone is, or :class:`NoFraction`."""
    whole = _expanded(expr, name)
    unit = _unit(whole, name)
    try:
        work = _Convert(name, unit)
        return work.factored(work.of(whole))
    except (TooLarge, Undefined) as fault:
        raise NoFraction from fault


def _expanded(expr: Expr, name: str) -> Expr:
    """Every function written out as the table says, down to exponentials and
    logarithms."""
    for _ in range(8):
        other = [
            n for n in nodes(expr) if isinstance(n, Apply) and n.op not in _ORDINARY
        ]
        if not other:
            return tidy(expr)
        node = other[-1]
        row = primitive(node.op)
        if row.meaning is None or row.arity != 1:
            raise NoFraction
        written = substitute(formula(row.meaning), {row.params[0]: Ref("·")})
        memo = {node.op: written}
        expr = _written_out(expr, memo)
    raise NoFraction


def _written_out(expr: Expr, meanings: dict[str, Expr]) -> Expr:
    from gradspec.ir.walk import transform

    def visit(node: Expr) -> Expr:
        if isinstance(node, Apply) and node.op in meanings:
            return substitute(meanings[node.op], {"·": node.args[0]})
        return node

    return transform(expr, visit)


def _unit(expr: Expr, name: str) -> Fraction:
    """The greatest number of which all factors of the variable in exponents are whole
    multiples."""
    found = [Fraction(1)]
    for node in nodes(expr):
        match node:
            case Apply(op="exp", args=(arg,)):
                found += _rates(arg, name)
            case _:
                continue
    rates = [abs(r) for r in found[1:] if r] or found
    top = gcd(
        *(
            r.numerator * (lcm(*(s.denominator for s in rates)) // r.denominator)
            for r in rates
        )
    )
    return Fraction(top, lcm(*(s.denominator for s in rates)))


def _rates(arg: Expr, name: str) -> list[Fraction]:
    match arg:
        case Ref(name=found) if found == name:
            return [Fraction(1)]
        case Apply(op="neg", args=(a,)):
            return _rates(a, name)
        case Apply(op="add" | "sub", args=(a, b)):
            return _rates(a, name) + _rates(b, name)
        case (
            Apply(op="mul", args=(Const(value=c), a))
            | Apply(op="mul", args=(a, Const(value=c)))
        ):
            return [c * r for r in _rates(a, name)]
        case Apply(op="div", args=(a, Const(value=c))) if c:
            return [r / c for r in _rates(a, name)]
        case _:
            return []


def at_infinity(found: Factored, sign: int) -> Fraction | None:
    """The limit where the variable runs to infinity of this sign, if it is finite: of each
    factor the terms with the most of ``E`` remain (on the left, the least)."""
    grows, degree, limit = sign * found.shift, 0, found.number
    for terms, power in found.factors:
        most = max(sign * j for (_, j), _ in terms)
        (highest, _), lead = max(t for t in terms if sign * t[0][1] == most)
        grows += power * most
        degree += power * highest
        limit *= (lead * sign**highest) ** power
    if grows < 0 or (grows == 0 and degree < 0):
        return Fraction(0)
    return limit if grows == degree == 0 else None


class _Convert:
    def __init__(self, name: str, unit: Fraction) -> None:
        self._name, self._unit = name, unit
        self._ring = Ring()
        self._x = self._ring.whole(self._ring.generator(("x",))[0])
        self._e = self._ring.whole(self._ring.generator(("exp",))[0])

    def of(self, node: Expr) -> Frac:
        ring = self._ring
        match node:
            case Const(value=value):
                return ring.const(value)
            case Ref(name=name) if name == self._name:
                return self._x
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
            case Apply(op="pow", args=(a, Const(value=n))):
                return ring.power(self.of(a), _whole(n))
            case Apply(op="exp", args=(a,)):
                return self._exponential(a, Fraction(1))
            case _:
                raise NoFraction

    def _exponential(self, arg: Expr, times: Fraction) -> Frac:
        """``exp(times * arg)``; of a multiple of a logarithm it is a power."""
        ring = self._ring
        match arg:
            case Ref(name=name) if name == self._name:
                return ring.power(self._e, _whole(times / self._unit))
            case Apply(op="neg", args=(a,)):
                return self._exponential(a, -times)
            case Apply(op="add", args=(a, b)):
                return ring.mul(
                    self._exponential(a, times), self._exponential(b, times)
                )
            case Apply(op="sub", args=(a, b)):
                return ring.mul(
                    self._exponential(a, times), self._exponential(b, -times)
                )
            case (
                Apply(op="mul", args=(Const(value=c), a))
                | Apply(op="mul", args=(a, Const(value=c)))
            ):
                return self._exponential(a, times * c)
            case Apply(op="div", args=(a, Const(value=c))) if c:
                return self._exponential(a, times / c)
            case Apply(op="log", args=(a,)):
                return ring.power(self.of(a), _whole(times))
            case _:
                raise NoFraction

    def factored(self, value: Frac) -> Factored:
        top, above = self._ring.factor(value.num)
        bottom, below = self._ring.factor(value.den)
        number = _fraction(top) / _fraction(bottom)
        shift, factors = 0, []
        for poly, power in (*above, *((p, -n) for p, n in below)):
            terms = self._terms(poly)
            if terms == (((0, 1), Fraction(1)),):
                shift += power
            else:
                factors.append((terms, power))
        return _plain(Factored(self._unit, number, shift, tuple(factors)))

    def _terms(self, poly: Poly) -> Terms:
        found = {
            (int(exponents[0]), int(exponents[1])): _fraction(c)
            for exponents, c in poly.terms()
        }
        return tuple(sorted(found.items()))


def _plain(found: Factored) -> Factored:
    """With 1 for each factor's first coefficient, and the largest unit."""
    powers = [found.shift, *(j for terms, _ in found.factors for (_, j), _ in terms)]
    step = gcd(*powers) or 1
    number, factors = found.number, []
    for terms, power in found.factors:
        lead = abs(terms[0][1])
        number *= lead**power
        scaled = tuple(((i, j // step), c / lead) for (i, j), c in terms)
        factors.append((scaled, power))
    return Factored(found.unit * step, number, found.shift // step, tuple(factors))


def shifted(terms: Terms, centre: Any, rate: Fraction) -> tuple[Terms, Terms]:
    """A polynomial in ``x`` and ``t = exp(rate * x)`` that is 0 at ``centre``, as the sum of
    one in ``e = expm1(rate * u)`` and one in ``u = x - centre`` and ``t``, neither with a
    constant: both are 0 at ``centre``.

    ``x**i t**j - x0**i t0**j = (x**i - x0**i) t**j + x0**i (t**j - t0**j)``.
    """
    with ctx.workprec(_BITS):
        at = centre if isinstance(centre, arb) else arb(_exact(centre))
        start = (at * _exact(rate)).exp()
        grown: dict[tuple[int, int], Any] = {}
        moved: dict[tuple[int, int], Any] = {}
        for (i, j), c in terms:
            here = _exact(c) * at**i * start**j
            for m in range(1, j + 1):
                grown[0, m] = grown.get((0, m), arb(0)) + here * comb(j, m)
            for k in range(1, i + 1):
                step = _exact(c) * comb(i, k) * at ** (i - k)
                moved[k, j] = moved.get((k, j), arb(0)) + step
        return _known(grown), _known(moved)


def _known(found: dict[tuple[int, int], Any]) -> Terms:
    middles = ((powers, _middle(value)) for powers, value in sorted(found.items()))
    return tuple((powers, value) for powers, value in middles if value)


_BITS = 200


def _exact(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _middle(value: Any) -> Fraction:
    """To some eighty bits; 0 for what may be 0."""
    if value.contains(0):
        return Fraction(0)
    mantissa, exponent = value.mid().man_exp()
    whole, shift = int(mantissa), int(exponent)
    spare = max(0, abs(whole).bit_length() - 80)
    return Fraction(whole >> spare) * Fraction(2) ** (shift + spare)


def _whole(value: Fraction) -> int:
    if value.denominator != 1 or abs(value) > _HIGHEST:
        raise NoFraction
    return int(value)


def _fraction(number: object) -> Fraction:
    return Fraction(int(number.p), int(number.q))  # type: ignore[attr-defined]
