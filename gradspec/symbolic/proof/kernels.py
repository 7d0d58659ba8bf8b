"""Kernels of normal forms: circular functions and their inverses, gamma; the operations.

Sines and cosines follow the addition theorems. Inverse circular functions are arc
tangents, of which one is kept and those that are made of it by reciprocals, sums and
halves follow (DLMF 4.24.13 to 4.24.17); which multiple of pi is to be added is a matter
of signs, for which a region is divided if need be. Of the gamma family what differs by
a whole number is brought to one argument at once; reflection and duplication are used
where the functions that they relate to occur already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import factorial
from typing import Any, TypeAlias

from gradspec.symbolic.proof.normal import Normal
from gradspec.symbolic.proof.ring import Frac, Poly, TooLarge

Pair: TypeAlias = tuple[Frac, Frac]
"""A cosine and a sine."""

_MOST_TURNS = 24
_HALF = Fraction(1, 2)


def _cos_sin(normal: Normal, angle: Frac) -> Pair:
    """Cosine and sine by the addition theorems, term after term."""
    total = (normal.ring.const(1), normal.ring.const(0))
    for unit, scale in normal.terms(angle):
        total = _join(normal, total, _turn(normal, unit, scale))
    return total


def _join(normal: Normal, a: Pair, b: Pair) -> Pair:
    ring = normal.ring
    return (
        ring.sub(ring.mul(a[0], b[0]), ring.mul(a[1], b[1])),
        ring.add(ring.mul(a[1], b[0]), ring.mul(a[0], b[1])),
    )


def _turn(normal: Normal, unit: Frac, scale: Fraction) -> Pair:
    quarters = 2 * scale
    if quarters.denominator == 1 and _key(normal, unit) == ("pi",):
        return _quarter(normal, int(quarters) % 4)
    known = _arc(normal, unit, scale) or _corner(normal, unit, scale.denominator)
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
        total = _join(normal, total, one)
    return total if times > 0 else (total[0], normal.ring.neg(total[1]))


def _corner(normal: Normal, unit: Frac, part: int) -> Pair | None:
    """Cosine and sine of a third, a quarter and a sixth of pi."""
    squares = {3: (1, 3), 4: (2, 2), 6: (3, 1)}.get(part)
    if squares is None or _key(normal, unit) != ("pi",):
        return None
    first, second = (
        normal.rational_power(normal.ring.const(Fraction(square, 4)), _HALF)
        for square in squares
    )
    return first, second


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


_MOST = 6
"""Arc tangents among which relations are looked for."""

_QUARTER = Fraction(1, 4)


def _arc_sine(normal: Normal, u: Frac) -> Frac:
    ring = normal.ring
    rest = ring.sub(ring.const(1), ring.mul(u, u))
    if rest.is_zero:
        return _turns(normal, _HALF * normal.sign(u))
    root = normal.rational_power(rest, _HALF)
    return _arc_tangent(normal, ring.div(u, root))


def _arc_cosine(normal: Normal, u: Frac) -> Frac:
    return normal.ring.sub(_turns(normal, _HALF), _arc_sine(normal, u))


def _arc_of_pair(normal: Normal, y: Frac, x: Frac) -> Frac:
    """``atan2(y, x)``."""
    ring = normal.ring
    above = normal.facts.sign_of(y)
    if above and normal.facts.sign_of(x) is None:
        tilt = _arc_tangent(normal, ring.div(x, y))
        return ring.sub(_turns(normal, _HALF * above), tilt)
    side = normal.sign(x)
    if side == 0:
        return _turns(normal, _HALF * normal.sign(y))
    arc = _arc_tangent(normal, ring.div(y, x))
    if side > 0:
        return arc
    return ring.add(arc, _turns(normal, Fraction(normal.sign(y) or 1)))


def _arc_tangent(normal: Normal, u: Frac) -> Frac:
    ring = normal.ring
    if not u.is_zero and u.num.leading_coefficient() < 0:
        return ring.neg(_arc_tangent(normal, ring.neg(u)))
    plain = _plain(normal, u)
    if plain is not None:
        return plain
    limit = ring.found.get(("function", "atan", u.key))
    for number, (known, angle) in enumerate(_known_arcs(normal, limit)):
        related = _relate(normal, u, known, angle, number, limit)
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


def _known_arcs(normal: Normal, limit: int | None) -> Iterator[tuple[Frac, Frac]]:
    """The arc tangents that there are: tangents and angles, oldest first."""
    ring = normal.ring
    found = [key for key in ring.keys[:limit] if key[:2] == ("function", "atan")]
    for key in found[:_MOST]:
        (tangent,) = ring.arguments[key]
        yield tangent, ring.whole(ring.gens[ring.found[key]])


def _relate(
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
    half = _half(normal, u, known, angle)
    if half is not None:
        return half
    others = [*list(_known_arcs(normal, limit))[: number + 1]]
    others.append((ring.const(1), _turns(normal, _QUARTER)))
    for tangent, arc in others:
        for sign in (1, -1):
            turned = tangent if sign > 0 else ring.neg(tangent)
            total = _arc_sum(normal, u, known, turned)
            if total is not None:
                both = ring.add(angle, arc if sign > 0 else ring.neg(arc))
                return total(both)
    return None


def _is_inverse(normal: Normal, u: Frac, v: Frac) -> bool:
    ring = normal.ring
    return ring.sub(ring.mul(u, v), ring.const(1)).is_zero


def _half(normal: Normal, u: Frac, v: Frac, angle: Frac) -> Frac | None:
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
    """The change of the sum of two angles that makes it ``atan(u)``."""

    def __init__(self, normal: Normal, sign: int, whole: int, turned: int) -> None:
        self.normal, self.sign, self.whole, self.turned = normal, sign, whole, turned

    def __call__(self, both: Frac) -> Frac:
        normal, ring = self.normal, self.normal.ring
        angle = ring.sub(both, _turns(normal, Fraction(self.whole)))
        if self.turned:
            angle = ring.sub(_turns(normal, _HALF * self.turned), angle)
        return angle if self.sign > 0 else ring.neg(angle)


def _arc_sum(normal: Normal, u: Frac, v: Frac, w: Frac) -> _Sum | None:
    """Not None if ``u`` is the tangent of the sum, up to its sign, or the inverse of
    it."""
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


# --- the gamma family ----------------------------------------------------------------


_MOST_SHIFTS = 12


def _by_recurrence(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """``op(v + n)`` through ``op(v)`` (DLMF 5.5.1, 5.5.2, 5.15.5)."""
    ring, argument = normal.ring, parts[-1]
    shift = _whole_shift(argument)
    if abs(shift) > _MOST_SHIFTS or not shift:
        return _related_gamma(normal, op, parts)
    base = ring.sub(argument, ring.const(shift))
    terms = [
        _increment(normal, op, parts[:-1], ring.add(base, ring.const(k)))
        for k in range(min(shift, 0), max(shift, 0))
    ]
    total = None
    for term in terms:
        if term is None:
            return _related_gamma(normal, op, parts)
        total = term if total is None else ring.add(total, term)
    assert total is not None
    start = _related_gamma(normal, op, (*parts[:-1], base))
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


def _gamma(normal: Normal, value: Frac) -> Frac:
    """Through its logarithm where the argument is positive."""
    facts = normal.facts
    sign = facts.sign(value.num), facts.sign(value.den)
    if sign in ((1, 1), (-1, -1)):
        return normal.exp(_by_recurrence(normal, "lgamma", (value,)))
    return normal.opaque("gamma", (value,))


# --- reflection and duplication ----------------------------------------------------------


def _related_gamma(normal: Normal, op: str, parts: tuple[Frac, ...]) -> Frac:
    """Through functions that are there already, or a kernel of its own."""
    order, argument = parts[:-1], parts[-1]
    own = ("function", op, *(part.key for part in parts))
    known = dict(_arguments_of(normal, op, order, normal.ring.found.get(own)))
    for found in (
        _by_reflection(normal, op, order, argument, known),
        _by_duplication(normal, op, order, argument, known),
    ):
        if found is not None:
            return found
    return normal.opaque(op, parts)


def _arguments_of(
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


def _by_reflection(
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
        sine = _cos_sin(normal, ring.mul(normal.pi(), argument))[1]
        total = ring.sub(normal.log(normal.pi()), normal.log(sine))
        return ring.sub(total, _by_recurrence(normal, op, (mirror,)))
    m = _order(order)
    if m is None or _base(normal, mirror).key not in known:
        return None
    slope = _cotangent_slope(normal, m, argument)
    value = _by_recurrence(normal, op, (*order, mirror))
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
    cosine, sine = _cos_sin(normal, ring.mul(normal.pi(), argument))
    cotangent = ring.div(cosine, sine)
    total = ring.const(0)
    for c in reversed(coefficients):
        total = ring.add(ring.mul(total, cotangent), ring.const(c))
    return ring.mul(ring.power(normal.pi(), m + 1), total)


def _by_duplication(
    normal: Normal,
    op: str,
    order: tuple[Frac, ...],
    argument: Frac,
    known: dict[str, Frac],
) -> Frac | None:
    """Of ``z``, ``z + 1/2`` and ``2 z`` the third follows (DLMF 5.5.5, 5.5.8,
    5.15.7)."""
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
        ring.const(0)
        if p.key == argument.key
        else _by_recurrence(normal, op, (*order, p))
        for p in places
    ]
    total = ring.add(ring.add(values[0], values[1]), rest)
    if places[2].key == argument.key:
        return ring.div(total, weight)
    return ring.sub(ring.mul(weight, values[2]), total)


# --- the table ---------------------------------------------------------------------------


def _comparison(*signs: int) -> Callable[[Normal, Frac, Frac], bool]:
    """The comparison that holds where the difference has one of some signs."""
    return lambda n, a, b: n.order(n.ring.sub(a, b)) in signs


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "pi": lambda n: n.pi(),
    "lt": _comparison(-1),
    "le": _comparison(-1, 0),
    "gt": _comparison(1),
    "ge": _comparison(1, 0),
    "eq": _comparison(0),
    "ne": _comparison(-1, 1),
    "and": lambda n, a, b: n.truth_of(a) and n.truth_of(b),
    "or": lambda n, a, b: n.truth_of(a) or n.truth_of(b),
    "not": lambda n, a: not n.truth_of(a),
    "add": lambda n, a, b: n.ring.add(a, b),
    "sub": lambda n, a, b: n.ring.sub(a, b),
    "mul": lambda n, a, b: n.ring.mul(a, b),
    "div": lambda n, a, b: n.ring.div(a, b),
    "neg": lambda n, a: n.ring.neg(a),
    "pow": lambda n, a, b: n.power(a, b),
    "square": lambda n, a: n.ring.power(a, 2),
    "exp": lambda n, a: n.exp(a),
    "log": lambda n, a: n.log(a),
    "sqrt": lambda n, a: n.rational_power(a, Fraction(1, 2)),
    "cbrt": lambda n, a: n.cube_root(a),
    "sin": lambda n, a: _cos_sin(n, a)[1],
    "cos": lambda n, a: _cos_sin(n, a)[0],
    "asin": _arc_sine,
    "acos": _arc_cosine,
    "atan": _arc_tangent,
    "atan2": _arc_of_pair,
    "gamma": _gamma,
    "lgamma": lambda n, a: _by_recurrence(n, "lgamma", (a,)),
    "digamma": lambda n, a: _by_recurrence(n, "digamma", (a,)),
    "polygamma": lambda n, m, a: _by_recurrence(n, "polygamma", (m, a)),
}
