"""The gamma family in normal form: recurrence, reflection and duplication.

What differs by a whole number is brought to one argument at once; reflection and
duplication are used where the functions that they relate to occur already.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import factorial
from typing import TYPE_CHECKING

from gradspec.symbolic.ring import Frac
from gradspec.symbolic.turns import cos_sin

if TYPE_CHECKING:
    from gradspec.symbolic.normal import Normal

_MOST_SHIFTS = 12
_HALF = Fraction(1, 2)


def shifted(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """``op(v + n)`` through ``op(v)`` (DLMF 5.5.1, 5.5.2, 5.15.5)."""
    ring, argument = normal.ring, parts[-1]
    shift = _whole_shift(argument)
    if abs(shift) > _MOST_SHIFTS or not shift:
        return _related(normal, op, parts)
    base = ring.sub(argument, ring.const(shift))
    terms = [
        _increment(normal, op, parts[:-1], ring.add(base, ring.const(k)))
        for k in range(min(shift, 0), max(shift, 0))
    ]
    total = None
    for term in terms:
        if term is None:
            return _related(normal, op, parts)
        total = term if total is None else ring.add(total, term)
    assert total is not None
    start = _related(normal, op, (*parts[:-1], base))
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


# --- reflection and duplication ----------------------------------------------------------


def _related(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """Through functions that are there already, or a kernel of its own."""
    order, argument = parts[:-1], parts[-1]
    own = ("function", op, *(part.key for part in parts))
    known = dict(_known(normal, op, order, normal.ring.found.get(own)))
    for found in (
        _reflected(normal, op, order, argument, known),
        _duplicated(normal, op, order, argument, known),
    ):
        if found is not None:
            return found
    return normal.opaque(op, parts)


def _known(
    normal: Normal, op: str, order: tuple[Frac, ...], limit: int | None
) -> Iterator[tuple[str, Frac]]:
    """The arguments at which the function occurs, oldest first."""
    ring = normal.ring
    start = ("function", op, *(part.key for part in order))
    for key in ring.keys[:limit]:
        if key[: len(start)] == start:
            yield key[-1], ring.arguments[key][-1]


def _order(order: tuple[Frac, ...]) -> int | None:
    """0 of digamma, the order of polygamma if it is a number."""
    if not order:
        return 0
    (m,) = order
    if m.is_zero:
        return 0
    is_number = m.num.is_constant() and m.den.is_one()
    return int(m.num.leading_coefficient()) if is_number else None


def _reflected(
    normal: Normal,
    op: str,
    order: tuple[Frac, ...],
    argument: Frac,
    known: dict[str, Frac],
) -> Frac | None:
    """DLMF 5.5.3, 5.5.4, 5.15.6."""
    ring = normal.ring
    mirror = ring.sub(ring.const(1), argument)
    if op == "lgamma":
        signs = normal.facts.sign_of(argument), normal.facts.sign_of(mirror)
        if signs != (1, 1) or known.keys().isdisjoint(
            (mirror.key, _base(normal, mirror).key)
        ):
            return None
        sine = cos_sin(normal, ring.mul(normal.pi(), argument))[1]
        total = ring.sub(normal.log(normal.pi()), normal.log(sine))
        return ring.sub(total, shifted(normal, op, (mirror,)))
    m = _order(order)
    if m is None or _base(normal, mirror).key not in known:
        return None
    slope = _cotangent_slope(normal, m, argument)
    value = shifted(normal, op, (*order, mirror))
    return ring.sub(ring.mul(ring.const((-1) ** m), value), slope)


def _base(normal: Normal, argument: Frac) -> Frac:
    """The argument that stands for all that differ from it by a whole number."""
    return normal.ring.sub(argument, normal.ring.const(_whole_shift(argument)))


def _cotangent_slope(normal: Normal, m: int, argument: Frac) -> Frac:
    """The ``m``-th derivative of ``pi * cot(pi * x)`` as a polynomial in the cotangent,
    whose derivative is ``-pi * (1 + cot**2)``."""
    ring = normal.ring
    coefficients = [0, 1]
    for _ in range(m):
        slope = [k * c for k, c in enumerate(coefficients)][1:]
        grown = [0] * (len(slope) + 2)
        for power, c in enumerate(slope):
            grown[power] -= c
            grown[power + 2] -= c
        coefficients = grown
    cosine, sine = cos_sin(normal, ring.mul(normal.pi(), argument))
    cotangent = ring.div(cosine, sine)
    total = ring.const(0)
    for c in reversed(coefficients):
        total = ring.add(ring.mul(total, cotangent), ring.const(c))
    return ring.mul(ring.power(normal.pi(), m + 1), total)


def _duplicated(
    normal: Normal,
    op: str,
    order: tuple[Frac, ...],
    argument: Frac,
    known: dict[str, Frac],
) -> Frac | None:
    """Of ``z``, ``z + 1/2`` and ``2 z`` the third follows (DLMF 5.5.5, 5.5.8, 5.15.7)."""
    ring = normal.ring
    half = ring.mul(ring.const(_HALF), argument)
    for z in (half, argument, ring.sub(argument, ring.const(_HALF))):
        places = (z, ring.add(z, ring.const(_HALF)), ring.add(z, z))
        others = [p for p in places if p.key != argument.key]
        if not all(_base(normal, p).key in known for p in others):
            continue
        return _third(normal, op, order, argument, places)
    return None


def _third(
    normal: Normal,
    op: str,
    order: tuple[Frac, ...],
    argument: Frac,
    places: tuple[Frac, Frac, Frac],
) -> Frac | None:
    """``weight * f(2 z) = f(z) + f(z + 1/2) + rest``, solved for one of them."""
    ring, z = normal.ring, places[0]
    m = None if op == "lgamma" else _order(order)
    two = normal.log(ring.const(2))
    if op == "lgamma":
        if normal.facts.sign_of(z) != 1:
            return None
        twice = ring.mul(ring.sub(places[2], ring.const(1)), two)
        rest = ring.sub(twice, ring.mul(ring.const(_HALF), normal.log(normal.pi())))
        weight = ring.const(1)
    elif m is not None:
        weight = ring.const(2 ** (m + 1))
        rest = ring.mul(ring.const(2), two) if m == 0 else ring.const(0)
    else:
        return None
    values = [
        ring.const(0) if p.key == argument.key else shifted(normal, op, (*order, p))
        for p in places
    ]
    total = ring.add(ring.add(values[0], values[1]), rest)
    if places[2].key == argument.key:
        return ring.div(total, weight)
    return ring.sub(ring.mul(weight, values[2]), total)
