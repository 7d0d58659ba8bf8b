"""Evidence for a declared cotangent: it and the derivative compared in balls at points, and a proof.

Order of the means, by measured cost: balls at sampled points refute in a millisecond,
then a proof is looked for.

A threshold that is off by a millionth is wrong on a strip that no sample meets. So each
threshold that only one of the two sides has is found by bisection, in one variable at a
time, and both of its sides are points to compare at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from gradspec.checks.instances import Instance, Point, stem
from gradspec.derive.chain import is_linear
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Declared, Input, Kind
from gradspec.ir.walk import names, nodes, transform
from gradspec.primitives.lookup import rows
from gradspec.symbolic.breaks import borders
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    compare_finely,
    meets,
)
from gradspec.symbolic.domain import Limits
from gradspec.symbolic.enclose import Program, defined, enclose, program
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.neighbours import (
    beside,
    choices,
    lies_between,
    limits,
    on_border,
)
from gradspec.symbolic.proof.prove import Search, search

_REAL = (Kind.FLOAT, Kind.NOGRAD)
_FINELY = 4
"""Points at which two sides that are not proved equal are compared in many digits."""

_MOST = 12  # thresholds
_BASES = 3  # points from which a threshold is looked for
_ELEMENTS = 2  # of a value with axes, in which one is looked for
_HALVINGS = 40
_GRID = sorted(
    Fraction(s) for s in (0, *(x for k in range(-4, 9) for x in (2.0**k, -(2.0**k))))
)
_STEPS = {
    row.name: row.zero_from + 1 or Fraction(1)
    for row in rows()
    if row.zero_from is not None
}
"""The lowest positive points at which step functions jump."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One declared cotangent beside the true one, both closed."""

    instance: Instance
    input: Input
    entry: Declared
    declared: Expr
    derived: Expr

    @property
    def name(self) -> str:
        return f"d{self.input.name}"

    @property
    def shown(self) -> tuple[str, ...]:
        """The names that a witness has to show."""
        used = names(self.declared) | names(self.derived)
        return tuple(name for name in self.instance.shown if name in used)


def at_several_places(claim: Claim, points: Iterable[Point], least: int) -> bool:
    """True if at least ``least`` of the points differ in the inputs on which the claim
    depends. One place with several upstream gradients does not make a pattern.
    """
    used = names(claim.declared) | names(claim.derived)
    numbers = [v.name for v in claim.instance.rule.inputs if v.kind is not Kind.BOOL]
    shown = [name for name in numbers if name in used]
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
    """The evidence for a claim at points."""
    evidence = tuple(
        (point, compare(claim.declared, claim.derived, point)) for point in points
    )
    borders = (*claim.instance.forward.values(), claim.declared, claim.derived)
    kinks: list[tuple[Point, Comparison]] = []
    holes: list[tuple[Point, Comparison]] = []
    rounded: list[Comparison] = []
    for point, seen in evidence:
        match seen.relation:
            case Relation.DIFFERENT if meets(claim.declared, claim.derived, point):
                rounded.append(seen)
            case Relation.DIFFERENT if on_border(borders, point):
                kinks.append((point, seen))
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


def everywhere(claim: Claim) -> Iterator[Point]:
    """The sample, thresholds that only one of the two has, and huge and tiny upstream
    gradients if it is not plainly linear (a clipped gradient is the derivative as long
    as it is small)."""
    yield from claim.instance.points
    reals = tuple(i.name for i in claim.instance.rule.inputs if i.kind in _REAL)
    both = claim.declared, claim.derived
    yield from _probes(*both, claim.instance.points, reals, claim.instance.assumed)
    upstream = claim.instance.upstream
    if is_linear(claim.declared, frozenset(upstream)):
        return
    for point in claim.instance.points[:4]:
        for factor in (2**20, -(2**10)):
            yield {**point, **{name: factor * point[name] for name in upstream}}


