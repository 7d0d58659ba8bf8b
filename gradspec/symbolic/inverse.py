"""The operand at which an operation gives a wanted value.

Of all such operands, the one on the branch of the present operand is returned: a square
root has the sign of the present operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flint import arb, ctx

from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.enclose import defined, program
from gradspec.symbolic.recognise import PRECISION, Values, narrow

Value = Any
"""An ``arb``; see :mod:`gradspec.symbolic.enclose`."""

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
    return defined(value) and value is not True and value is not False


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
