"""Whether a result is computed in float64: on the sample, and, of a gradient that is
derived, at the hardest of many more points."""

from __future__ import annotations

from itertools import islice

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import names
from gradspec.stabilise import wide
from gradspec.stabilise.further import Ground
from gradspec.stabilise.hard import hard
from gradspec.stabilise.points import Points
from gradspec.stabilise.referee import worse_at
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
    told = wide.reason_for_derived(pairs, closed)
    meaning = ground.trials[0].meaning
    worse = None if told else worse_at(rule, meaning, closed, target)
    return wide.reason_for_derived(ground.at(worse, target), closed) if worse else told


def still(
    ground: Ground, rule: Rule, closed: Expr, target: str, told: str
) -> tuple[bool, str]:
    """Whether a form that was found in float64 needs it (float32 may do for a sum whose
    terms are gone), and what is told: the reason ``told``, or what was wrong alone."""
    is_wide = bool(why(ground, rule, closed, target))
    return is_wide, told if is_wide else wide.fault(told)


def lost(
    ground: Ground, rule: Rule, closed: Expr, others: tuple[Expr, ...], target: str
) -> Points | None:
    """Points at which float64 may not do either, of a gradient that is derived; ``others``
    are the same function."""
    if not ground.is_derived:
        return None
    gathered = islice(ground.united(closed), 1)
    found = (*gathered, *ground.rewritten(closed), *others)
    return undone(rule, closed, found, target)
