"""Values that are searched for: a number (a simple fraction, or one times a well-known
constant), and the operand at which an operation gives a wanted value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from flint import arb, ctx, fmpq

from gradspec.ir.expr import ONE, Apply, Const, Expr, apply, const
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.enclose import Value, enclose, is_defined, program

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
    if value is True or value is False or not is_defined(value):
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


def varies(values: Values) -> bool:
    known = [value for value in values if value is not None]
    return any(not known[0].overlaps(value) for value in known[1:])


def combine_rows(function: Callable[..., Any], *columns: Values) -> Values:
    """A function of the values in each row, None where one is not known."""
    with ctx.workprec(PRECISION):
        rows = zip(*columns, strict=True)
        return tuple(None if None in row else function(*row) for row in rows)


def quotients(tops: Values, bottoms: Values) -> Values:
    return combine_rows(lambda a, b: None if b.contains(0) else a / b, tops, bottoms)


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
                return _scale(times, constant)
            over = _fraction(ball * value, _LARGEST)
            if over is not None:
                return apply("div", Const(over), constant)
    return None


def _scale(factor: Fraction, constant: Expr) -> Expr:
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


# --- operands ----------------------------------------------------------------------------

NEVER: Final = "never"
"""No operand gives the wanted value."""


def is_invertible(op: str) -> bool:
    return op in _BINARY or bool(primitive(op).inverse)


def operand(op: str, args: tuple[Value, ...], place: int, wanted: Value) -> Value:
    """The value for ``args[place]`` that makes ``op`` give ``wanted``; :data:`NEVER`,
    or None where any would do or none is known.

    Of several the one on the same branch as the present operand: a square root has the
    sign of what stands there now.
    """
    if not all(_is_number(a) for n, a in enumerate(args) if n != place):
        return None
    if op in _BINARY:
        found = _BINARY[op](args[0], args[1], place, wanted)
        return found if isinstance(found, str) or _is_number(found) else None
    now = args[0] if _is_number(args[0]) else arb(0)
    inverse = program(formula(primitive(op).inverse))
    bound = {"out": wanted, "x": now}
    found = inverse.run({name: bound[name] for name in inverse.names}, PRECISION)[0]
    return found if _is_number(found) else NEVER


def _is_number(value: Value) -> bool:
    return is_defined(value) and value is not True and value is not False


def _sum(left: Value, right: Value, place: int, wanted: Value) -> Value:
    return wanted - (left if place else right)


def _difference(left: Value, right: Value, place: int, wanted: Value) -> Value:
    return left - wanted if place else wanted + right


def _product(left: Value, right: Value, place: int, wanted: Value) -> Value:
    other = left if place else right
    if other.contains(0):
        return None if wanted.contains(0) else NEVER
    return wanted / other


def _quotient(left: Value, right: Value, place: int, wanted: Value) -> Value:
    if not place:
        return wanted * right
    if wanted.contains(0):
        return None if left.contains(0) else NEVER
    return left / wanted


def _power(base: Value, exponent: Value, place: int, wanted: Value) -> Value:
    if place:
        if not (base > 0 and wanted > 0) or base.contains(1):
            return None
        return wanted.log() / base.log()
    if exponent.contains(0):
        return None
    root = abs(wanted) ** (1 / exponent) if not wanted.contains(0) else arb(0)
    return -root if _is_number(base) and base < 0 else root


_BINARY: dict[str, Callable[[Value, Value, int, Value], Value]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
}


_NEAR = (1 - 2.0**-50, 1 + 2.0**-50)
"""Factors beyond what enclosures leave open."""


def operands(
    op: str, rows: list[tuple[Value, ...]], place: int, wanted: Values
) -> Values | None:
    """The values for one operand that give the wanted ones, where they are known; None
    if at some point no operand would do."""
    found: list[Value] = []
    with ctx.workprec(PRECISION):
        for row, want in zip(rows, wanted, strict=True):
            value = None if want is None else operand(op, row, place, want)
            if isinstance(value, str):
                near = (operand(op, row, place, want * scale) for scale in _NEAR)
                if all(isinstance(other, str) for other in near):
                    return None
                value = None  # at the end of the range, as far as is seen
            found.append(None if value is None else narrow(value))
    return tuple(found)
