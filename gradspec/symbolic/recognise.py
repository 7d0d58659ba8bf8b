"""Recognition of numbers: a simple fraction, or one times a well-known constant."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import ONE, Apply, Const, Expr, apply, const
from gradspec.symbolic.enclose import defined, enclose

PRECISION = 256
_NARROW = 60
"""Bits that a value must have for an agreement with it to mean anything."""

Values = tuple[Any, ...]
"""One ball for each point; None where nothing is known or anything would do."""

_LARGEST = 1000
"""Limit of numerator and denominator of a factor of a constant."""

_PI, _TWO = Apply("pi"), const(2)
_CONSTANTS: tuple[Expr, ...] = (
    _PI,
    apply("sqrt", _PI),
    apply("sqrt", _TWO),
    apply("sqrt", apply("mul", _TWO, _PI)),
    apply("sqrt", apply("div", _TWO, _PI)),
    apply("log", _TWO),
    apply("log", const(10)),
    apply("sqrt", const(3)),
    apply("exp", ONE),
    apply("square", _PI),
)


def narrow(value: Any) -> Any:
    """A sufficiently precise value, or None."""
    if value is True or value is False or not defined(value):
        return None
    return value if value.is_zero() or value.rel_accuracy_bits() > _NARROW else None


def common_ratio(tops: Values, bottoms: Values) -> Any:
    """The quotient if it is the same at all points, of which there must be three;
    points where both are 0 say nothing."""
    common: Any = None
    count = 0
    with ctx.workprec(PRECISION):
        for top, bottom in zip(tops, bottoms, strict=True):
            if top is None or bottom is None:
                continue
            if bottom.contains(0):
                if top.contains(0):
                    continue
                return None
            ratio = top / bottom
            if common is not None and not ratio.overlaps(common):
                return None
            if common is None or ratio.rad() < common.rad():
                common = ratio
            count += 1
    return common if count >= 3 and not common.contains(0) else None


Rough = tuple[float | None, ...]


def rough(values: Values) -> Rough:
    """The same as floats; None where a float does not hold it."""
    return tuple(None if value is None else _float(value) for value in values)


def _float(ball: Any) -> float | None:
    value = float(ball.mid())
    return value if 1e-150 < abs(value) < 1e150 else None


def may_be_proportional(tops: Rough, bottoms: Rough) -> bool:
    """False if floats exclude a common ratio; a quick filter before
    :func:`common_ratio`."""
    first: float | None = None
    for top, bottom in zip(tops, bottoms, strict=True):
        if top is None or bottom is None:
            continue
        ratio = top / bottom
        if first is None:
            first = ratio
        elif abs(ratio - first) > 1e-9 * abs(first):
            return False
    return True


def varies(values: Values) -> bool:
    known = [value for value in values if value is not None]
    return any(not known[0].overlaps(value) for value in known[1:])


def quotients(tops: Values, bottoms: Values) -> Values:
    with ctx.workprec(PRECISION):
        return tuple(
            None if a is None or b is None or b.contains(0) else a / b
            for a, b in zip(tops, bottoms, strict=True)
        )


def products(left: Values, right: Values) -> Values:
    with ctx.workprec(PRECISION):
        return tuple(
            None if a is None or b is None else a * b
            for a, b in zip(left, right, strict=True)
        )


def reciprocals(values: Values) -> Values:
    with ctx.workprec(PRECISION):
        return tuple(
            None if value is None or value.contains(0) else 1 / value
            for value in values
        )


def differences(left: Values, right: Values) -> Values:
    with ctx.workprec(PRECISION):
        return tuple(
            None if a is None or b is None else a - b
            for a, b in zip(left, right, strict=True)
        )


def same(left: Values, right: Values) -> bool:
    """True if equal wherever the first is known (the second must be too)."""
    count = 0
    for a, b in zip(left, right, strict=True):
        if a is None:
            continue
        if b is None or not a.overlaps(b):
            return False
        count += 1
    return count >= 3


def number(ball: Any) -> Expr | None:
    """An exact form of the number in a narrow ball, if it is a known one."""
    with ctx.workprec(PRECISION):
        simple = _fraction(ball, 10**6)
        if simple is not None:
            return Const(simple)
        for constant, value in zip(_CONSTANTS, _values(), strict=True):
            times = _fraction(ball / value, _LARGEST)
            if times is not None:
                return _scaled(times, constant)
            over = _fraction(ball * value, _LARGEST)
            if over is not None:
                return apply("div", Const(over), constant)
    return None


def _scaled(factor: Fraction, constant: Expr) -> Expr:
    if factor == 1:
        return constant
    if factor.numerator == 1:
        return apply("div", constant, Const(Fraction(factor.denominator)))
    return apply("mul", Const(factor), constant)


@lru_cache(maxsize=1)
def _values() -> tuple[Any, ...]:
    return tuple(enclose(constant, {}, 2 * PRECISION) for constant in _CONSTANTS)


def _fraction(ball: Any, largest: int) -> Fraction | None:
    man, exp = ball.mid().man_exp()
    if abs(int(exp)) > 4 * PRECISION:
        return None
    exact = Fraction(int(man)) * Fraction(2) ** int(exp)
    near = exact.limit_denominator(largest)
    if abs(near.numerator) > 10**9:
        return None
    held = ball.contains(arb(fmpq(near.numerator, near.denominator)))
    return near if held and ball.rel_accuracy_bits() > 40 + _bits(near) else None


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()
