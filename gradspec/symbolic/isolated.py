"""Zeros of a function of one variable, isolated to hundreds of bits.

A change of sign between two points of a grid is halved by balls. Where the function is
continuous there is then a zero in between; that it is, and that there is no other zero
near, its Taylor model about that place shows (`economise.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice, pairwise
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

_ALL = len(_GRID)


@dataclass(frozen=True, slots=True)
class Zero:
    """``centre`` is the number, or a ball that holds it; ``near`` a number in that ball."""

    centre: Any
    near: Fraction


@lru_cache(maxsize=512)
def zeros(expr: Expr, name: str, most: int = _ALL) -> tuple[Zero, ...]:
    """The simple zeros of ``expr`` in ``name`` that a grid shows (0 aside); of a function
    that has more than ``most``, one more than that, and the others are not looked for."""
    return tuple(islice(_zeros(program(expr), name), most + 1))


def _zeros(compiled: Program, name: str) -> Iterator[Zero]:
    signed = [(at, _sign(compiled, name, at, 64)) for at in sorted(_GRID)]
    found = (_exact(compiled, name, at) for at, sign in signed if not sign)
    yield from (zero for zero in found if zero is not None)
    for (low, below), (high, above) in pairwise(signed):
        if below and above and below != above:
            zero = _isolated(compiled, name, (low, high), below)
            if zero is not None:
                yield zero


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
