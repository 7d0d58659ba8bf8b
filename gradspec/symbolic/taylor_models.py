"""Taylor models: a polynomial about a point, and a ball that certainly holds the rest.

``f(c + u) = a0 + a1 u + … + an u**n + r u**(n + 1)`` with ``r`` in the ball ``rest`` for all
``|u| <= width``. The rest carries the power of ``u``, so that a quotient of two functions
that vanish at ``c`` (``expm1(x) / x``) is a model too: both are divided by ``u`` first
(Joldes, Rigorous polynomial approximations, 2011, chapter 2). Coefficients that are
rational are kept so: only what is exactly 0 may be divided away.

"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from flint import arb, arb_poly, fmpq, fmpq_poly, fmpz_poly

from gradspec.symbolic.jets import EVERYWHERE, NoSeries, jets, rational_inverse

PRECISION = 320
"""Bits of the balls: coefficients lose some on the way."""

Number: TypeAlias = Any
"""An ``fmpq`` (exact) or an ``arb``."""


@dataclass(frozen=True, slots=True)
class Model:
    """``coefficients`` from a0 on; see the module. All of it is divided by
    ``u**poles``: a pole, which may be gone from a sum of several."""

    coefficients: tuple[Number, ...]
    rest: Any
    width: Any
    poles: int = 0

    @property
    def order(self) -> int:
        return len(self.coefficients) - 1

    @property
    def valuation(self) -> int:
        """How many leading coefficients are exactly 0."""
        found = (n for n, a in enumerate(self.coefficients) if not is_zero(a))
        return next(found, len(self.coefficients))

    def regular(self) -> Model:
        """The same without poles; :class:`NoSeries` if there is one for certain."""
        if self.poles == 0:
            return self
        if self.poles > self.valuation:
            raise NoSeries("a pole")
        return Model(self.coefficients[self.poles :], self.rest, self.width)

    def range(self) -> Any:
        """A ball that holds all values over the window."""
        if self.poles:
            return self.regular().range()
        inside = arb(0, self.width)
        total = self.rest
        for a in reversed(self.coefficients):
            total = total * inside + a
        return total

    def least(self) -> Any:
        """A lower bound of the absolute value over the window, found piece by piece."""
        with_rest = arb(0, (abs(self.rest) * self.width ** (self.order + 1)).upper())
        step = self.width / _PARTS
        found = None
        for part in range(_PARTS):
            piece = arb(0, step.upper()) + (2 * part + 1 - _PARTS) * step
            total = arb(0)
            for a in reversed(self.coefficients):
                total = total * piece + a
            one = abs(total + with_rest).lower()
            found = one if found is None or one < found else found
        return found

    def cut(self, order: int) -> Model:
        """The same with fewer coefficients: the others are part of the rest."""
        if order >= self.order:
            return self
        high = Model(self.coefficients[order + 1 :], self.rest, self.width)
        low = self.coefficients[: order + 1]
        return Model(low, high.range(), self.width, self.poles)

    def without_powers(self, count: int) -> Model:
        """Divided by ``u**count``, which must divide it."""
        if count > self.valuation:
            raise NoSeries("a pole")
        return Model(self.coefficients[count:], self.rest, self.width)

    def with_poles(self, poles: int) -> Model:
        """The same, written with more poles."""
        zeros = (fmpq(0),) * (poles - self.poles)
        return Model((*zeros, *self.coefficients), self.rest, self.width, poles)

    def __add__(self, other: Model) -> Model:
        poles = max(self.poles, other.poles)
        one, two = _alike(self.with_poles(poles), other.with_poles(poles))
        pairs = zip(one.coefficients, two.coefficients, strict=True)
        total = tuple(a + b for a, b in pairs)
        return Model(total, one.rest + two.rest, self.width, poles)

    def __neg__(self) -> Model:
        opposite = tuple(-a for a in self.coefficients)
        return Model(opposite, -self.rest, self.width, self.poles)

    def __sub__(self, other: Model) -> Model:
        return self + -other

    def __mul__(self, other: Model) -> Model:
        one, two = _alike(self, other)
        product = _product(one.coefficients, two.coefficients)
        inside = arb(0, self.width)
        low, high = product[: one.order + 1], product[one.order + 1 :]
        rest = arb(0)
        for a in reversed(high):
            rest = rest * inside + a
        rest += one.rest * two._whole() + two.rest * one._polynomial()
        return Model(low, rest, self.width, self.poles + other.poles)

    def _whole(self) -> Any:
        """The range but for the poles."""
        return Model(self.coefficients, self.rest, self.width).range()

    def _polynomial(self) -> Any:
        """The range without the rest."""
        return Model(self.coefficients, arb(0), self.width).range()

    def __truediv__(self, other: Model) -> Model:
        count = other.valuation
        if count > other.order:
            raise NoSeries("a division by zero")
        below = Model(other.coefficients[count:], other.rest, other.width)
        quotient = self * inverse(below)
        poles = quotient.poles + count - other.poles
        if poles < 0:
            return replace(quotient, poles=0).times_powers(-poles)
        return replace(quotient, poles=poles)

    def times_powers(self, count: int) -> Model:
        zeros = (fmpq(0),) * count
        return Model((*zeros, *self.coefficients), self.rest, self.width)

    def power(self, exponent: int) -> Model:
        result, base = constant(fmpq(1), self), self
        while exponent:
            if exponent & 1:
                result = result * base
            base, exponent = base * base, exponent >> 1
        return result


def is_zero(number: Number) -> bool:
    """Exactly, beyond doubt."""
    return not number if isinstance(number, fmpq) else bool(number.is_zero())


def constant(value: Number, like: Model) -> Model:
    rest = (fmpq(0),) * like.order
    return Model((value, *rest), arb(0), like.width)


def _alike(one: Model, two: Model) -> tuple[Model, Model]:
    order = min(one.order, two.order)
    return one.cut(order), two.cut(order)


def _product(one: tuple[Number, ...], two: tuple[Number, ...]) -> tuple[Number, ...]:
    """Polynomials at once: a coefficient that no ball comes into stays rational."""
    with_balls = _touched(one, two)
    if not any(with_balls):
        return _exact_product(_rational(one), _rational(two))
    balls = (arb_poly(list(one)) * arb_poly(list(two))).coeffs()
    balls += [arb(0)] * (len(with_balls) - len(balls))
    if all(with_balls):
        return tuple(balls)
    exact = _exact_product(_rational(one), _rational(two))
    three = zip(with_balls, balls, exact, strict=True)
    return tuple(ball if touched else number for touched, ball, number in three)


def _touched(one: tuple[Number, ...], two: tuple[Number, ...]) -> list[bool]:
    """Which coefficients of a product a ball comes into (nothing does, times 0)."""
    (some, balls), (others, more) = map(_places, (one, two))
    count = (some * more + balls * others).coeffs()
    rest = len(one) + len(two) - 1 - len(count)
    return [*(n != 0 for n in count), *[False] * rest]


def _places(numbers: tuple[Number, ...]) -> tuple[Any, Any]:
    """Polynomials with 1 where there is anything, and where that is a ball."""
    some = [0 if is_zero(a) else 1 for a in numbers]
    kinds = zip(some, numbers, strict=True)
    balls = [s if isinstance(a, arb) else 0 for s, a in kinds]
    return fmpz_poly(some), fmpz_poly(balls)


def _rational(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    return tuple(a if isinstance(a, fmpq) else fmpq(0) for a in numbers)


def _exact_product(
    one: tuple[Number, ...], two: tuple[Number, ...]
) -> tuple[Number, ...]:
    """The same of rational coefficients, over one denominator: 20 times as fast."""
    found = (fmpq_poly(list(one)) * fmpq_poly(list(two))).coeffs()
    return (*found, *[fmpq(0)] * (len(one) + len(two) - 1 - len(found)))


def inverse(below: Model) -> Model:
    """``1 / f`` of a model that is not 0 at the point.

    With ``p`` the inverse of the polynomial as a power series to the same order,
    ``f p = 1 + e u**(n + 1)``, so ``1 / f = p - (e / f) u**(n + 1)``: one product tells ``e``.
    """
    series = _inverted(below.coefficients)
    high = _product(below.coefficients, series)[below.order + 1 :]
    inside = arb(0, below.width)
    left = arb(0)
    for a in reversed(high):
        left = left * inside + a
    left += below.rest * Model(series, arb(0), below.width).range()
    values = below.range()
    if values.contains(0):
        least = below.least()
        if not least > 0:
            raise NoSeries("a pole in the window")
        values = arb(0, (1 / least).upper())
    else:
        values = 1 / values
    return Model(series, -left * values, below.width)


def _inverted(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    """The coefficients of a power series' inverse."""
    first, *others = numbers
    if is_zero(first) or (isinstance(first, arb) and first.contains(0)):
        raise NoSeries("a pole")
    if all(isinstance(a, fmpq) for a in numbers):
        return rational_inverse(numbers)
    steps = [(n, a) for n, a in enumerate(others, 1) if not is_zero(a)]
    series: list[Number] = [1 / first]
    for place in range(1, len(numbers)):
        total: Number = fmpq(0)
        for n, a in steps:
            if n > place:
                break
            total = total + a * series[place - n]
        series.append(total if is_zero(total) else -total / first)
    return tuple(series)