def hole_at_end(claim: Claim) -> tuple[Point, Comparison] | None:
    """The first point, with a parameter at an end of its range, at which the declared
    cotangent has no value and the outputs and the derivative have one (``(x - t) /
    beta`` for ``beta`` and ``x - t`` 0). No sample has parameters there: what they mean
    at an end is another question, unless nothing is emitted but NaN."""
    for point in filter(claim.instance.is_inside, _ends(claim)):
        seen = compare(claim.declared, claim.derived, point)
        if seen.relation is Relation.LEFT_UNDEFINED:
            return point, seen
    return None


def _ends(claim: Claim) -> Iterator[Point]:
    """Tensors as sampled, all alike, and 0."""
    rule, known = claim.instance.rule, Limits(claim.instance.rule)
    used = names(claim.declared)
    reals = [i.name for i in rule.tensor_inputs if i.kind in _REAL]
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
            for near in beside(point, variable.name, assumed)
        ]
        if Relation.EQUAL in sides and Relation.DIFFERENT not in sides:
            return True
    return False


def far_apart(seen: Evidence) -> tuple[Point, Comparison] | None:
    """A point at which unproved equality fails in very many digits: ``1e-300`` is not
    0."""
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


def prove(claim: Claim, effort: Effort) -> Search:
    """A proof of the claim, if one is found with so much effort."""
    return search(
        claim.declared,
        claim.derived,
        claim.instance.assumed,
        effort,
        wrt=claim.input.name,
        whole=claim.instance.whole,
    )


# --- thresholds --------------------------------------------------------------------------


def _probes(
    declared: Expr,
    derived: Expr,
    points: tuple[Point, ...],
    reals: tuple[str, ...],
    assumed: tuple[Expr, ...],
) -> Iterator[Point]:
    """Both sides of the thresholds that one of two expressions has in a real input."""
    one, two = _gaps(declared), _gaps(derived)
    apart = [gap for gap in (*one, *two) if (gap in one) != (gap in two)]
    for gap in apart[:_MOST]:
        compiled = program(gap)
        for point in points[:_BASES]:
            for name in _some(name for name in reals if name in names(gap)):
                for near in _sides(compiled, point, name):
                    if all(enclose(c, near) is True for c in assumed):
                        yield near


def _some(found: Iterable[str]) -> Iterator[str]:
    """All names, but only a few elements of one vector or matrix: they have the same
    role."""
    counts: Counter[str] = Counter()
    for name in found:
        counts[stem(name)] += 1
        if stem(name) == name or counts[stem(name)] <= _ELEMENTS:
            yield name


def _gaps(expr: Expr) -> dict[Expr, None]:
    """Expressions that are 0 where ``expr`` changes its branch; one jump of each
    step."""
    found: dict[Expr, None] = {}
    for left, right in borders(expr):
        found[Apply("sub", (left, right))] = None
    for node in nodes(expr):
        if isinstance(node, Apply) and node.op in _STEPS:
            found[Apply("sub", (node.args[0], Const(_STEPS[node.op])))] = None
    return found


def _sides(gap: Program, point: Point, name: str) -> Iterator[Point]:
    """Two very close points between which the gap changes its sign, if any."""
    bracket = _bracket(gap, point, name)
    if bracket is None:
        return
    low, high = bracket
    sign = _sign(gap, {**point, name: low})
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        seen = _sign(gap, {**point, name: middle})
        if seen is None or seen == 0:
            hair = max(abs(middle), Fraction(1)) / 2**_HALVINGS
            low, high = middle - hair, middle + hair
            break
        low, high = (middle, high) if seen == sign else (low, middle)
    yield {**point, name: low}
    yield {**point, name: high}


def _bracket(gap: Program, point: Point, name: str) -> tuple[Fraction, Fraction] | None:
    """Neighbours on a coarse grid between which the sign changes."""
    last: tuple[Fraction, int] | None = None
    for value in _GRID:
        sign = _sign(gap, {**point, name: value})
        if not sign:
            continue
        if last is not None and last[1] != sign:
            return last[0], value
        last = value, sign
    return None


def _sign(gap: Program, point: Point) -> int | None:
    """The sign of the gap; None where it is undefined or not decided."""
    ball = gap.run(point)[0]
    if not defined(ball) or ball is True or ball is False:
        return None
    if ball > 0:
        return 1
    return -1 if ball < 0 else (0 if ball.is_zero() else None)
