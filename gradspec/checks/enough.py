"""Does a cotangent that is not proved agree at enough different points?

Where the domain is thin (an equation), narrow, or few points of it are decided, the
points that happen to be met may have in common what hides an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product

from gradspec.checks.claims import Claim
from gradspec.checks.subject import Point
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.rule import Declared, Input, Kind, Rule
from gradspec.ir.walk import names
from gradspec.symbolic.generic import EDGE, Limits, restrained, whole_range
from gradspec.symbolic.sampling import generic_points

LEAST = 32
"""Different generic points at which what is not proved has to agree."""

DRAWN = 48
"""A few of them may be kinks, or not decided."""


def further(claim: Claim) -> tuple[Point, ...]:
    """Generic points for a claim, and every point of a domain that is finite."""
    drawn = generic_points(claim.subject.rule, DRAWN)
    return (*drawn, *_every(claim, drawn[0])) if drawn else ()


def is_enough(claim: Claim, agreeing: Iterable[Point]) -> bool:
    """Different values of the inputs that the claim speaks of."""
    used = _used(claim)
    met = {_key(point, used) for point in agreeing}
    if len(met) >= LEAST:
        return True
    drawn = generic_points(claim.subject.rule, DRAWN)
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
    return tuple(i for i in claim.subject.rule.inputs if i.name in found)


def _key(point: Point, used: tuple[Input, ...]) -> tuple[int, ...]:
    return tuple(round(point[i.name] * 2**EDGE) for i in used)


def _every(claim: Claim, base: Point) -> Iterator[Point]:
    """All that the inputs of the claim can be, if that is fewer than enough: each is
    pinned (``x == 2``), a truth value or one of a few whole numbers."""
    rule, used = claim.subject.rule, _used(claim)
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
