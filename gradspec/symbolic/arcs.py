"""Inverse circular functions in normal form: all of them through ``atan``.

``asin(u)`` is ``atan(u / sqrt(1 - u**2))``. Of arc tangents one is kept and those that are
made of it by reciprocals, sums and halves follow, by the addition theorem (DLMF 4.24.13
to 4.24.17); which multiple of pi is to be added is a matter of signs, for which a region
is divided if need be.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from gradspec.symbolic.ring import Frac

if TYPE_CHECKING:
    from gradspec.symbolic.normal import Normal

_MOST = 6
"""Arc tangents among which relations are looked for."""

_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)


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
    for number, (known, angle) in enumerate(_known(normal, limit)):
        related = _related(normal, u, known, angle, number, limit)
        if related is not None:
            return related
    return normal.opaque("atan", (u,))


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


def _known(normal: Normal, limit: int | None) -> Iterator[tuple[Frac, Frac]]:
    """The arc tangents that there are: tangents and angles, oldest first."""
    ring = normal.ring
    found = [key for key in ring.keys[:limit] if key[:2] == ("function", "atan")]
    for key in found[:_MOST]:
        (tangent,) = ring.arguments[key]
        yield tangent, ring.whole(ring.gens[ring.found[key]])


def _related(
    normal: Normal,
    u: Frac,
    known: Frac,
    angle: Frac,
    number: int,
    limit: int | None,
) -> Frac | None:
    ring = normal.ring
    if _is_inverse(normal, u, known):
        return ring.sub(_turns(normal, _HALF * normal.sign(known)), angle)
    half = _halved(normal, u, known, angle)
    if half is not None:
        return half
    others = [*list(_known(normal, limit))[: number + 1]]
    others.append((ring.const(1), _turns(normal, _QUARTER)))
    for tangent, arc in others:
        for sign in (1, -1):
            turned = tangent if sign > 0 else ring.neg(tangent)
            total = _added(normal, u, known, turned)
            if total is not None:
                both = ring.add(angle, arc if sign > 0 else ring.neg(arc))
                return total(both)
    return None


def _is_inverse(normal: Normal, u: Frac, v: Frac) -> bool:
    ring = normal.ring
    return ring.sub(ring.mul(u, v), ring.const(1)).is_zero


def _halved(normal: Normal, u: Frac, v: Frac, angle: Frac) -> Frac | None:
    """``atan(u)`` where ``v`` is the tangent of twice the angle, or its inverse."""
    ring = normal.ring
    rest = ring.sub(ring.const(1), ring.mul(u, u))
    if rest.is_zero:
        return None
    doubled = ring.div(ring.add(u, u), rest)
    for tangent, start in ((v, angle), (ring.neg(v), ring.neg(angle))):
        if _is_inverse(normal, doubled, tangent):
            right = _turns(normal, _HALF * normal.sign(tangent))
            arc = ring.sub(right, start)
        elif doubled.key == tangent.key:
            arc = start
        else:
            continue
        over = 0 if normal.sign(rest) > 0 else normal.sign(u)
        whole = ring.add(arc, _turns(normal, Fraction(over)))
        return ring.mul(ring.const(_HALF), whole)
    return None


class _Sum:
    """What is to be done to the sum of two angles to make it ``atan(u)``."""

    def __init__(self, normal: Normal, sign: int, whole: int, turned: int) -> None:
        self.normal, self.sign, self.whole, self.turned = normal, sign, whole, turned

    def __call__(self, both: Frac) -> Frac:
        normal, ring = self.normal, self.normal.ring
        angle = ring.sub(both, _turns(normal, Fraction(self.whole)))
        if self.turned:
            angle = ring.sub(_turns(normal, _HALF * self.turned), angle)
        return angle if self.sign > 0 else ring.neg(angle)


def _added(normal: Normal, u: Frac, v: Frac, w: Frac) -> _Sum | None:
    """Whether ``u`` is the tangent of the sum, up to its sign, or the inverse of that."""
    ring = normal.ring
    below = ring.sub(ring.const(1), ring.mul(v, w))
    above = ring.add(v, w)
    if below.is_zero or above.is_zero:
        return None
    tangent = ring.div(above, below)
    for sign in (1, -1):
        turned = tangent if sign > 0 else ring.neg(tangent)
        inverse = _is_inverse(normal, u, turned)
        if inverse or u.key == turned.key:
            whole = 0 if normal.sign(below) > 0 else normal.sign(v)
            side = normal.sign(tangent) if inverse else 0
            return _Sum(normal, sign, whole, side)
    return None


def _turns(normal: Normal, halves: Fraction) -> Frac:
    """So many times pi."""
    return normal.ring.mul(normal.ring.const(halves), normal.pi())
