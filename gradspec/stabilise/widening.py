"""Whether a result is computed in float64: on the sample, and, of a gradient that is
derived, at the hardest of many more points."""

from __future__ import annotations

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import names
from gradspec.stabilise import wide
from gradspec.stabilise.excused import excused
from gradspec.stabilise.further import Ground
from gradspec.stabilise.hard import hard
from gradspec.stabilise.points import Points
from gradspec.stabilise.undone import undone


def why(ground: Ground, rule: Rule, closed: Expr, target: str) -> str:
    """The reason; empty if float32 does. Several upstream gradients cancel as their
    sender has it."""
    told = wide.reason(ground.single(), closed)
    upstream = names(closed) & ground.trials[0].points.upstream
    if told or not ground.is_derived or len(upstream) > 1:
        return told
    found = hard(rule, closed, target)
    pairs = ground.single() if found is None else ground.at(found, target)
    counted = tuple(
        (t, where & ~excused(rule, t.points.columns, closed, target))
        for t, where in pairs
    )
    return wide.reason_for_derived(counted, closed)


def lost(ground: Ground, rule: Rule, closed: Expr, target: str) -> Points | None:
    """Points at which float64 may not do either, of a gradient that is derived."""
    return undone(rule, closed, target) if ground.is_derived else None
