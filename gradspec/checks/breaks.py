"""Behaviour of a rule at points where its formulas may break; input to
:mod:`boundaries`.

A break is a surface of its expressions (`symbolic/borders/`), cut along one input.
At each of them: the outputs and their slopes from both sides, what the forward and the
gradient as written give at it, and what kind of break that makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import islice, product

from gradspec.checks.instances import Instance, Point, stem
from gradspec.ir.expr import ONE, ZERO, Const, Expr, Ref
from gradspec.ir.rule import Output
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import memo, names, nodes, size, substitute
from gradspec.symbolic.borders.limits import OUTSIDE, Limit, Trend, approach, at, same
from gradspec.symbolic.borders.places import (
    Place,
    coincident_places,
    ends_of,
    places_along,
)
from gradspec.symbolic.borders.roots import exactly
from gradspec.symbolic.borders.surfaces import Surface, surfaces
from gradspec.symbolic.enclose import program


class Kind(Enum):
    SMOOTH = "smooth"
    KINK = "kink"
    UPRIGHT = "infinite slope"
    JUMP = "jump"
    POLE = "pole"
    REMOVABLE = "removable"
    END = "end of domain"
    UNKNOWN = "not decided"


@dataclass(frozen=True, slots=True)
class Effort:
    """``bases``: values of the other inputs; ``nodes``: limit on the nodes evaluated;
    ``search``: number of surfaces whose roots are sought numerically, outside the
    domain too.
    """

    bases: int
    nodes: int
    search: int = 0


QUICK = Effort(2, 12_000)
_OTHER = re.compile(r"\[.*[1-9]")


@dataclass(frozen=True, slots=True)
class Break:
    """One output along one input at a place: limits of the forward from the left and
    the right and its value, limits of the true slope, and the gradient as it stands.
    """

    place: Place
    output: Output
    kind: Kind
    left: Limit
    value: Limit
    right: Limit
    before: Limit
    stated: Limit
    after: Limit

    @property
    def sides(self) -> tuple[Limit, ...]:
        """The forward's limits on the sides that exist."""
        return tuple(x for x in (self.left, self.right) if x.is_inside)

    @property
    def slopes(self) -> tuple[Limit, ...]:
        return tuple(x for x in (self.before, self.after) if x.is_inside)


@dataclass(frozen=True, slots=True)
class Cut:
    """An output along one input, and that input's cotangents: the true one (None if it
    is not known) and the one that stands in the rule (None if there is none)."""

    output: Output
    forward: Expr
    slope: Expr | None
    stated: Expr | None
    surfaces: tuple[Surface, ...]

    @property
    def size(self) -> int:
        parts = (self.forward, self.slope, self.stated)
        return sum(size(part) for part in parts if part is not None)


def thorough(instance: Instance) -> Effort:
    """The effort for a table of boundaries; one element stands for all."""
    if not instance.written.has_axes:
        return Effort(4, 150_000, 24)
    return Effort(1, 50_000)


def typical_breaks(instance: Instance, effort: Effort = QUICK) -> Iterator[Break]:
    """The breaks along the first element of each input, of the first element of each
    output that depends on it: the others behave alike, unless some stand in fixed
    places (``q[0]``). In the order of inputs, places and outputs.
    """
    every = (node for let in instance.written.forward for node in nodes(let.value))
    refs = (node for node in every if isinstance(node, Ref))
    alike = not any(isinstance(i, Const) for ref in refs for i in ref.indices)
    inputs = [
        variable.name
        for variable in instance.rule.inputs
        if variable.takes_gradient and not (alike and _OTHER.search(variable.name))
    ]
    for places in (_places, _coincident_places):
        left = effort.nodes
        for name in inputs:
            cuts = tuple(_cuts(instance, name)) if left > 0 else ()
            for place in places(instance, name, cuts, effort):
                conditions = instance.assumed if place.root.exact else ()
                is_assumed = all(exactly(c, place.point) is True for c in conditions)
                for cut in cuts if is_assumed or effort.search else ():
                    met = tuple(s for s in place.surfaces if s in cut.surfaces)
                    if met and left > 0:
                        left -= cut.size
                        own = replace(place, surfaces=met)
                        yield _break(instance, own, cut, is_assumed)
                if left <= 0:
                    break


