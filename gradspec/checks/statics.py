"""Statics on the other side of 0 and of 1 than their defaults.

The sample keeps a static to the sign and the side of 1 of its default, because what its
author says of a slope of 0.01 need not hold for one of 2 or -1. Where no assumption says
so and no proof covers the rest, the author is told what does not hold there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from gradspec.checks.subject import Point, Subject
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Input, Kind
from gradspec.ir.walk import names
from gradspec.symbolic.compare import Comparison, Relation, compare
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.neighbours import PRECISION, on_border
from gradspec.symbolic.rounded import meets

_POINTS = 6


@dataclass(frozen=True, slots=True)
class Beyond:
    """A static, a point with another value of it, and both sides there; ``condition``
    would keep it out.
    """

    static: str
    condition: str
    point: Point
    seen: Comparison


def beyond_defaults(subject: Subject, declared: Expr, derived: Expr) -> Beyond | None:
    """Where the two differ as soon as a static leaves the side of its default."""
    used = names(declared) | names(derived)
    borders = (*subject.forward.values(), declared, derived)
    for static in subject.rule.inputs:
        if static.kind is not Kind.STATIC or static.name not in used:
            continue
        for condition, point in _elsewhere(static, subject):
            seen = compare(declared, derived, point)
            if seen.relation is not Relation.DIFFERENT or on_border(borders, point):
                continue
            if not meets(declared, derived, point):
                return Beyond(static.name, condition, point, seen)
    return None


def _elsewhere(static: Input, subject: Subject) -> Iterator[tuple[str, Point]]:
    """Points at which nothing but the static is another, inside the assumptions, with
    outputs that exist.
    """
    name = static.name
    usual = static.default if static.default is not None else Fraction(1)
    for point in subject.points[:_POINTS]:
        for condition, value in _others(name, usual, point[name]):
            moved = {**point, name: value}
            if all(enclose(c, moved, PRECISION) is True for c in subject.assumed):
                yield condition, moved


def _others(
    name: str, usual: Fraction, value: Fraction
) -> Iterator[tuple[str, Fraction]]:
    """Another value, and the condition that it breaks."""
    if usual == 0:
        return
    if value:
        yield f"{name} {'>' if usual > 0 else '<'} 0", -value
    if usual > 0 and value not in (0, 1):
        yield f"{name} {'<' if usual < 1 else '>='} 1", 1 / value
