"""Series with the terms that each precision needs, where compilers fuse.

A polynomial in place of what cancels has the terms of float64, proved to 2**-60, and in a
fused loop those are what it costs. How far its variable goes is in the text,
`clip(x + 0.75, -0.5, 0.5)`; so there is a shorter one that is the same there but for less
than 2**-27 of it, which is nothing in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from gradspec.plan.array import Expr, Literal, Op
from gradspec.primitives.table_fence import FENCE
from gradspec.primitives.table_known import BY_PRECISION
from gradspec.primitives.table_polynomials import NAMES, name_of
from gradspec.symbolic.chebyshev import economised

_UNSEEN = Fraction(1, 2**27)
"""Of the value: an eighth of a unit in the last place of float32."""

_STEPS = 256
"""At so many places the value is looked at; between two it moves by its slope."""


def shortened(node: Expr) -> Expr:
    """A polynomial beside a shorter one for float32, if there is one."""
    match node:
        case Op(primitive=name, args=(x, *given)) if name in NAMES:
            coefficients = tuple(c.value for c in given if isinstance(c, Literal))
            reach = _reach(x)
            if reach is None or len(coefficients) < len(given):
                return node
            short = _short(coefficients, reach)
            if not 1 < len(short) < len(given):
                return node
            single = Op(name_of(len(short)), (x, *map(Literal, short)))
            return Op(BY_PRECISION, (single, node))
        case _:
            return node


def _reach(x: Expr) -> Fraction | None:
    """A bound of ``abs(x)``, of what stands in bounds less a constant, or its square."""
    match x:
        case Op("clip", (_, Literal(value=low), Literal(value=high))):
            return max(abs(low), abs(high))
        case Op(primitive=name, args=(inner,)) if name == FENCE:
            return _reach(inner)
        case Op("sub" | "add", (inner, Literal(value=moved))):
            known = _reach(inner)
            return None if known is None else known + abs(moved)
        case Op("mul", (one, other)) if one == other:
            known = _reach(one)
            return None if known is None else known**2
        case _:
            return None


@lru_cache(maxsize=256)
def _short(coefficients: tuple[Fraction, ...], reach: Fraction) -> tuple[Fraction, ...]:
    """The coefficients that float32 needs where the variable is at most ``reach``."""
    scaled = [c * reach**k for k, c in enumerate(coefficients)]
    kept, _ = economised(scaled, _UNSEEN * Fraction(_least(scaled)))
    return tuple(Fraction(float(c / reach**k)) for k, c in enumerate(kept))


def _least(scaled: Sequence[Fraction]) -> float:
    """A bound from below of the value's size for abs(s) <= 1, 0 if it may vanish."""
    numbers = tuple(map(float, scaled))
    slope = sum(k * abs(c) for k, c in enumerate(numbers))
    found = min(abs(_at(numbers, 2 * k / _STEPS - 1)) for k in range(_STEPS + 1))
    return max(0.0, found - slope / _STEPS)


def _at(coefficients: Sequence[float], x: float) -> float:
    total = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total
