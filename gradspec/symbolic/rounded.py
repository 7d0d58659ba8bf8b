"""Numbers that their author rounded: ``0.7978845608028654`` for ``sqrt(2 / pi)``.

A long decimal is as exact as it is written and no more. Two expressions that differ by
what such digits leave open are one formula with its constants computed in two ways, not
a formula and a mistake.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Const, Expr, Ref
from gradspec.ir.walk import nodes, transform
from gradspec.symbolic.enclose import Point, defined, program

_PRECISION = 256

ROUNDED = 10
"""Digits from which a decimal is taken for a rounded number. Shorter ones are meant as
they stand: a gradient that is off by their rounding is off in use."""

_EXACT_RUN = 5
"""Zeros or nines in a row that no rounded number has: ``1.0000000001`` is meant."""


def meets(left: Expr, right: Expr, point: Point) -> bool:
    """Whether the two values may be equal with every rounded number as exact as it is
    written. False where no number is rounded.
    """
    bounds: dict[str, Any] = {}
    exact = _contradictory(left, right)
    a, b = _loosened(left, bounds, exact), _loosened(right, bounds, exact)
    if not bounds:
        return False
    one, two = program(a, b).run({**point, **bounds}, _PRECISION)
    return defined(one) and defined(two) and bool(one.overlaps(two))


def _contradictory(left: Expr, right: Expr) -> frozenset[Fraction]:
    """Numbers of one side of which the other has a misprint: near enough to be meant as
    the same one, but neither is the other with fewer digits. They stand as written.
    """
    found: set[Fraction] = set()
    for a in _rounded(left):
        for b in _rounded(right):
            if _is_misprint(a, b):
                found |= {a, b}
    return frozenset(found)


def _rounded(expr: Expr) -> frozenset[Fraction]:
    values = (node.value for node in nodes(expr) if isinstance(node, Const))
    return frozenset(value for value in values if _radius(value) is not None)


def _is_misprint(a: Fraction, b: Fraction) -> bool:
    one, two = _radius(a), _radius(b)
    if a == b or one is None or two is None or abs(a - b) > one + two:
        return False
    unit_a, unit_b = _digits(a)[1], _digits(b)[1]
    coarse, fine, unit = (a, b, unit_a) if unit_a >= unit_b else (b, a, unit_b)
    off = abs(fine - coarse)
    is_cut = off < unit and abs(coarse) < abs(fine)
    return off > unit / 2 and not is_cut


def _loosened(expr: Expr, bounds: dict[str, Any], exact: frozenset[Fraction]) -> Expr:
    """Rounded numbers as names, which ``bounds`` maps to balls."""

    def visit(node: Expr) -> Expr:
        match node:
            case Const(value=value) if value in exact:
                return node
            case Const(value=value) if (spread := _spread(value)) is not None:
                name = f"~{value}"
                bounds[name] = spread
                return Ref(name)
            case _:
                return node

    return transform(expr, visit)


@lru_cache(maxsize=256)
def _spread(value: Fraction) -> Any:
    """The ball of all numbers that a rounded one may stand for; None if it is exact."""
    radius = _radius(value)
    if radius is None:
        return None
    with ctx.workprec(_PRECISION):
        middle = arb(fmpq(value.numerator, value.denominator))
        return middle + arb(0, fmpq(radius.numerator, radius.denominator))


@lru_cache(maxsize=256)
def _radius(value: Fraction) -> Fraction | None:
    """How far a rounded number may be from the one it stands for; None if it is exact."""
    digits, unit = _digits(value)
    if (
        len(digits) < ROUNDED
        or "0" * _EXACT_RUN in digits
        or "9" * _EXACT_RUN in digits
    ):
        return None
    # Half a unit of the last digit, or what rounding to float64 and printing that leaves:
    # a last digit that is off by one is a mistake.
    return max(unit / 2, Fraction(math.ulp(float(value))))


def _digits(value: Fraction) -> tuple[str, Fraction]:
    """The significant digits of a decimal fraction and the value of a unit in its last
    place; no digits if it is whole, or no decimal."""
    twos, rest = _power(value.denominator, 2)
    fives, rest = _power(rest, 5)
    if rest != 1 or value.denominator == 1:
        return "", Fraction(0)
    places = max(twos, fives)
    text = str(abs(value.numerator) * 10**places // value.denominator)
    short = text.rstrip("0")
    return short, Fraction(10) ** (len(text) - len(short) - places)


def _power(number: int, base: int) -> tuple[int, int]:
    """How often ``base`` divides ``number``, and what is left."""
    count = 0
    while number % base == 0:
        number, count = number // base, count + 1
    return count, number
