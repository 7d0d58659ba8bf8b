"""Two expressions at a point: certainly different, or equal to so many digits.

Balls that do not meet are a proof that the values differ. Balls that meet are support,
not proof; precision is raised until they say something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Const, Expr, Ref
from gradspec.ir.rule import UNBOUNDED
from gradspec.ir.walk import nodes, transform
from gradspec.symbolic.enclose import Point, enclose, is_defined, program, to_ball

T = TypeVar("T")

PRECISIONS = (256, 640, 2048)
WANTED = 50
"""Digits of agreement that suffice: a constant with 40 right digits and a wrong one is
still detected."""

_FINE = 8192
_SUPPORT = 30  # digits below which balls that meet say nothing


class Relation(Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    LEFT_UNDEFINED = "left undefined"
    RIGHT_UNDEFINED = "right undefined"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A relation by balls: ``digits`` of agreement, both values, and the precision
    (bits) at which they were worked out."""

    relation: Relation
    digits: int = 0
    left: Any = None
    right: Any = None
    bits: int = PRECISIONS[-1]


def compare(left: Expr, right: Expr, point: Point) -> Comparison:
    """``left`` against ``right`` at one point."""
    both = program(left, right)
    a = b = None
    for precision in PRECISIONS:
        a, b = both.run(point, precision)
        if not (is_defined(a) and is_defined(b)):
            continue
        if not a.overlaps(b):
            return Comparison(Relation.DIFFERENT, 0, a, b, precision)
        digits = relative_digits(a, b)
        if digits >= WANTED:
            return Comparison(Relation.EQUAL, digits, a, b, precision)
    if is_defined(a) and is_defined(b):
        digits = max(relative_digits(a, b), _absolute_digits(a, b))
        relation = Relation.EQUAL if digits >= _SUPPORT else Relation.UNDECIDED
        return Comparison(relation, digits, a, b)
    return _undefined_comparison(left, right, point, a, b)


def compare_finely(left: Expr, right: Expr, point: Point) -> Comparison | None:
    """The comparison if certainly different in very many digits, else None."""
    a, b = program(left, right).run(point, _FINE)
    if is_defined(a) and is_defined(b) and not a.overlaps(b):
        return Comparison(Relation.DIFFERENT, 0, a, b, _FINE)
    return None


def _undefined_comparison(
    left: Expr, right: Expr, point: Point, a: Any, b: Any
) -> Comparison:
    precision = PRECISIONS[-1]
    if not is_defined(b):
        certain = program(right).is_singular(point, precision)
        return Comparison(
            Relation.RIGHT_UNDEFINED if certain else Relation.UNDECIDED, 0, a, b
        )
    certain = program(left).is_singular(point, precision)
    relation = Relation.LEFT_UNDEFINED if certain else Relation.UNDECIDED
    return Comparison(relation, 0, a, b)


def relative_digits(a: Any, b: Any) -> int:
    """The number of leading digits that two balls that meet must share."""
    gap, size = abs(a - b).upper(), max(abs(a).upper(), abs(b).upper())
    if gap.is_zero():
        return 10 * WANTED
    return _digits(_log2(size) - _log2(gap))


def shared_digits(a: Any, b: Any) -> int:
    """The number of leading digits that two different values share; below 1 the digits
    after the point."""
    gap = abs(a - b).lower()
    size = max(abs(a).upper(), abs(b).upper(), arb(1))
    return _digits(_log2(size) - _log2(gap))


def _absolute_digits(a: Any, b: Any) -> int:
    return _digits(-_log2(abs(a - b).upper()))


def _digits(bits: int) -> int:
    """Decimal digits; whole numbers throughout, for exponents can be astronomic."""
    return bits * 30103 // 100000


def _log2(exact: Any) -> int:
    man, exp = exact.man_exp()
    return int(man).bit_length() + int(exp)


def decimal(ball: Any, digits: int = 17) -> str:
    """The value as a decimal number, as many digits as are certain."""
    if not is_defined(ball):
        return "undefined"
    if ball.contains(0):
        return "0"
    text = str(ball.str(digits, radius=False))
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return text


def distinct_texts(
    values: Sequence[T], text: Callable[[T, int], str] = decimal, digits: int = 10
) -> tuple[str, ...]:
    """The texts of values, with enough digits to see that the first is another."""
    for some in (digits, 17, 25, 40, 70, 100):
        texts = tuple(text(value, some) for value in values)
        if texts[0] not in texts[1:]:
            break
    return texts


def point_text(point: Mapping[str, Fraction], only: tuple[str, ...]) -> str:
    """A point as a reader writes it: ``x = 2, dy = 1``."""
    return ", ".join(f"{name} = {short_number(point[name])}" for name in only)


def short_number(value: Fraction) -> str:
    """An integer as such, another number as the shortest decimal of its double."""
    if abs(value) == UNBOUNDED:
        return "inf" if value > 0 else "-inf"
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


# --- numbers that their author rounded -----------------------------------------------
# A long decimal is as exact as it is written and no more. Two expressions that differ by
# what such digits leave open are one formula with its constants computed in two ways, not
# a formula and a mistake.


_PRECISION = 256

ROUNDED = 10
"""Digits from which a decimal is taken for a rounded number. Shorter ones are meant as
they stand: a gradient that is off by their rounding is off in use."""

_EXACT_RUN = 5
"""Zeros or nines in a row that no rounded number has: ``1.0000000001`` is meant."""


