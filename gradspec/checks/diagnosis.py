"""What is probably wrong with a refuted cotangent.

Each guess is tried on the values at the sampled points and told only if what it says
makes the cotangent right at all of them. Terms are shown in the author's own names.
"""

from __future__ import annotations

from fractions import Fraction

from gradspec.checks.claims import Claim, at_several_places
from gradspec.checks.guess import MOST_POINTS, Case, Guess
from gradspec.checks.guesses_branches import wrong_condition
from gradspec.checks.guesses_here import here
from gradspec.checks.guesses_missing import (
    chain_factor,
    contribution,
    missing,
    numeric_factor,
)
from gradspec.checks.guesses_relatives import relative
from gradspec.checks.guesses_whole import (
    any_factor,
    exchanged,
    only_at,
    renamed,
    simple_factor,
    still_absent,
    swapped,
    swapped_names,
    upstream,
    vanishing,
)
from gradspec.checks.instances import Point
from gradspec.ir.rule import Kind
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.neighbours import on_border

_VARIED = 6

GUESSES = (
    upstream,
    vanishing,
    simple_factor,
    exchanged,
    chain_factor,
    here,
    swapped,
    any_factor,
    wrong_condition,
    swapped_names,
    renamed,
    numeric_factor,
    contribution,
    relative,
    missing,
    still_absent,
)
"""In the order in which they convince a reader."""


def diagnose(claim: Claim, witness: Point) -> Guess | None:
    """The first guess that fits."""
    borders = (*claim.instance.forward.values(), claim.declared, claim.derived)
    smooth = not on_border(borders, witness)
    found = [witness] if smooth else []
    found += [p for p in claim.instance.points if not on_border(borders, p)]
    found = found[:MOST_POINTS]
    varied = _other_statics(claim, found)
    points = tuple(found + [p for p in varied if not on_border(borders, p)])
    if len(points) < 3 or not at_several_places(claim, points, 3):
        return None
    case = Case(claim, points)
    if not smooth:
        guess = only_at(case, witness)
        if guess is not None:
            return guess
    for look in GUESSES:
        guess = look(case)
        if guess is not None:
            return guess
    return None


def _other_statics(claim: Claim, points: list[Point]) -> list[Point]:
    """Some of the points with other values of the statics, so that a parameter is told
    from a number."""
    statics = [v.name for v in claim.instance.rule.inputs if v.kind is Kind.STATIC]
    moved: list[Point] = [
        {**p, **{name: p[name] * Fraction(7 - k, 8) for k, name in enumerate(statics)}}
        for p in points[:_VARIED]
    ]
    assumed = claim.instance.assumed
    return [p for p in moved if all(enclose(c, p) is True for c in assumed)]
