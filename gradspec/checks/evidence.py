"""Evidence for a declared cotangent: it and the derivative compared in balls at points, and a proof.

Order of the means, by measured cost: balls at sampled points refute in a millisecond,
then a proof is looked for.

A threshold that is off by a millionth is wrong on a strip that no sample meets: regions
are looked at in `regions`, where there is no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from gradspec.checks.instances import Instance, Point
from gradspec.derive.chain import is_linear
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Definition, Input, Kind
from gradspec.ir.walk import names, transform
from gradspec.symbolic.borders.limits import (
    beside,
    choices,
    lies_between,
    limits,
    on_border,
)
from gradspec.symbolic.compare import (
    ROUNDED,
    Comparison,
    Relation,
    compare,
    compare_finely,
    meets,
    shared_digits,
)
from gradspec.symbolic.points.domain import Limits

_FINELY = 4
"""Points at which two sides that are not proved equal are compared in many digits."""

_BASES = 3  # points at which a parameter is moved to an end of its range
_FACTORS = (0, Fraction(1, 2**100), 2**20, -(2**10), 2**120, -(2**120))
"""Multiples of an upstream gradient."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One declared cotangent beside the true one, both closed."""

    instance: Instance
    input: Input
    entry: Definition
    declared: Expr
    derived: Expr

    @property
    def name(self) -> str:
        return self.input.cotangent

    @property
    def given(self) -> tuple[Expr, ...]:
        """Values without which nothing is claimed: those of the outputs."""
        return tuple(self.instance.forward.values())

    @property
    def shown(self) -> tuple[str, ...]:
        """The names that a witness has to show: all, on which solutions depend."""
        used = names(self.declared) | names(self.derived)
        shown = self.instance.shown
        return tuple(n for n in shown if n in used or self.instance.equations)

    @property
    def used(self) -> tuple[Input, ...]:
        """The inputs on which it depends."""
        shown = self.shown
        return tuple(i for i in self.instance.given if i.name in shown)


def at_several_places(claim: Claim, points: Iterable[Point], least: int) -> bool:
    """True if at least ``least`` of the points differ in the inputs on which the claim
    depends. One place with several upstream gradients does not make a pattern.
    """
    shown = [v.name for v in claim.used if v.kind is not Kind.BOOL]
    places = {tuple(point[name] for name in shown) for point in points}
    return not shown or len(places) >= least


_RELATIVE, _ABSOLUTE = 1e-15, 1e-18


def is_rounding(claim: Claim, witness: Point) -> bool:
    """True if the declared cotangent and the derivative differ by a relative 1e-15 or
    an absolute 1e-18 at most, at the witness and at every sampled point, without
    constants of that size that guard divisors (``y + 1e-19``)."""
    forms = claim.declared, claim.derived
    bare = transform(forms[0], _without_hair), transform(forms[1], _without_hair)
    points = (witness, *claim.instance.points)
    seen = [compare(*bare, point) for point in points]
    apart = [one for one in seen if one.relation is Relation.DIFFERENT]
    sizes = [max(abs(one.left), abs(one.right)) for one in apart]
    # An absolute hair is one beside values of ordinary size.
    least = _ABSOLUTE if any(_RELATIVE * size >= _ABSOLUTE for size in sizes) else 0
    return (bool(apart) or bare != forms) and all(
        abs(one.left - one.right) <= max(_RELATIVE * size.lower(), least)
        for one, size in zip(apart, sizes, strict=True)
    )


def _without_hair(node: Expr) -> Expr:
    match node:
        case Apply(op="add" | "sub", args=(rest, Const(value=value))) if _is_hair(
            value
        ):
            return rest
        case Apply(op="add", args=(Const(value=value), rest)) if _is_hair(value):
            return rest
        case _:
            return node


def _is_hair(value: Fraction) -> bool:
    return abs(value) <= _ABSOLUTE


@dataclass(frozen=True, slots=True)
class Evidence:
    """The result of evaluating a claim in ball arithmetic: a contradiction or
    support."""

    claim: Claim
    comparisons: tuple[tuple[Point, Comparison], ...]
    refuted: tuple[Point, Comparison] | None = None
    outside: tuple[Point, Comparison, tuple[object, ...]] | None = None
    hole: tuple[Point, Comparison] | None = None
    rounded: tuple[Comparison, ...] = ()

    @property
    def bits(self) -> int:
        """The highest precision needed."""
        return max((seen.bits for _, seen in self.comparisons), default=0)

    @property
    def agreeing(self) -> tuple[int, ...]:
        """The number of agreeing digits at every point that agrees."""
        equal = (s for _, s in self.comparisons if s.relation is Relation.EQUAL)
        return tuple(seen.digits for seen in equal)

    @property
    def supporting(self) -> tuple[Point, ...]:
        """The points that agree, if only to the digits of the numbers as written."""
        rounded = {id(seen) for seen in self.rounded}
        return tuple(
            point
            for point, seen in self.comparisons
            if seen.relation is Relation.EQUAL or id(seen) in rounded
        )


