"""Sines and cosines in normal form, and the recurrences of the gamma family."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING, TypeAlias

from gradspec.symbolic.ring import Frac, TooLarge

if TYPE_CHECKING:
    from gradspec.symbolic.normal import Normal

Pair: TypeAlias = tuple[Frac, Frac]
"""A cosine and a sine."""

_MOST_TURNS = 24
_MOST_SHIFTS = 12


def cos_sin(normal: Normal, angle: Frac) -> Pair:
    """By the addition theorems, term after term."""
    total = (normal.ring.const(1), normal.ring.const(0))
    for unit, scale in normal.terms(angle):
        total = _joined(normal, total, _turn(normal, unit, scale))
    return total


def _joined(normal: Normal, a: Pair, b: Pair) -> Pair:
    ring = normal.ring
    return (
        ring.sub(ring.mul(a[0], b[0]), ring.mul(a[1], b[1])),
        ring.add(ring.mul(a[1], b[0]), ring.mul(a[0], b[1])),
    )


def _turn(normal: Normal, unit: Frac, scale: Fraction) -> Pair:
    quarters = 2 * scale
    if quarters.denominator == 1 and _key(normal, unit) == ("pi",):
        return _quarter(normal, int(quarters) % 4)
    known = _arc(normal, unit) if scale.denominator == 1 else None
    step = Fraction(1) if known else normal.step(("turn", unit.key), scale)
    times = int(scale / step)
    if abs(times) > _MOST_TURNS:
        raise TooLarge
    one = known or _kernels(normal, unit)
    total = (normal.ring.const(1), normal.ring.const(0))
    for _ in range(abs(times)):
        total = _joined(normal, total, one)
    return total if times > 0 else (total[0], normal.ring.neg(total[1]))


def _key(normal: Normal, unit: Frac) -> object:
    return normal.ring.key_of(unit.num) if unit.den.is_one() else None


def _quarter(normal: Normal, quarters: int) -> Pair:
    cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters]
    return normal.ring.const(cosine), normal.ring.const(sine)


def _kernels(normal: Normal, unit: Frac) -> Pair:
    ring = normal.ring
    cosine, _ = ring.generator(("cos", unit.key))
    sine, fresh = ring.generator(("sin", unit.key))
    if fresh:
        ring.relate(("sin", unit.key), 2, 1 - cosine * cosine)
    return ring.whole(cosine), ring.whole(sine)


def _arc(normal: Normal, unit: Frac) -> Pair | None:
    """Of an inverse function: algebraic."""
    match _key(normal, unit):
        case ("function", "atan" | "asin" | "acos" as name, _) as key:
            ring = normal.ring
            (u,) = ring.arguments[key]
            square = ring.mul(u, u)
            if name == "atan":
                root = ring.add(ring.const(1), square)
                cosine = normal.rational_power(root, Fraction(-1, 2))
                return cosine, ring.mul(u, cosine)
            other = normal.rational_power(
                ring.sub(ring.const(1), square), Fraction(1, 2)
            )
            return (other, u) if name == "asin" else (u, other)
        case _:
            return None


# --- gamma family --------------------------------------------------------------------


def shifted(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """``op(v + n)`` through ``op(v)`` (DLMF 5.5.1, 5.5.2, 5.15.5)."""
    ring, argument = normal.ring, parts[-1]
    shift = _whole_shift(argument)
    if abs(shift) > _MOST_SHIFTS or not shift:
        return normal.opaque(op, parts)
    base = ring.sub(argument, ring.const(shift))
    total = normal.opaque(op, (*parts[:-1], base))
    for k in range(min(shift, 0), max(shift, 0)):
        term = _increment(normal, op, parts[:-1], ring.add(base, ring.const(k)))
        if term is None:
            return normal.opaque(op, parts)
        total = ring.add(total, term if shift > 0 else ring.neg(term))
    return total


def _increment(
    normal: Normal, op: str, order: tuple[Frac, ...], at: Frac
) -> Frac | None:
    """``op(at + 1) - op(at)``."""
    ring = normal.ring
    match op:
        case "lgamma":
            positive = normal.facts.sign(at.num) == normal.facts.sign(at.den) == 1
            return normal.log(at) if positive else None
        case "digamma":
            return ring.power(at, -1)
        case _:
            if not (order[0].num.is_constant() and order[0].den.is_one()):
                return None
            n = int(order[0].num.leading_coefficient()) if not order[0].is_zero else 0
            return ring.mul(
                ring.const((-1) ** n * factorial(n)), ring.power(at, -n - 1)
            )


def _whole_shift(argument: Frac) -> int:
    """The whole part of the constant term of a polynomial that is not constant."""
    if not argument.den.is_one() or argument.num.is_constant():
        return 0
    for exponents, coefficient in argument.num.terms():
        if not any(exponents):
            return int(coefficient.p // coefficient.q)
    return 0