# --- where ---------------------------------------------------------------------------


def _cuts(instance: Instance, name: str) -> Iterator[Cut]:
    paths, ends = instance.backward_path(), tuple(ends_of(instance.assumed))
    stated = instance.stated.get(name)
    is_written = name in instance.rule.declared or name in instance.rule.overrides
    written = (stated,) if is_written and stated is not None else ()
    done: set[str] = set()
    for output in instance.rule.outputs:
        forward, path = instance.forward[output.name], paths[output.name]
        roots = (forward, path, *written)
        is_used = any(name in names(root) for root in roots)
        if not is_used or stem(output.name) in done:
            continue
        if name in names(path):
            done.add(stem(output.name))
        found = {s: None for root in roots for s in surfaces(root)}
        met = tuple(s for s in (*found, *ends) if name in s.names)
        if met and not output.takes_gradient:
            yield Cut(output, forward, None, None, met)
        elif met:
            yield Cut(output, forward, instance.derived.get(name), stated, met)


@memo(128)
def _at_one(expr: Expr, upstream: tuple[str, ...], output: str) -> Expr:
    """A cotangent with the upstream gradient 1 for one output and 0 for the others."""
    values = dict.fromkeys(upstream, ZERO) | {f"d{output}": ONE}
    return tidy(substitute(expr, values))


def _places(
    instance: Instance, name: str, cuts: tuple[Cut, ...], effort: Effort
) -> Iterator[Place]:
    known = {s: None for cut in cuts for s in cut.surfaces}
    inputs = {i.name for i in instance.rule.inputs}
    met = tuple(s for s in known if s.names <= inputs)
    for base in _bases(instance, name, met, effort) if met else ():
        yield from places_along(name, met, base, effort.search)


def _bases(
    instance: Instance, name: str, met: tuple[Surface, ...], effort: Effort
) -> Iterator[dict[str, Fraction]]:
    """Values of the inputs: as sampled, and all others 0 (where norms have a kink)."""
    wanted = [i.name for i in instance.rule.inputs]
    others = [n for n in wanted if n != name]
    seen: set[tuple[Fraction, ...]] = set()
    points = [_exact(instance, p) for p in instance.points or instance.survey.undefined]
    for point in points:
        key = tuple(point[n] for n in others)
        if key in seen:
            continue
        if len(seen) == effort.bases:
            break
        seen.add(key)
        yield {n: point[n] for n in wanted}
    free = [i.name for i in instance.rule.tensor_inputs if i.name != name]
    if points and free and any(s.names & set(free) for s in met):
        corner = {n: points[0][n] for n in wanted} | dict.fromkeys(free, Fraction(0))
        if tuple(corner[n] for n in others) not in seen:
            yield corner


def _coincident_places(
    instance: Instance, name: str, cuts: tuple[Cut, ...], effort: Effort
) -> Iterator[Place]:
    """The places at which several inputs coincide, with the surfaces that meet there."""
    met = tuple({s: None for cut in cuts for s in cut.surfaces})
    wanted = tuple(i.name for i in instance.rule.inputs)
    bases = [_exact(instance, p) for p in instance.points[: effort.bases]]
    yield from coincident_places(name, met, bases, wanted, instance.rule.real_inputs)


def _exact(instance: Instance, point: Point) -> Point:
    """Statics as float64, as a program has them: balls hold such a number exactly, so
    that comparisons with it are decided."""
    statics = {s.name for s in instance.rule.static_inputs}
    return {n: Fraction(float(v)) if n in statics else v for n, v in point.items()}


# --- what ----------------------------------------------------------------------------


