"""Two expressions at a point: certainly different, or equal to so many digits.

Balls that do not meet are a proof that the values differ. Balls that meet are support,
not proof; precision is raised until they say something.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Point, defined, program

PRECISIONS = (256, 640, 2048)
WANTED = 50
"""Digits of agreement with which we are content: a constant with 40 right digits and a
wrong one is still found out."""

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
    """What balls say; ``digits`` of agreement, both values as balls, and the precision
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
        if not (defined(a) and defined(b)):
            continue
        if not a.overlaps(b):
            return Comparison(Relation.DIFFERENT, 0, a, b, precision)
        digits = relative_digits(a, b)
        if digits >= WANTED:
            return Comparison(Relation.EQUAL, digits, a, b, precision)
    if defined(a) and defined(b):
        digits = max(relative_digits(a, b), _absolute_digits(a, b))
        relation = Relation.EQUAL if digits >= _SUPPORT else Relation.UNDECIDED
        return Comparison(relation, digits, a, b)
    return _undefined(left, right, point, a, b)


def compare_finely(left: Expr, right: Expr, point: Point) -> Comparison | None:
    """Certainly different in more digits than anybody looks at, or None."""
    a, b = program(left, right).run(point, _FINE)
    if defined(a) and defined(b) and not a.overlaps(b):
        return Comparison(Relation.DIFFERENT, 0, a, b, _FINE)
    return None


def _undefined(left: Expr, right: Expr, point: Point, a: Any, b: Any) -> Comparison:
    precision = PRECISIONS[-1]
    if not defined(b):
        certain = program(right).is_singular(point, precision)
        return Comparison(
            Relation.RIGHT_UNDEFINED if certain else Relation.UNDECIDED, 0, a, b
        )
    certain = program(left).is_singular(point, precision)
    relation = Relation.LEFT_UNDEFINED if certain else Relation.UNDECIDED
    return Comparison(relation, 0, a, b)


def relative_digits(a: Any, b: Any) -> int:
    """How many leading digits two balls that meet must share."""
    gap, size = abs(a - b).upper(), max(abs(a).upper(), abs(b).upper())
    if gap.is_zero():
        return 10 * WANTED
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
    if not defined(ball):
        return "undefined"
    if ball.contains(0):
        return "0"
    text = str(ball.str(digits, radius=False))
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return text


def decimals(a: Any, b: Any) -> tuple[str, str]:
    """Two different values with enough digits to see the difference."""
    for digits in (10, 17, 25, 40, 70):
        first, second = decimal(a, digits), decimal(b, digits)
        if first != second:
            return first, second
    return decimal(a, 100), decimal(b, 100)


def simple_ratio(left: Expr, right: Expr, points: tuple[Point, ...]) -> Any:
    """``left / right`` if it is one number at all points: a fraction when it is a
    simple one, else its ball; None when it varies or is not defined."""
    common: Any = None
    seen: set[tuple[Any, ...]] = set()
    for point in points:
        a, b = program(left, right).run(point, 256)
        if not (defined(a) and defined(b)) or b.contains(0):
            continue
        with ctx.workprec(256):
            ratio = a / b
        if common is not None and not ratio.overlaps(common):
            return None
        common = ratio
        seen.add(tuple(sorted(point.items())))
    if common is None or len(seen) < 2 or common.contains(0):
        return None
    return _fraction(common)


def _fraction(ball: Any) -> Any:
    """The simplest fraction in a ball if its terms are small, else the ball."""
    man, exp = ball.mid().man_exp()
    exact = Fraction(int(man)) * Fraction(2) ** int(exp)
    near = exact.limit_denominator(10**6)
    with ctx.workprec(256):
        return (
            near if ball.contains(arb(fmpq(near.numerator, near.denominator))) else ball
        )
