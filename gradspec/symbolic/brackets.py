"""Numbers on both sides of a value, for whole columns of points at once.

Half precision and float32 have so few bits that float64 shows nearly always what the
truth is: where both ends are near enough to each other no ball is needed. Where they
are not, or where a function is not known here, nothing is said (nan), and balls decide.

Sums, products, quotients and roots are rounded outwards. The other functions are
NumPy's and the C library's, which are within 4 ULP in float64 (as they test
themselves); `_ROOM` reckons with 64. They are monotone, or bounded by their slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import Expr
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Primitive

Array: TypeAlias = Any
"""A float64 array, or a number."""

_ROOM = 2.0**-47
_LEAST = float(np.finfo(float).tiny)
"""Room beneath the normal numbers, which may have been taken for 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """``low <= value <= high``; nan where nothing is known."""

    low: Array
    high: Array


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """Points at which a condition surely holds, and those at which it surely does
    not."""

    yes: Array
    no: Array


Side = Bracket | Decided


def plain_values(expr: Expr, columns: Mapping[str, Any]) -> Array:
    """The value of ``expr`` at each point, rounded to float32; NaN where the bounds do
    not round to the same.
    """
    count = max((np.size(column) for column in columns.values()), default=1)
    found = np.full(count, np.nan)
    try:
        with np.errstate(all="ignore"):
            ends = bracket(expr, columns)
            low, high = np.float32(ends.low), np.float32(ends.high)
        found[:] = np.where(low == high, low + 0.0, np.nan)
    except NotImplementedError:
        pass
    return found


def bracket(expr: Expr, columns: Mapping[str, Any]) -> Bracket:
    """Bounds of the values; raises where an operation is not known here."""
    with np.errstate(all="ignore"):
        found = evaluate(expr, _Brackets(columns), {})
    if isinstance(found, Decided):
        raise NotImplementedError("a condition has no number")
    return found  # type: ignore[no-any-return]


