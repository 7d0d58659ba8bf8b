"""Taylor models of expressions in one variable.

``f(c + u) = a0 + a1 u + … + an u**n + r u**(n + 1)`` with ``r`` in the ball ``rest``
for all ``|u| <= width``. The rest carries the power of ``u``, so that a quotient of two
functions that vanish at ``c`` (``expm1(x) / x``) is a model too: both are divided by
``u`` first (Joldes, Rigorous polynomial approximations, 2011, chapter 2). Coefficients
that are rational are kept so: only what is exactly 0 may be divided away.

Where a branch is left out at the point alone (``… if x != 0 else 1``) the model is that
of the branch around it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from flint import (
    arb,
    arb_poly,
    arb_series,
    ctx,
    fmpq,
    fmpq_poly,
    fmpq_series,
    fmpz_poly,
)

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import Expr
from gradspec.primitives.lookup import formula, primitive
from gradspec.primitives.row import Primitive
from gradspec.symbolic.enclose import to_ball


class NoSeries(Exception):
    """There is no power series here, or none that we can bound."""


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
        """The number of leading coefficients that are exactly 0."""
        found = (n for n, a in enumerate(self.coefficients) if not is_zero(a))
        return next(found, len(self.coefficients))

    def regular(self) -> Model:
        """The model without poles; :class:`NoSeries` if there is one for certain."""
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
        """The model with fewer coefficients: the others are part of the rest."""
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
        """The model written with more poles."""
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
    """True if certainly exactly 0."""
    return not number if isinstance(number, fmpq) else bool(number.is_zero())


def constant(value: Number, like: Model) -> Model:
    rest = (fmpq(0),) * like.order
    return Model((value, *rest), arb(0), like.width)


def _alike(one: Model, two: Model) -> tuple[Model, Model]:
    order = min(one.order, two.order)
    return one.cut(order), two.cut(order)


def _product(one: tuple[Number, ...], two: tuple[Number, ...]) -> tuple[Number, ...]:
    """Polynomials at once: a coefficient that no ball comes into stays rational."""
    with_balls = _touched_places(one, two)
    if not any(with_balls):
        return _exact_product(_rational(one), _rational(two))
    balls = (arb_poly(list(one)) * arb_poly(list(two))).coeffs()
    balls += [arb(0)] * (len(with_balls) - len(balls))
    if all(with_balls):
        return tuple(balls)
    exact = _exact_product(_rational(one), _rational(two))
    three = zip(with_balls, balls, exact, strict=True)
    return tuple(ball if touched else number for touched, ball, number in three)


def _touched_places(one: tuple[Number, ...], two: tuple[Number, ...]) -> list[bool]:
    """The coefficients of a product that a ball comes into (nothing does, times 0)."""
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
    """The product of rational coefficients, over one denominator: 20 times as fast."""
    found = (fmpq_poly(list(one)) * fmpq_poly(list(two))).coeffs()
    return (*found, *[fmpq(0)] * (len(one) + len(two) - 1 - len(found)))


def inverse(below: Model) -> Model:
    """``1 / f`` of a model that is not 0 at the point.

    With ``p`` the inverse of the polynomial as a power series to the same order, ``f p
    = 1 + e u**(n + 1)``, so ``1 / f = p - (e / f) u**(n + 1)``: one product tells
    ``e``.
    """
    series = _invert(below.coefficients)
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


def _invert(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    """The coefficients of a power series' inverse."""
    first, *others = numbers
    if is_zero(first) or (isinstance(first, arb) and first.contains(0)):
        raise NoSeries("a pole")
    if all(isinstance(a, fmpq) for a in numbers):
        return _coefficients(_inverse, numbers)
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


def apply_series(row: Primitive, inner: Model) -> Model:
    """A primitive of a model, by its series about the model's value at the point.

    What is left out is the primitive's own next coefficient, somewhere in the range,
    times the power of what is put in: no interval is put in for a variable that occurs
    twice.
    """
    inner = inner.regular()
    start, *others = inner.coefficients
    size = inner.order + 1
    series = jets(row, start, size)
    beyond = _beyond(row, arb(inner.range()), size)
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
"""Into how many a range is cut: a coefficient over a short ball is close to the
true."""


def _beyond(row: Primitive, values: Any, order: int) -> Any:
    """A ball that holds coefficient number ``order`` about every one of ``values``."""
    if row.coefficient is not None:
        return row.coefficient(values, order)
    low, radius = values.lower(), values.rad() / _PARTS
    found = None
    for part in range(_PARTS):
        middle = low + (2 * part + 1) * radius
        about = arb(middle.mid(), (radius * (1 + arb(2) ** -64)).upper())
        one = jets(row, about, order + 1)[order]
        found = one if found is None else found.union(one)
    return found


# --- power series of primitives --------------------------------------------------------