def meets(left: Expr, right: Expr, point: Point) -> bool:
    """True if the two values may be equal with every rounded number as exact as it is
    written. False where no number is rounded.
    """
    bounds: dict[str, Any] = {}
    exact = _contradictory(left, right)
    a, b = _loosen(left, bounds, exact), _loosen(right, bounds, exact)
    if not bounds:
        return False
    one, two = program(a, b).run({**point, **bounds}, _PRECISION)
    return is_defined(one) and is_defined(two) and bool(one.overlaps(two))


def _contradictory(left: Expr, right: Expr) -> frozenset[Fraction]:
    """Numbers of one side of which the other has a misprint: near enough to be meant as
    the same one, but neither is the other with fewer digits. They stand as written.
    """
    found: set[Fraction] = set()
    for a in _rounded_numbers(left):
        for b in _rounded_numbers(right):
            if _is_misprint(a, b):
                found |= {a, b}
    return frozenset(found)


def _rounded_numbers(expr: Expr) -> frozenset[Fraction]:
    values = (node.value for node in nodes(expr) if isinstance(node, Const))
    return frozenset(value for value in values if _radius(value) is not None)


def _is_misprint(a: Fraction, b: Fraction) -> bool:
    one, two = _radius(a), _radius(b)
    if a == b or one is None or two is None or abs(a - b) > one + two:
        return False
    unit_a, unit_b = _significant(a)[1], _significant(b)[1]
    coarse, fine, unit = (a, b, unit_a) if unit_a >= unit_b else (b, a, unit_b)
    off = abs(fine - coarse)
    is_cut = off < unit and abs(coarse) < abs(fine)
    return off > unit / 2 and not is_cut


def _loosen(expr: Expr, bounds: dict[str, Any], exact: frozenset[Fraction]) -> Expr:
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
        middle = to_ball(value)
        return middle + arb(0, fmpq(radius.numerator, radius.denominator))


@lru_cache(maxsize=256)
def _radius(value: Fraction) -> Fraction | None:
    """The distance of a rounded number from the one it stands for; None if exact."""
    digits, unit = _significant(value)
    if (
        len(digits) < ROUNDED
        or "0" * _EXACT_RUN in digits
        or "9" * _EXACT_RUN in digits
    ):
        return None
    # Half a unit of the last digit, or what rounding to float64 and printing that leaves:
    # a last digit that is off by one is a mistake.
    return max(unit / 2, Fraction(math.ulp(float(value))))


def _significant(value: Fraction) -> tuple[str, Fraction]:
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
    """The exponent of ``base`` in ``number``, and the other factor."""
    count = 0
    while number % base == 0:
        number, count = number // base, count + 1
    return count, number


# --- slopes by differences of exact enclosures ---------------------------------------
# With a step of 2**-60 and 400 bits the truncation error of the central quotient is about
# 1e-36 of the third derivative, so it is the derivative to all digits of float64 wherever
# the function is smooth.


FINE = Fraction(1, 2**60)
COARSE = Fraction(1, 2**17)
"""Several times the step of the frameworks' own difference quotients (1e-6)."""

PRECISION = 400
AGREEMENT = 1e-3
"""One-sided slopes over a coarse step differ by its size times the curvature; a kink or
a jump within the step makes them differ by more."""


def slope(expression: Expr, point: Mapping[str, Fraction], name: str) -> float | None:
    """The derivative by ``name`` at ``point``; None where the expression is undefined
    or has a kink or a jump within a coarse step, or bends too much for difference
    quotients.
    """
    fine = _one_sided(expression, point, name, FINE)
    coarse = _one_sided(expression, point, name, COARSE)
    if fine is None or coarse is None:
        return None
    middle = 0.5 * (fine[0] + fine[1])
    room = AGREEMENT * (1.0 + abs(middle))
    if any(abs(value - middle) > room for value in (*fine, *coarse)):
        return None
    return middle


def _one_sided(
    expression: Expr, point: Mapping[str, Fraction], name: str, step: Fraction
) -> tuple[float, float] | None:
    """The quotients to the left and to the right."""
    values = []
    for shift in (-step, Fraction(0), step):
        ball = enclose(expression, {**point, name: point[name] + shift}, PRECISION)
        if ball is None or isinstance(ball, bool) or not ball.is_finite():
            return None
        values.append(ball)
    with ctx.workprec(PRECISION):
        width = to_ball(step)
        below = float(((values[1] - values[0]) / width).mid())
        above = float(((values[2] - values[1]) / width).mid())
    return below, above


def bend(
    expression: Expr,
    point: Mapping[str, Fraction],
    name: str,
    along: Mapping[str, Fraction],
) -> float | None:
    """The derivative by ``name`` of the derivative along a direction, at a point near
    which `slope` has found the function smooth; None where it is undefined.
    """
    total = arb(0)
    for near, far in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        moved = {n: point[n] + far * FINE * step for n, step in along.items()}
        there = {**point, **moved}
        there[name] = there[name] + near * FINE
        ball = enclose(expression, there, PRECISION)
        if ball is None or isinstance(ball, bool) or not ball.is_finite():
            return None
        with ctx.workprec(PRECISION):
            total += near * far * ball
    with ctx.workprec(PRECISION):
        return float((total / arb(fmpq(4, 1) * fmpq(1, FINE.denominator**2))).mid())