def examine(claim: Claim, points: Iterable[Point]) -> Evidence:
    """The evidence for a claim at points; where there are equations, at solutions near
    them that are no kinks."""
    evidence = tuple(
        (point, compare(claim.declared, claim.derived, point))
        for point in claim.instance.solve_points(points)
    )
    borders = (*claim.instance.forward.values(), claim.declared, claim.derived)
    kinks: list[tuple[Point, Comparison]] = []
    holes: list[tuple[Point, Comparison]] = []
    rounded: list[Comparison] = []
    for point, seen in evidence:
        match seen.relation:
            case Relation.DIFFERENT if _is_rounded(claim, point, seen):
                rounded.append(seen)
            case Relation.DIFFERENT if on_border(borders, point):
                kinks += [(point, seen)] if not claim.instance.equations else []
            case Relation.DIFFERENT:
                return Evidence(claim, evidence, (point, seen))
            case Relation.LEFT_UNDEFINED:
                holes.append((point, seen))
            case _:
                continue
    for point, seen in holes:
        if not _fills(claim, point):
            return Evidence(claim, evidence, (point, seen))
    for point, seen in kinks:
        ends = limits(claim.derived, point, claim.input.name, claim.instance.assumed)
        if not ends and not on_border(
            (*claim.instance.forward.values(), claim.derived), point
        ):
            return Evidence(claim, evidence, (point, seen))  # only the declared side
        if ends and not lies_between(seen.left, ends):
            if _is_each_slope(claim, point, seen, ends):
                continue
            is_kink = not all(lies_between(seen.right, (end,)) for end in ends)
            if not is_kink and not _fills(claim, point):
                return Evidence(
                    claim, evidence, (point, seen)
                )  # it differs beside it too
            return Evidence(claim, evidence, outside=(point, seen, ends))
    hole = holes[0] if holes else None
    return Evidence(claim, evidence, hole=hole, rounded=tuple(rounded))


def _is_rounded(claim: Claim, point: Point, seen: Comparison) -> bool:
    """True of a difference that the rounding of long decimals explains, and that is
    small: they must not be amplified."""
    if not meets(claim.declared, claim.derived, point):
        return False
    digits = shared_digits(seen.left, seen.right)
    return digits >= ROUNDED


def everywhere(claim: Claim) -> Iterator[Point]:
    """The sample; and upstream gradients of every size if a side is not plainly linear
    in them (a clipped one is the derivative as long as it is small)."""
    yield from claim.instance.points
    upstream = claim.instance.rule.cotangents
    sides = (claim.declared, claim.derived)
    if all(is_linear(side, claim.instance.linear) for side in sides):
        return
    for point in claim.instance.points[:4]:
        for factor in _FACTORS:
            yield {**point, **{name: factor * point[name] for name in upstream}}
        first = point[upstream[0]]
        signs = ((1, 1), (1, -1)) if len(upstream) > 1 else ()
        for even, odd in signs:
            values = (first * (odd if k % 2 else even) for k in range(len(upstream)))
            yield {**point, **dict(zip(upstream, values, strict=True))}


def hole_at_end(claim: Claim) -> tuple[Point, Comparison] | None:
    """The first point, with a parameter at an end of its range, at which the declared
    cotangent has no value and the outputs and the derivative have one (``(x - t) /
    beta`` for ``beta`` and ``x - t`` 0). No sample has parameters there: what they mean
    at an end is another question, unless nothing is emitted but NaN."""
    if claim.instance.equations:
        return None
    for point in filter(claim.instance.is_inside, _ends(claim)):
        seen = compare(claim.declared, claim.derived, point)
        if seen.relation is Relation.LEFT_UNDEFINED:
            return point, seen
    return None


def _ends(claim: Claim) -> Iterator[Point]:
    """Tensors as sampled, all alike, and 0."""
    rule, known = claim.instance.rule, Limits(claim.instance.rule)
    used = names(claim.declared)
    reals = rule.real_inputs
    statics = [i for i in rule.static_inputs if i.kind is Kind.STATIC]
    for static in statics:
        room = known.room(static.name, {})
        ends = [Fraction(0), *(end for end in (room.low, room.high) if end is not None)]
        for end in dict.fromkeys(ends) if static.name in used else ():
            for base in claim.instance.points[:_BASES] if room.holds(end) else ():
                point = {**base, static.name: end}
                yield point
                for value in (*(base[name] for name in reals[:1]), Fraction(0)):
                    yield {**point, **dict.fromkeys(reals, value)}


def _is_each_slope(
    claim: Claim, point: Point, seen: Comparison, ends: tuple[object, ...]
) -> bool:
    """True where kinks meet if the value is a sum of slopes, one of each kink."""
    values = choices(claim.derived, point)
    return values is None or (
        bool(values) and lies_between(seen.left, (*ends, *values))
    )


def _fills(claim: Claim, point: Point) -> bool:
    """True if both agree along some input beside a point where the declared value does
    not exist (or differs). Then the derivative is its limit: a removable singularity.
    (Along the others the point may stay on the surface that it lies on.)"""
    assumed = claim.instance.assumed
    for variable in claim.instance.rule.tensor_inputs:
        sides = [
            compare(claim.declared, claim.derived, near).relation
            for near in claim.instance.solve_points(
                beside(point, variable.name, assumed)
            )
        ]
        if Relation.EQUAL in sides and Relation.DIFFERENT not in sides:
            return True
    return False


def far_apart(seen: Evidence) -> tuple[Point, Comparison] | None:
    """A point at which unproved equality fails in very many digits: ``1e-300`` is not
    0. (The points of equations have fewer.)"""
    if seen.claim.instance.equations:
        return None
    equal = (p for p, found in seen.comparisons if found.relation is Relation.EQUAL)
    borders = (
        *seen.claim.instance.forward.values(),
        seen.claim.declared,
        seen.claim.derived,
    )
    for point in islice(equal, _FINELY):
        finer = compare_finely(seen.claim.declared, seen.claim.derived, point)
        if finer is not None and not on_border(borders, point):
            return point, finer
    return None
