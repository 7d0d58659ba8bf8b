"""A function of one input and one exponential, in a form that cancels nowhere.

What is a fraction of polynomials in ``x`` and ``exp(x)`` (the gradients of silu, swish, mish
and lisht are) is evaluated through ``t = exp(-|x|)``, which neither overflows nor is lost
beside 1: where x < 0 as it stands, elsewhere with both parts times a power of ``t``. A
factor with a zero at ``x0`` is written about it, exactly: ``1 + x + exp(x)`` is
``c * expm1(u) + u`` with ``u = x - x0`` and ``c = exp(x0)``, whose terms have one sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

from gradspec.derive.build import times
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold
from gradspec.ir.walk import transform
from gradspec.primitives.table_known import EXPM1
from gradspec.stabilise.distance import distance

_LONGEST = 12
"""Terms of a factor."""

_SEVERAL = 2


def through_exponential(closed: Expr, name: str) -> Expr | None:
    """``closed`` (in ``name`` alone) through ``exp(-|x|)``, if it is of this kind, does
    not grow, and each factor has one zero at most."""
    found = _sides(closed, name)
    if found is None or not all(side.is_exact for side in found[1]):
        return None
    return _joined(name, found[0], *found[1])


def in_range(closed: Expr, name: str) -> Expr | None:
    """The same of what grows or has more zeros, about which it is not exact: it stays
    inside the range for as long as its value does."""
    found = _sides(closed, name)
    return None if found is None else _joined(name, found[0], *found[1])


def about_limits(
    closed: Expr, name: str
) -> tuple[tuple[Fraction, Fraction], Expr] | None:
    """The limits on the left and on the right, and what is left of the function when that
    of its side is taken off; None if a limit is not finite, or both are 0."""
    from gradspec.symbolic.exponentials import NoFraction, at_infinity, factored

    try:
        found = factored(closed, name)
    except (NoFraction, NotImplementedError, KeyError):
        return None
    left, right = at_infinity(found, -1), at_infinity(found, 1)
    if left is None or right is None or not (left or right):
        return None
    below, above = (_less(closed, end, name) for end in (left, right))
    if below is None or above is None:
        return None
    sides = _on_side(below, name, True), _on_side(above, name, False)
    return (left, right), Select(_negative(name), sides[0], sides[1])


def _less(form: Expr, number: Fraction, name: str) -> Expr | None:
    return in_range(fold(Apply("sub", (form, Const(number)))), name)


def _on_side(form: Expr, name: str, is_left: bool) -> Expr:
    """``form`` where the sign of its variable is known."""
    asked = _negative(name)

    def visit(node: Expr) -> Expr:
        match node:
            case Select(condition=condition, then=then, other=other):
                return (then if is_left else other) if condition == asked else node
            case _:
                return node

    return fold(transform(form, visit))


def _sides(closed: Expr, name: str) -> tuple[Fraction, tuple[_Side, _Side]] | None:
    from gradspec.symbolic.exponentials import NoFraction, factored

    try:
        found = factored(closed, name)
        left = _side(found, name, is_left=True)
        right = _side(found, name, is_left=False)
    except (NoFraction, NotImplementedError, KeyError):
        return None
    return found.number, (left, right)


@dataclass(frozen=True, slots=True)
class _Side:
    """The factors above and below the line for one sign of the variable."""

    above: tuple[Expr, ...]
    below: tuple[Expr, ...]
    is_exact: bool
    """Nothing grows, and no factor has two zeros."""


def _joined(name: str, number: Fraction, left: _Side, right: _Side) -> Expr:
    negative = _negative(name)
    above = _chosen(negative, left.above, right.above)
    below = _chosen(negative, left.below, right.below)
    top = times(Const(number), _product(above))
    return fold(Apply("div", (top, _product(below)))) if below else top


def _chosen(
    negative: Expr, left: tuple[Expr, ...], right: tuple[Expr, ...]
) -> tuple[Expr, ...]:
    """What both have in common, and the choice between the rest."""
    common = tuple(one for one in left if one in right)
    rest = [tuple(one for one in side if one not in common) for side in (left, right)]
    if rest == [(), ()]:
        return common
    return (*common, Select(negative, _product(rest[0]), _product(rest[1])))


def _product(factors: Iterable[Expr]) -> Expr:
    total: Expr = ONE
    for factor in factors:
        total = fold(Apply("mul", (total, factor)))
    return total


def _side(found: Any, name: str, is_left: bool) -> _Side:
    """``E`` is ``t`` on the left and ``1 / t`` on the right: there each factor is
    multiplied by a power of ``t``."""
    from gradspec.symbolic.exponentials import NoFraction

    shift: int = found.shift
    above: list[Expr] = []
    below: list[Expr] = []
    is_exact = True
    for given, power in found.factors:
        if len(given) > _LONGEST:
            raise NoFraction
        terms, high = (given, 0) if is_left else _turned(given)
        shift += power * high
        is_exact &= len(_roots(terms, name, found.unit, is_left)) < _SEVERAL
        factor = _power(_factor(terms, name, found.unit, is_left), abs(power))
        (above if power > 0 else below).append(factor)
    shift = shift if is_left else -shift
    if shift < 0:  # half above and half below stay in the range for longer
        half = found.unit * -shift / 2
        above, below = [_large(name, half), *above], [*below, _small(name, half)]
        return _Side(tuple(above), tuple(below), False)
    head = (_power(_small(name, found.unit), shift),) if shift else ()
    return _Side((*head, *above), tuple(below), is_exact)


def _turned(terms: Any) -> tuple[Any, int]:
    high = max(j for (_, j), _ in terms)
    return tuple(sorted(((i, high - j), c) for (i, j), c in terms)), high


def _small(name: str, unit: Fraction) -> Expr:
    """``exp(-unit * |x|)``. A conditional says ``|x|``: at 0 its slope is that of one side,
    as it is of the branch that is taken there, and not the 0 of ``abs``."""
    return Apply("exp", (_falling(name, unit),))


def _large(name: str, unit: Fraction) -> Expr:
    """``exp(unit * |x|)``, where the whole grows so."""
    return Apply("exp", (fold(Apply("neg", (_falling(name, unit),))),))


def _falling(name: str, unit: Fraction) -> Expr:
    x = Ref(name)
    opposite = Select(_negative(name), x, Apply("neg", (x,)))
    return fold(Apply("mul", (Const(unit), opposite)))


def _negative(name: str) -> Expr:
    return Apply("lt", (Ref(name), ZERO))


def _power(base: Expr, exponent: int) -> Expr:
    match exponent:
        case 1:
            return base
        case 2:
            return Apply("square", (base,))
        case _:
            return Apply("pow", (base, Const(Fraction(exponent))))


# --- one factor ------------------------------------------------------------------------


def _factor(terms: Any, name: str, unit: Fraction, is_left: bool) -> Expr:
    """A polynomial in ``x`` and ``t`` on one side of 0."""
    from gradspec.symbolic.exponentials import shifted

    x, t = Ref(name), _small(name, unit)
    root = _root(terms, name, unit, is_left)
    if root is None:
        return _horner(terms, x, t)
    rate = unit if is_left else -unit
    u = _offset(name, root, is_left)
    grown = Apply(EXPM1, (times(Const(rate), u), _scaled(t, -rate * root.near)))
    if root.near == 0:
        grown = Apply("expm1", (_falling(name, unit),))
    growing, moving = shifted(terms, root.centre, rate)
    return _sum(_horner(growing, u, grown), _by_powers(moving, u, t))


def _scaled(t: Expr, exponent: Fraction) -> Expr:
    """``t * exp(exponent)``: what has the exponential of a distance from 0 as ``t``."""
    return fold(Apply("mul", (Const(Fraction(exp(exponent))), t)))


def _offset(name: str, root: Any, is_left: bool) -> Expr:
    if root.near == 0:
        return Ref(name)
    inside = Apply("min" if is_left else "max", (Ref(name), ZERO))
    return distance(inside, root.near)[1]


def _root(terms: Any, name: str, unit: Fraction, is_left: bool) -> Any:
    """Where the factor is 0 on that side, if there is one such place."""
    found = _roots(terms, name, unit, is_left)
    return found[0] if len(found) == 1 else None


def _roots(terms: Any, name: str, unit: Fraction, is_left: bool) -> list[Any]:
    from gradspec.symbolic.isolated import Zero, zeros

    sign = -1 if is_left else 1
    if len({c * sign**i > 0 for (i, _), c in terms}) == 1:
        return []
    if sum(c for (i, _), c in terms if i == 0) == 0:
        return [Zero(Fraction(0), Fraction(0))]
    rate = unit if is_left else -unit
    growing = Apply("exp", (times(Const(rate), Ref(name)),))
    found = zeros(_horner(terms, Ref(name), growing), name)
    return [z for z in found if z.near * sign > 0]


def _horner(terms: Any, x: Expr, t: Expr) -> Expr:
    """``P0(x) + t * (P1(x) + t * …)``."""
    highest = max((j for (_, j), _ in terms), default=0)
    total: Expr = ZERO
    for power in range(highest, -1, -1):
        inner = [(i, c) for (i, j), c in terms if j == power]
        total = _sum(_in_one(inner, x), fold(Apply("mul", (t, total))))
    return total


def _by_powers(terms: Any, u: Expr, t: Expr) -> Expr:
    """``u * (Q1(t) + u * (Q2(t) + …))``: where ``t`` is 0 so is ``Q``, however large ``u``."""
    highest = max((k for (k, _), _ in terms), default=0)
    total: Expr = ZERO
    for power in range(highest, 0, -1):
        inner = [(j, c) for (k, j), c in terms if k == power]
        total = times(_sum(_in_one(inner, t), total), u)
    return total


def _in_one(terms: list[tuple[int, Fraction]], x: Expr) -> Expr:
    highest = max((i for i, _ in terms), default=0)
    known = dict(terms)
    total: Expr = ZERO
    for power in range(highest, -1, -1):
        here = Const(known.get(power, Fraction(0)))
        total = _sum(here, times(total, x))
    return total


def _sum(one: Expr, other: Expr) -> Expr:
    if isinstance(one, Const) and one.value < 0 and not isinstance(other, Const):
        return fold(Apply("sub", (other, Const(-one.value))))
    return fold(Apply("add", (one, other)))
