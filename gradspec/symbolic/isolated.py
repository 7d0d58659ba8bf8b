"""Zeros of a function of one variable, isolated to hundreds of bits.

A change of sign between two points of a grid is halved by balls. Where the function is
continuous there is then a zero in between; that it is, and that there is no other zero
near, its Taylor model about that place shows (`economise.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Program, program
from gradspec.symbolic.taylor_models import PRECISION

BITS = 280
"""A zero is known to about so many bits below 1."""

_GRID = tuple(
    sign * Fraction(8 + n, 8) * Fraction(2) ** e
    for sign in (-1, 1)
    for e in range(-7, 7)
    for n in range(8)
)


@dataclass(frozen=True, slots=True)
class Zero:
    """``centre`` is the number, or a ball that holds it; ``near`` a number in that ball."""

    centre: Any
    near: Fraction


def zeros(expr: Expr, name: str) -> tuple[Zero, ...]:
    """The simple zeros of ``expr`` in ``name`` that a grid shows (0 aside)."""
    compiled = program(expr)
    signed = [(at, _sign(compiled, name, at, 64)) for at in sorted(_GRID)]
    found = [z for at, sign in signed if not sign and (z := _exact(compiled, name, at))]
    for (low, below), (high, above) in pairwise(signed):
        if below and above and below != above:
            zero = _isolated(compiled, name, (low, high), below)
            found += [zero] if zero is not None else []
    return tuple(found)


def _sign(compiled: Program, name: str, at: Fraction, precision: int) -> int:
    """1, -1, or 0 if it is not known."""
    ball = compiled.run({name: at}, precision)[0]
    if isinstance(ball, bool) or ball is None or not ball.is_finite():
        return 0
    return 1 if ball > 0 else -1 if ball < 0 else 0


def _isolated(
    compiled: Program, name: str, ends: tuple[Fraction, Fraction], below: int
) -> Zero | None:
    low, high = ends
    while high - low > Fraction(1, 2**BITS):
        middle = (low + high) / 2
        sign = _sign(compiled, name, middle, PRECISION + 64)
        if sign == 0:
            return _exact(compiled, name, middle)
        low, high = (middle, high) if sign == below else (low, middle)
    with ctx.workprec(2 * BITS):
        return Zero(_number(low).union(_number(high)), (low + high) / 2)


def _exact(compiled: Program, name: str, at: Fraction) -> Zero | None:
    ball = compiled.run({name: at}, PRECISION)[0]
    if ball is None or isinstance(ball, bool) or not ball.is_zero():
        return None
    return Zero(at, at)


def _number(value: Fraction) -> Any:
    return arb(fmpq(value.numerator, value.denominator))