class _Brackets:
    """The algebra of brackets."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def constant(self, value: Fraction) -> Bracket:
        return _constant(value)

    def variable(self, name: str) -> Side:
        held = self._columns[name]
        if isinstance(held, Bracket | Decided):
            return held
        if isinstance(held, Fraction):
            return _constant(held)
        if held.dtype == np.bool_:
            return Decided(held, ~held)
        wide = np.float64(held)
        return Bracket(wide, wide)

    def operation(self, op: str) -> Callable[..., Side]:
        operation = _OPERATIONS.get(op) or _of_row(primitive(op))
        return lambda *args: _whole(operation(*args))

    def decided(self, condition: Side) -> None:
        """Points differ."""

    def select(self, condition: Side, then: Side, other: Side) -> Bracket:
        return _select(condition, then, other)


def _whole(found: Side) -> Side:
    """The same bounds, both nan where one of them is."""
    if isinstance(found, Decided):
        return found
    lost = np.isnan(found.low + found.high)
    if not lost.any():
        return found
    return Bracket(*(np.where(lost, np.nan, end) for end in (found.low, found.high)))


def _constant(value: Fraction) -> Bracket:
    try:
        near = np.float64(float(value))
    except OverflowError as fault:
        raise NotImplementedError("beyond doubles") from fault
    if Fraction(float(near)) == value:
        return Bracket(near, near)
    return _outwards(near, near)


def _select(condition: Side, then: Side, other: Side) -> Bracket:
    if not (isinstance(condition, Decided) and isinstance(then, Bracket)):
        raise NotImplementedError("a choice of conditions")
    if not isinstance(other, Bracket):
        raise NotImplementedError("a choice of conditions")
    unknown = np.where(condition.no, 1.0, np.nan)
    low = np.where(condition.yes, then.low, other.low * unknown)
    return Bracket(low, np.where(condition.yes, then.high, other.high * unknown))


def _outwards(low: Array, high: Array) -> Bracket:
    return Bracket(np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def _roomy(low: Array, high: Array) -> Bracket:
    """Bounds from the values of a function at both ends, widened by its error; an
    infinity is a value beyond the range."""
    most = np.finfo(float).max
    low = np.where(np.isposinf(low), most, low)
    high = np.where(np.isneginf(high), -most, high)
    return Bracket(low - _ROOM * abs(low) - _LEAST, high + _ROOM * abs(high) + _LEAST)


# --- arithmetic ------------------------------------------------------------------------


def _add(a: Bracket, b: Bracket) -> Bracket:
    return Bracket(_sum(a.low, b.low, -np.inf), _sum(a.high, b.high, np.inf))


def _sum(x: Array, y: Array, way: float) -> Array:
    """A sum rounded in one direction; exact sums are detected by their error term."""
    total = x + y
    back = total - x
    error = (x - (total - back)) + (y - back)
    wrong = ~((error >= 0) if way < 0 else (error <= 0))
    return np.where(wrong, np.nextafter(total, way), total)


def _neg(a: Bracket) -> Bracket:
    return Bracket(-a.high, -a.low)


def _mul(a: Bracket, b: Bracket) -> Bracket:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _outwards(_least(ends), _most(ends))


def _div(a: Bracket, b: Bracket) -> Bracket:
    safe = np.where((b.low > 0) | (b.high < 0), 1.0, np.nan)
    ends = [x / y * safe for x in (a.low, a.high) for y in (b.low, b.high)]
    return _outwards(_least(ends), _most(ends))


def _least(ends: list[Array]) -> Array:
    return np.minimum(np.minimum(*ends[:2]), np.minimum(*ends[2:]))


def _most(ends: list[Array]) -> Array:
    return np.maximum(np.maximum(*ends[:2]), np.maximum(*ends[2:]))


def _abs(a: Bracket) -> Bracket:
    low = np.maximum(np.maximum(a.low, -a.high), 0.0)
    return Bracket(low, np.maximum(-a.low, a.high))


def _square(a: Bracket) -> Bracket:
    size = _abs(a)
    low = np.nextafter(size.low * size.low, -np.inf)
    return Bracket(np.maximum(low, 0.0), np.nextafter(size.high * size.high, np.inf))


def _power(a: Bracket, b: Bracket) -> Bracket:
    """Bounds of a power with positive base, or a known integer."""
    exponents = np.unique(b.low)
    if np.any(b.low != b.high) or len(exponents) != 1:
        raise NotImplementedError("an exponent that varies")
    exponent = float(exponents[0])
    if exponent == 2.0:
        return _square(a)
    if exponent.is_integer() and exponent % 2 == 0:
        a = _abs(a)
    fits = a.low > 0
    if exponent.is_integer() and exponent > 0:
        fits = np.isfinite(a.low)
    ends = np.power(a.low, exponent), np.power(a.high, exponent)
    low, high = ends if exponent > 0 else ends[::-1]
    safe = np.where(fits, 1.0, np.nan)
    return _roomy(low * safe, high * safe)


def _of_row(row: Primitive) -> Callable[..., Side]:
    """Bounds from a row of primitives: the values at the ends if the function is
    monotonic, else its definition."""
    if row.monotone and row.model is not None:
        return partial(_monotone, row, partial(row.model, np))
    if row.meaning is None:
        raise NotImplementedError("not known here")
    return partial(_meant, row, row.meaning)


def _meant(row: Primitive, meaning: str, *args: Side) -> Side:
    names = dict(zip(row.params, args, strict=True))
    return evaluate(formula(meaning), _Brackets(names), {})  # type: ignore[no-any-return]


def _monotone(
    row: Primitive, function: Callable[..., Array], *args: Bracket
) -> Bracket:
    """The bounds from the values of a function at both ends; nan where it is
    undefined."""
    signs = [sign == "+" for sign in row.monotone]
    pairs = list(zip(args, signs, strict=True))
    low = function(*(a.low if grows else a.high for a, grows in pairs))
    high = function(*(a.high if grows else a.low for a, grows in pairs))
    if row.is_exact:
        return Bracket(low, high)
    found = _roomy(low, high)
    least, most = (float(end) if end else None for end in row.bounds)
    low, high = (np.clip(end, least, most) for end in (found.low, found.high))
    if row.domain:
        inside = _meant(row, row.domain, *args)
        assert isinstance(inside, Decided)
        low = np.where(inside.yes, low, np.nan)
    return Bracket(low, high)


def _wave(function: Callable[[Array], Array]) -> Callable[[Bracket], Bracket]:
    """Bounds of a sine or cosine: its slope is at most 1."""

    def around(a: Bracket) -> Bracket:
        width = np.nextafter(a.high - a.low, np.inf)
        width = np.where(a.high == a.low, 0.0, width)
        value = _roomy(function(a.low), function(a.low))
        wide = _outwards(value.low - width, value.high + width)
        return Bracket(np.clip(wide.low, -1.0, 1.0), np.clip(wide.high, -1.0, 1.0))

    return around


_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])

# --- conditions ------------------------------------------------------------------------


def _less(a: Bracket, b: Bracket) -> Decided:
    return Decided(a.high < b.low, a.low >= b.high)


def _most_equal(a: Bracket, b: Bracket) -> Decided:
    return Decided(a.high <= b.low, a.low > b.high)


def _equal(a: Bracket, b: Bracket) -> Decided:
    alike = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return Decided(alike, (a.high < b.low) | (a.low > b.high))


def _not(a: Decided) -> Decided:
    return Decided(a.no, a.yes)


_PI = _outwards(np.float64(math.pi), np.float64(math.pi))


def _root(a: Bracket) -> Bracket:
    return _outwards(np.sqrt(a.low), np.sqrt(a.high))


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "abs": _abs,
    "square": _square,
    "pow": _power,
    "sqrt": _root,
    "pi": lambda: _PI,
    "lt": _less,
    "le": _most_equal,
    "gt": lambda a, b: _less(b, a),
    "ge": lambda a, b: _most_equal(b, a),
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "not": _not,
    "and": lambda a, b: Decided(a.yes & b.yes, a.no | b.no),
    "or": lambda a, b: Decided(a.yes | b.yes, a.no & b.no),
    "sin": _wave(np.sin),
    "cos": _wave(np.cos),
    "erf": partial(_monotone, primitive("erf"), _erf),
    "erfc": partial(_monotone, primitive("erfc"), _erfc),
}
"""Operations without a row of their own: those that are rounded one by one, conditions,
periodic functions, and the C library's functions that NumPy does not have."""
