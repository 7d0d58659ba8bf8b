"""The search for a likely cause: hypotheses tried by enclosures at many points."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from gradspec.checks.claims import Claim, at_several_places
from gradspec.checks.diagnosis.hypotheses import HYPOTHESES
from gradspec.checks.diagnosis.places import Exhausted, Guess, Scene
from gradspec.checks.instances import Instance, Point, stem
from gradspec.ir.elements import OutOfRange
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Kind
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.neighbours import borders_at, on_border
from gradspec.symbolic.recognise import same

_MOST_ROWS = 240
"""Points times elements: several instances have at least a few points each."""

_LEAST_POINTS = 4
_VARIED = 6
_MORE = 3
"""Guesses besides the first, which may be wrong at a point that is not sampled."""


def likely_causes(
    claim: Claim, witness: Point, instances: tuple[Instance, ...]
) -> tuple[Guess, ...]:
    """The guesses of the first hypothesis that holds at every point, the witness
    included. ``instances`` begin with that of the claim."""
    first, name = instances[0], stem(claim.input.name)
    is_smooth = not on_border(_borders(first, name), witness)
    smooth = {
        one: _smooth(one, name, (witness,) if one is first else ()) for one in instances
    }
    room = _MOST_ROWS // len(instances)
    points = {
        one: found[: max(_LEAST_POINTS, room // _elements(one, name))]
        for one, found in smooth.items()
        if found
    }
    if not at_several_places(claim, points.get(first, ()), 3):
        return ()
    scene = Scene(first.written, name, points)
    try:
        if not is_smooth and same(scene.root.meant, scene.root.now):
            return (_only_at(claim, witness),)
        return _found(scene)
    except Exhausted:
        return ()


def _found(scene: Scene) -> tuple[Guess, ...]:
    for hypothesis in HYPOTHESES:
        guesses = (guess for guess in hypothesis(scene) if guess.holds(scene))
        try:
            first = next(guesses, None)
            if first is not None:
                more = islice(guesses, _MORE) if first.new is not None else ()
                return (first, *more)
        except OutOfRange:  # what it looks at does not exist at every element
            continue
    return ()


def _only_at(claim: Claim, witness: Point) -> Guess:
    """The guess that it is wrong only where two values are equal."""
    pairs = borders_at((claim.declared,), witness)
    where = " at this point"
    if pairs:
        left, right = (show(tidy(side)) for side in pairs[0])
        where = f" where {left} = {right}"
    return Guess(f"it is right everywhere but{where}")


def _elements(instance: Instance, name: str) -> int:
    return max(1, sum(stem(other) == name for other in instance.derived))


def _smooth(
    instance: Instance, name: str, begin: tuple[Point, ...]
) -> tuple[Point, ...]:
    """The points that lie on no border, and some of them with other values of the
    statics, so that a parameter is distinguished from a number."""
    borders, assumed = _borders(instance, name), instance.assumed
    statics = [v.name for v in instance.rule.inputs if v.kind is Kind.STATIC]
    points = (*begin, *instance.points)
    found = [point for point in points if not on_border(borders, point)]
    moved = [
        {**p, **{n: p[n] * Fraction(7 - k, 8) for k, n in enumerate(statics)}}
        for p in (found[:_VARIED] if statics else ())
    ]
    other = [
        point
        for point in moved
        if all(enclose(c, point) is True for c in assumed)
        and not on_border(borders, point)
    ]
    return (*found[:_LEAST_POINTS], *other, *found[_LEAST_POINTS:])


def _borders(instance: Instance, name: str) -> tuple[Expr, ...]:
    elements = [other for other in instance.derived if stem(other) == name]
    return (
        *instance.forward.values(),
        *(instance.stated[one] for one in elements),
        *(instance.derived[one] for one in elements),
    )
