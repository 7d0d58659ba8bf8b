"""What an operand would have to be for an operation to give a wanted value.

Of all the operands that would do, the one on the same branch as the present operand is
taken: a square root has the sign of what stands there now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flint import arb

from gradspec.symbolic.enclose import defined

Value = Any
"""An ``arb``; see :mod:`gradspec.symbolic.enclose`."""

NEVER: Final = "never"
"""No operand gives the wanted value."""


def operand(op: str, args: tuple[Value, ...], place: int, wanted: Value) -> Value:
    """The value for ``args[place]`` that makes ``op`` give ``wanted``; :data:`NEVER`, or
    None where any would do or none is known."""
    if not all(_is_number(a) for n, a in enumerate(args) if n != place):
        return None
    found: Value = None
    if len(args) == 2 and op in _BINARY:
        found = _BINARY[op](args[0], args[1], place, wanted)
    elif len(args) == 1 and op in _UNARY:
        found = _UNARY[op](args[0], wanted)
    if found is None or isinstance(found, str) or _is_number(found):
        return found
    return None


def is_invertible(op: str) -> bool:
    return op in _BINARY or op in _UNARY


def _is_number(value: Value) -> bool:
    return defined(value) and value is not True and value is not False


# --- two operands --------------------------------------------------------------------


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

# --- one operand ---------------------------------------------------------------------


def _like(now: Value, size: Value) -> Value:
    """``size`` with the sign of what stands there now."""
    return -size if _is_number(now) and now < 0 else size


def _log(value: Value) -> Value:
    return value.log() if value > 0 else NEVER


_UNARY: dict[str, Callable[[Value, Value], Value]] = {
    "neg": lambda x, w: -w,
    "square": lambda x, w: _like(x, w.sqrt()) if w >= 0 else NEVER,
    "sqrt": lambda x, w: w * w if w >= 0 else NEVER,
    "rsqrt": lambda x, w: 1 / (w * w) if w > 0 else NEVER,
    "exp": lambda x, w: _log(w),
    "exp2": lambda x, w: w.log() / arb(2).log() if w > 0 else NEVER,
    "expm1": lambda x, w: w.log1p() if w > -1 else NEVER,
    "log": lambda x, w: w.exp(),
    "log1p": lambda x, w: w.expm1(),
    "log2": lambda x, w: (w * arb(2).log()).exp(),
    "log10": lambda x, w: (w * arb(10).log()).exp(),
    "tanh": lambda x, w: w.atanh() if abs(w) < 1 else NEVER,
    "sigmoid": lambda x, w: _log(w / (1 - w)) if w < 1 else NEVER,
    "softplus": lambda x, w: w.expm1().log() if w > 0 else NEVER,
    "sinh": lambda x, w: w.asinh(),
    "asinh": lambda x, w: w.sinh(),
    "atan": lambda x, w: w.tan(),
    "cosh": lambda x, w: _like(x, w.acosh()) if w >= 1 else NEVER,
    "abs": lambda x, w: _like(x, w) if w >= 0 else NEVER,
}