def jets(row: Primitive, start: Any, size: int) -> tuple[Any, ...]:
    """The first ``size`` coefficients of a primitive about ``start``; rational ones
    where they are (about 0, mostly)."""
    assert row.series is not None
    if isinstance(start, fmpq):
        try:
            return _coefficients(row.series, (start, fmpq(1)), size)
        except (ArithmeticError, AttributeError, ValueError):
            pass  # no rational coefficients, or none known: balls
    try:
        return _coefficients(row.series, (arb(start), arb(1)), size)
    except (ArithmeticError, ValueError) as fault:
        raise NoSeries(row.name) from fault


def _coefficients(
    function: Callable[[Any], Any], numbers: tuple[Number, ...], size: int = 0
) -> tuple[Number, ...]:
    """As many coefficients of a function of a power series as are asked for."""
    size = size or len(numbers)
    kind, zero = (
        (fmpq_series, fmpq(0)) if isinstance(numbers[0], fmpq) else (arb_series, arb(0))
    )
    before = ctx.cap
    ctx.cap = size
    try:
        found = function(kind(list(numbers), prec=size)).coeffs()
    finally:
        ctx.cap = before
    return (*found[:size], *[zero] * (size - len(found)))


def _inverse(series: Any) -> Any:
    return 1 / series


# --- models of expressions -------------------------------------------------------------


def model(expr: Expr, name: str, centre: Any, width: Fraction, order: int) -> Model:
    """The model of an expression in ``name`` alone about ``centre`` (a Fraction, or a
    ball that holds a number known no closer); :class:`NoSeries` if there is none."""
    with ctx.workprec(PRECISION):
        radius = to_ball(width)
        start = _exact(centre) if isinstance(centre, Fraction) else centre
        variable = Model((start, fmpq(1), *[fmpq(0)] * (order - 1)), arb(0), radius)
        found = evaluate(expr, _Models({name: variable}, variable), {}).regular()
        if not found.rest.is_finite():
            raise NoSeries("no bound of the rest")
        return found  # type: ignore[no-any-return]


def rational_start(
    expr: Expr, name: str, at: Fraction, width: Fraction, order: int
) -> tuple[Fraction, Fraction] | None:
    """Value and slope at a number where both are rational, else None."""
    try:
        found = model(expr, name, at, width, order)
    except (NoSeries, NotImplementedError):
        return None
    first, second = found.coefficients[:2]
    if not (isinstance(first, fmpq) and isinstance(second, fmpq)):
        return None
    value, slope = (Fraction(int(c.p), int(c.q)) for c in (first, second))
    return value, slope


def _exact(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


class _Models:
    """The algebra of Taylor models; a condition holds in the window (but, perhaps, for
    the point itself) or does not."""

    def __init__(self, names: Mapping[str, Model], like: Model) -> None:
        self._names, self._like = names, like

    def constant(self, value: Fraction) -> Model:
        return constant(_exact(value), self._like)

    def variable(self, name: str) -> Model:
        if name not in self._names:
            raise NoSeries(name)
        return self._names[name]

    def operation(self, op: str) -> Callable[..., Any]:
        if op in _OPERATIONS:
            return _OPERATIONS[op]
        row = primitive(op)
        if row.series is not None:
            return partial(apply_series, row)
        return partial(self._meaning, row)

    def truth_of(self, condition: Any) -> bool:
        if not isinstance(condition, bool):
            raise NoSeries("a condition")
        return condition

    def select(self, condition: Any, then: Any, other: Any) -> Model:
        raise NoSeries("a condition")

    def _meaning(self, row: Primitive, *args: Model) -> Any:
        """A primitive by its meaning, or a constant."""
        if not row.params:
            return constant(row.ball(arb()), self._like)
        if row.meaning is None:
            raise NoSeries(row.name)
        names = dict(zip(row.params, args, strict=True))
        return evaluate(formula(row.meaning), _Models(names, self._like), {})


def _power(base: Model, exponent: Model) -> Model:
    """By multiplication where the exponent is a whole number, else ``exp(b
    log(a))``."""
    number, *others = exponent.coefficients
    is_number = exponent.rest.is_zero() and all(map(is_zero, others))
    if is_number and isinstance(number, fmpq) and number.q == 1 and number:
        size = base.power(abs(int(number.p)))
        return size if number > 0 else constant(fmpq(1), base) / size
    return apply_series(
        primitive("exp"), exponent * apply_series(primitive("log"), base)
    )


def _equal(left: Model, right: Model) -> bool:
    """False for two sides that differ in the window, but for the point itself."""
    difference = (left - right).regular()
    count = difference.valuation
    if count > difference.order:
        raise NoSeries("a condition")
    if difference.without_powers(count).range().contains(0):
        raise NoSeries("a condition")
    return False


def _sign(inner: Model) -> int:
    values = inner.range()
    if values > 0:
        return 1
    if values < 0:
        return -1
    raise NoSeries("a kink")


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "pow": _power,
    "eq": _equal,
    "ne": lambda a, b: not _equal(a, b),
    "lt": lambda a, b: _sign(a - b) < 0,
    "le": lambda a, b: _sign(a - b) < 0,
    "gt": lambda a, b: _sign(a - b) > 0,
    "ge": lambda a, b: _sign(a - b) > 0,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
}