def _break(instance: Instance, place: Place, cut: Cut, is_assumed: bool) -> Break:
    assumed = instance.assumed
    slope, own = (
        None if e is None else _at_one(e, instance.rule.cotangents, cut.output.name)
        for e in (cut.slope, cut.stated)
    )
    roots = (cut.forward,) if slope is None else (cut.forward, slope)
    (left, before), (right, after) = (
        _pair(approach(program(*roots), place.point, place.input, side, assumed))
        for side in (-1, 1)
    )
    value, stated = _here(place, cut.forward, own) if is_assumed else (OUTSIDE, OUTSIDE)
    kind = _kind((left, value, right), (before, after))
    return Break(place, cut.output, kind, left, value, right, before, stated, after)


_ASIDE = Fraction(1, 2**30)
_MOST_PATTERNS = 8


def slopes_around(instance: Instance, found: Break) -> tuple[Limit, ...]:
    """The slopes with the other inputs moved a little, each to either side. Where
    several kinks meet (three equal numbers, of which the middle one is taken) the sides
    along one input are not all the sides.
    """
    place = found.place
    derived = instance.derived.get(place.input)
    if derived is None:
        return ()
    slope = program(_at_one(derived, instance.rule.cotangents, found.output.name))
    limits: list[Limit] = []
    for point in _around(instance, place):
        for side in (-1, 1):
            limits += approach(slope, point, place.input, side, instance.assumed) or ()
    return tuple(limit for limit in limits if limit.is_finite)


def has_limit(instance: Instance, found: Break) -> bool:
    """True if the forward's limit along one input agrees with that from other
    directions: ``x * z / (x**2 + z**2)`` has a limit along each axis, but none
    jointly."""
    compiled = program(instance.forward[found.output.name])
    name = found.place.input
    for point in _around(instance, found.place):
        near = {**point, name: point[name] + _ASIDE}
        value = at(compiled.run(near, 256)[0])
        if value.is_finite and not _is_near(value, found.sides):
            return False
    return True


def _is_near(value: Limit, sides: tuple[Limit, ...]) -> bool:
    here, *ends = (float(limit.value.mid()) for limit in (value, *sides))
    room = float(_ASIDE) ** 0.5 * (1 + abs(here))
    return any(abs(here - end) < room for end in ends)


def _around(instance: Instance, place: Place) -> Iterator[Point]:
    """The place with the other inputs of its surfaces moved to either side."""
    used = frozenset[str]().union(*(s.names for s in place.surfaces))
    others = [
        i.name
        for i in instance.rule.tensor_inputs
        if i.name in used and i.name != place.input and i.kind.is_real
    ]
    if not others:
        return
    for signs in islice(product((1, -1), repeat=len(others)), _MOST_PATTERNS):
        moved = {
            name: place.point[name] + sign * _ASIDE * (1 + number)
            for number, (name, sign) in enumerate(zip(others, signs, strict=True))
        }
        yield {**place.point, **moved}


def _pair(side: tuple[Limit, ...] | None) -> tuple[Limit, Limit]:
    if side is None:
        return OUTSIDE, OUTSIDE
    return side[0], (side[1] if len(side) > 1 else OUTSIDE)


def _here(place: Place, forward: Expr, stated: Expr | None) -> tuple[Limit, Limit]:
    """The values of the forward and the gradient at the place, or OUTSIDE if no
    floating-point number represents it."""
    if not place.root.exact:
        return OUTSIDE, OUTSIDE
    value = at(exactly(forward, place.point))
    if stated is None:
        return value, OUTSIDE
    return value, at(exactly(stated, place.point))


def _kind(forward: tuple[Limit, Limit, Limit], slopes: tuple[Limit, Limit]) -> Kind:
    left, value, right = forward
    if Trend.UNKNOWN in (left.trend, right.trend):
        return Kind.UNKNOWN
    if not left.is_inside or not right.is_inside:
        return Kind.END
    if Trend.INFINITE in (left.trend, right.trend):
        return Kind.POLE
    if not same(left, right):
        return Kind.JUMP
    if value.trend is not Trend.OUTSIDE and not (value.is_finite and same(left, value)):
        return Kind.REMOVABLE
    if not all(slope.is_inside for slope in slopes):
        return Kind.SMOOTH
    if any(slope.trend is Trend.INFINITE for slope in slopes):
        return Kind.UPRIGHT
    return Kind.SMOOTH if same(*slopes) else Kind.KINK
