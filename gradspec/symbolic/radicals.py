"""Nested square roots: ``sqrt(a + b * sqrt(c))`` as a sum of two plain ones."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from gradspec.symbolic.ring import Frac, Poly

if TYPE_CHECKING:
    from gradspec.symbolic.normal import Normal

_HALF = Fraction(1, 2)


def denested(normal: Normal, base: Poly) -> Frac | None:
    """The square root of ``a + b``, where ``b`` holds a root and ``a**2 - b**2`` is the
    square of a ``c``: ``sqrt((a + c) / 2) + sign(b) * sqrt((a - c) / 2)``."""
    ring = normal.ring
    degrees = base.degrees()
    for number in reversed(ring.relations):
        power, below = ring.relations[number]
        if power != 2 or degrees[number] != 1:
            continue
        slope = base.derivative(number)
        rest = base - slope * ring.gens[number]
        root = _square_root(normal, ring.lower(rest * rest - slope * slope * below))
        if root is None:
            continue
        halves = [
            ring.mul(ring.const(_HALF), ring.whole(part))
            for part in (rest + root, rest - root)
        ]
        first, second = (normal.rational_power(half, _HALF) for half in halves)
        if normal.sign(ring.whole(slope)) < 0:
            return ring.sub(first, second)
        return ring.add(first, second)
    return None


def _square_root(normal: Normal, poly: Poly) -> Poly | None:
    if poly.is_zero():
        return None
    number, parts = normal.ring.factor(poly)
    if number < 0 or any(exponent % 2 for _, exponent in parts):
        return None
    above, below = isqrt(int(number.p)), isqrt(int(number.q))
    if above * above != number.p or below * below != number.q:
        return None
    root = normal.ring.const(Fraction(above, below)).num
    for factor, exponent in parts:
        root *= factor ** (exponent // 2)
    return root
