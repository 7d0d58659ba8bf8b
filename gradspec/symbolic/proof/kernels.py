"""Kernels of normal forms: circular functions and their inverses, gamma.

Sines and cosines follow the addition theorems. Inverse circular functions are arc
tangents; that of a reciprocal follows from the other (DLMF 4.24.17). Of the gamma family
what differs by a whole number is brought to one argument. Sums and halves of arcs,
reflection, duplication and nested roots have no rule here: of 493 disguised cotangents
13 need one, and these agree at every sampled point.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING, TypeAlias

from gradspec.symbolic.proof.ring import Frac, Key, Poly, Ring, TooLarge

if TYPE_CHECKING:
    from gradspec.symbolic.proof.normal import Normal


Pair: TypeAlias = tuple[Frac, Frac]
"""A cosine and a sine."""

_MOST_TURNS = 24
_HALF = Fraction(1, 2)


def cos_sin(normal: Normal, angle: Frac) -> Pair:
    """Cosine and sine by the addition theorems, term after term."""
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
    """Signs that follow from the quadrant, if it is known."""
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


# --- inverse circular functions ------------------------------------------------------


def arc_sine(normal: Normal, u: Frac) -> Frac:
    ring = normal.ring
    rest = ring.sub(ring.const(1), ring.mul(u, u))
    if rest.is_zero:
        return _turns(normal, _HALF * normal.sign(u))
    root = normal.rational_power(rest, _HALF)
    return arc_tangent(normal, ring.div(u, root))


def arc_cosine(normal: Normal, u: Frac) -> Frac:
    return normal.ring.sub(_turns(normal, _HALF), arc_sine(normal, u))


def arc_of_pair(normal: Normal, y: Frac, x: Frac) -> Frac:
    """``atan2(y, x)``."""
    ring = normal.ring
    above = normal.facts.sign_of(y)
    if above and normal.facts.sign_of(x) is None:
        tilt = arc_tangent(normal, ring.div(x, y))
        return ring.sub(_turns(normal, _HALF * above), tilt)
    side = normal.sign(x)
    if side == 0:
        return _turns(normal, _HALF * normal.sign(y))
    arc = arc_tangent(normal, ring.div(y, x))
    if side > 0:
        return arc
    return ring.add(arc, _turns(normal, Fraction(normal.sign(y) or 1)))


def arc_tangent(normal: Normal, u: Frac) -> Frac:
    ring = normal.ring
    if not u.is_zero and u.num.leading_coefficient() < 0:
        return ring.neg(arc_tangent(normal, ring.neg(u)))
    plain = _plain(normal, u)
    if plain is not None:
        return plain
    limit = ring.found.get(("function", "atan", u.key))
    for key in ring.keys[:limit]:
        if key[:2] == ("function", "atan") and _is_inverse(ring, u, key):
            quarter = _turns(normal, _HALF * normal.sign(u))
            return ring.sub(quarter, ring.whole(ring.gens[ring.found[key]]))
    return normal.opaque("atan", (u,))


def _is_inverse(ring: Ring, u: Frac, key: Key) -> bool:
    """True if ``u`` is the reciprocal of the tangent of a known arc."""
    (tangent,) = ring.arguments[key]
    return ring.sub(ring.mul(u, tangent), ring.const(1)).is_zero


def _plain(normal: Normal, u: Frac) -> Frac | None:
    """Of a number that everybody knows, or of a tangent."""
    ring = normal.ring
    square = ring.mul(u, u)
    for value, parts in ((1, 4), (3, 3), (Fraction(1, 3), 6)):
        if ring.sub(square, ring.const(value)).is_zero:
            return _turns(normal, Fraction(normal.sign(u), parts))
    return _undone(normal, u)


def _undone(normal: Normal, u: Frac) -> Frac | None:
    """``t`` of ``tan(t)``, if it is known to lie between -pi / 2 and pi / 2."""
    ring = normal.ring
    for kind, other in (("sin", "cos"), ("cos", "sin")):
        key = ring.key_of(u.num)
        if key is None or key[0] != kind or ring.key_of(u.den) != (other, key[1]):
            continue
        (angle,) = ring.arguments["turn", key[1]]
        quarter = _turns(normal, _HALF)
        angle = angle if kind == "sin" else ring.sub(quarter, angle)
        gaps = ring.sub(quarter, angle), ring.add(quarter, angle)
        if all(normal.facts.sign_of(gap) == 1 for gap in gaps):
            return angle
    return None


def _turns(normal: Normal, halves: Fraction) -> Frac:
    """So many times pi."""
    return normal.ring.mul(normal.ring.const(halves), normal.pi())


# --- the gamma family ----------------------------------------------------------------


_MOST_SHIFTS = 12


def shifted(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """``op(v + n)`` through ``op(v)`` (DLMF 5.5.1, 5.5.2, 5.15.5)."""
    ring, argument = normal.ring, parts[-1]
    shift = _whole_shift(argument)
    if abs(shift) > _MOST_SHIFTS or not shift:
        return normal.opaque(op, parts)
    base = ring.sub(argument, ring.const(shift))
    terms = [
        _increment(normal, op, parts[:-1], ring.add(base, ring.const(k)))
        for k in range(min(shift, 0), max(shift, 0))
    ]
    total = None
    for term in terms:
        if term is None:
            return normal.opaque(op, parts)
        total = term if total is None else ring.add(total, term)
    assert total is not None
    start = normal.opaque(op, (*parts[:-1], base))
    return ring.add(start, total if shift > 0 else ring.neg(total))


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
