"""Sines and cosines in normal form, by the addition theorems."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from gradspec.symbolic.ring import Frac, Poly, TooLarge

if TYPE_CHECKING:
    from gradspec.symbolic.normal import Normal

Pair: TypeAlias = tuple[Frac, Frac]
"""A cosine and a sine."""

_MOST_TURNS = 24


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
    known = _arc(normal, unit, scale)
    step = (
        Fraction(1, scale.denominator)
        if known
        else normal.step(("turn", unit.key), scale)
    )
    times = int(scale / step)
    if abs(times) > _MOST_TURNS:
        raise TooLarge
    one = known or _kernels(normal, unit, step)
    total = (normal.ring.const(1), normal.ring.const(0))
    for _ in range(abs(times)):
        total = _joined(normal, total, one)
    return total if times > 0 else (total[0], normal.ring.neg(total[1]))


def _key(normal: Normal, unit: Frac) -> object:
    return normal.ring.key_of(unit.num) if unit.den.is_one() else None


def _quarter(normal: Normal, quarters: int) -> Pair:
    cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters]
    return normal.ring.const(cosine), normal.ring.const(sine)


def _kernels(normal: Normal, unit: Frac, step: Fraction) -> Pair:
    ring = normal.ring
    angle = ring.mul(ring.const(step), unit)
    ring.arguments["turn", unit.key] = (angle,)
    cosine, _ = ring.generator(("cos", unit.key))
    sine, fresh = ring.generator(("sin", unit.key))
    if fresh:
        ring.relate(("sin", unit.key), 2, 1 - cosine * cosine)
    _signs(normal, angle, cosine, sine)
    return ring.whole(cosine), ring.whole(sine)


def _signs(normal: Normal, angle: Frac, cosine: Poly, sine: Poly) -> None:
    """What follows from the quadrant, if it is known."""
    ring, facts = normal.ring, normal.facts
    if not facts.positive:
        return
    straight = normal.pi()
    right = ring.mul(straight, ring.const(Fraction(1, 2)))
    if facts.sign_of(angle) == 1 and facts.sign_of(ring.sub(straight, angle)) == 1:
        facts.assume(sine)
    gaps = ring.sub(right, angle), ring.add(right, angle)
    if all(facts.sign_of(gap) == 1 for gap in gaps):
        facts.assume(cosine)


def _arc(normal: Normal, unit: Frac, scale: Fraction) -> Pair | None:
    """Of an arc tangent, halved as often as the scale asks for: algebraic."""
    match _key(normal, unit):
        case ("function", "atan", _) as key if scale.denominator in (1, 2, 4):
            ring = normal.ring
            (u,) = ring.arguments[key]
            for _ in range(scale.denominator.bit_length() - 1):
                root = normal.rational_power(_one_plus(normal, u), Fraction(1, 2))
                u = ring.div(u, ring.add(ring.const(1), root))
            cosine = normal.rational_power(_one_plus(normal, u), Fraction(-1, 2))
            return cosine, ring.mul(u, cosine)
        case _:
            return None


def _one_plus(normal: Normal, u: Frac) -> Frac:
    return normal.ring.add(normal.ring.const(1), normal.ring.mul(u, u))
