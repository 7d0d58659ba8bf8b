"""Claims that a declared cotangent makes, judgements on them, and the points they need.

Where the domain is thin (an equation), narrow, or few points of it are decided, the
points that happen to be met may have in common what hides an error. So a claim that is
not proved has to agree at enough different generic points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

from gradspec.checks.instances import Instance, Point
from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import (
    closed_cotangent,
    indexed_cotangents,
    same,
)
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Declared, Derived, Input, Kind, Rule, Verdict
from gradspec.ir.walk import names, transform
from gradspec.symbolic.compare import Relation, compare
from gradspec.symbolic.domain import EDGE, Limits, restrained, whole_range
from gradspec.symbolic.sampling import generic_points

LEAST = 32
"""Different generic points at which an unproved claim has to agree."""

DRAWN = 48
"""Points drawn; a few of them may be kinks, or not decided."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one cotangent, and its diagnostics."""

    verdict: Verdict
    found: tuple[Diagnostic, ...] = ()


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


# --- enough points -----------------------------------------------------------------------


def further(claim: Claim) -> tuple[Point, ...]:
    """Generic points for a claim, or every point of a finite domain."""
    drawn = generic_points(claim.instance.rule, DRAWN)
    return (*drawn, *_every(claim, drawn[0])) if drawn else ()


def is_enough(claim: Claim, agreeing: Iterable[Point]) -> bool:
    """True if enough points differ in the inputs of the claim."""
    used = _used(claim)
    met = {_key(point, used) for point in agreeing}
    if len(met) >= LEAST:
        return True
    drawn = generic_points(claim.instance.rule, DRAWN)
    every = {_key(p, used) for p in _every(claim, drawn[0])} if drawn else set()
    return bool(met) and bool(every) and every <= met


def too_few(rule: Rule, variable: Input, entry: Declared, count: int) -> Diagnostic:
    where = "no point" if count == 0 else f"{count} point{'s'[: count != 1]} only"
    return error(
        "GS415",
        f"d{variable.name} of {rule.name} is not proved, and agrees at too few points",
        rule.source,
        entry.span,
        label=f"agrees with the derivative at {where}: {LEAST} different ones are needed",
        help="assume less, or in a simpler way (an equation solved for one input, an input"
        " that is given by others replaced by them); or leave the line out: a derived"
        " gradient is right without points",
    )


def _used(claim: Claim) -> tuple[Input, ...]:
    found = names(claim.declared) | names(claim.derived)
    return tuple(i for i in claim.instance.rule.inputs if i.name in found)


def _key(point: Point, used: tuple[Input, ...]) -> tuple[int, ...]:
    return tuple(round(point[i.name] * 2**EDGE) for i in used)


def _every(claim: Claim, base: Point) -> Iterator[Point]:
    """All values of the claim's inputs, if they are fewer than enough: each input is
    pinned (``x == 2``), a truth value or one of a few integers."""
    rule, used = claim.instance.rule, _used(claim)
    limits = Limits(rule)
    pinned = limits.pinned()
    pools = [_pool(i, limits) for i in used if i.name not in pinned]
    if any(pool is None for pool in pools):
        return
    inside = restrained(rule, limits.conditions)
    free = [i.name for i in used if i.name not in pinned]
    for number, values in enumerate(product(*(pool or () for pool in pools))):
        if number > LEAST:
            return
        point: Mapping[str, Fraction] = {**base, **dict(zip(free, values, strict=True))}
        if inside.holds(point):
            yield point


def _pool(variable: Input, limits: Limits) -> tuple[Fraction, ...] | None:
    if variable.kind is Kind.BOOL:
        return (Fraction(0), Fraction(1))
    if variable.kind not in (Kind.INT, Kind.STATIC_INT):
        return None
    low, high = whole_range(limits.room(variable.name, {}), variable.default)
    return tuple(map(Fraction, range(low, high + 1))) if high - low < LEAST else None


# --- index calculus ----------------------------------------------------------------------


@lru_cache(maxsize=16)
def derived(rule: Rule) -> dict[str, Derived]:
    """The derived cotangents by input; none if some derivative is not known."""
    try:
        return indexed_cotangents(rule)
    except Underivable:
        return {}


def is_equal(rule: Rule, name: str, entry: Declared) -> bool:
    """True if the declared cotangent equals the derived one for all sizes. (A rule
    without axes has no sizes, and a proof of its own.)"""
    true = None if rule.is_elementwise else derived(rule).get(name)
    if true is None:
        return False
    stated = closed_cotangent(rule, name, entry)
    return same(stated, closed_cotangent(rule, name, true))