def applied(op: str, inner: Model) -> Model:
    """``op`` of a model, by the series of ``op`` about the model's value at the point.

    What is left out is ``op``'s own next coefficient, somewhere in the range, times the
    power of what is put in: no interval is put in for a variable that occurs twice.
    """
    inner = inner.regular()
    start, *others = inner.coefficients
    size = inner.order + 1
    series = jets(op, start, size)
    beyond = _beyond(op, arb(inner.range()), size)
    step = Model((fmpq(0), *others), inner.rest, inner.width)
    total = constant(series[-1], inner)
    for a in reversed(series[:-1]):
        total = total * step + constant(a, inner)
    slope = Model(tuple(others) or (fmpq(0),), inner.rest, inner.width).range()
    if not others:
        slope = inner.rest
    steepest = abs(slope).upper()
    rest = total.rest + beyond * arb(0, (steepest**size).upper())
    return Model(total.coefficients, rest, inner.width)


_PARTS = 24
"""Into how many a range is cut: a coefficient over a short ball is close to the true."""


def _beyond(op: str, values: Any, order: int) -> Any:
    """A ball that holds coefficient number ``order`` about every one of ``values``."""
    if op in EVERYWHERE:
        return EVERYWHERE[op](order)
    if op == "reciprocal":
        return jets(op, values, order + 1)[order]
    low, radius = values.lower(), values.rad() / _PARTS
    found = None
    for part in range(_PARTS):
        middle = low + (2 * part + 1) * radius
        one = jets(
            op, arb(middle.mid(), (radius * (1 + arb(2) ** -64)).upper()), order + 1
        )[order]
        found = one if found is None else found.union(one)
    return found
