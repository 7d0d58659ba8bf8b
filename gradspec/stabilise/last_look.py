"""A last look at a gradient that is computed in float64.

What mends what is bad there, first terms of an expansion (`about_ends.py`) or a conditional
between other forms, is found at some tens of points. So it is computed at many more, and
where it is another number there than what was there before, the truth is asked for: what
loses a point there is not taken, and first terms are looked for once more with these points
among those that count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.stabilise.choose import Choice
from gradspec.stabilise.further import Ground, Make, ended, further
from gradspec.stabilise.tried import Tried
from gradspec.stabilise.undone import undone
from gradspec.stabilise.written_order import as_written

_TURNS = 3
_OTHERS = 4


def last_look(
    far: Ground,
    rule: Rule,
    choice: Choice,
    heard: Iterable[Tried],
    candidate: Make,
    others: Iterable[Expr],
    target: str,
) -> Choice:
    """What is found in float64 (`further.py`), if it stands beside ``choice`` at many points
    more, or what is found with these among those that count, or a form with fewer bad points
    still; ``others`` are the same function."""
    better = further(far, choice, heard, candidate)
    if not far.is_derived:
        return in_written_order(far, better, candidate)
    known = tuple(islice(others, _OTHERS))
    first = choice
    far, choice = _looked_over(far, rule, first, better, candidate, known, target)
    closed = candidate(choice.form).closed
    wider = _doubted(far, rule, closed, known, target)
    for form in far.rewritten(closed):
        wider = _doubted(wider or far, rule, closed, (form,), target) or wider
    if better.form != choice.form or wider is not None:
        far = wider or far
        again = further(far, first, heard, candidate)
        far, choice = _looked_over(far, rule, choice, again, candidate, known, target)
    for _ in range(_TURNS):
        found = ended(far, choice, candidate)
        if found.form == choice.form:
            break
        far, choice = _looked_over(far, rule, choice, found, candidate, known, target)
    return in_written_order(far, choice, candidate)


def _doubted(
    far: Ground, rule: Rule, closed: Expr, others: tuple[Expr, ...], target: str
) -> Ground | None:
    """With some of many points at which ``closed`` is bad, if it is bad at any."""
    fresh = undone(rule, closed, others, target)
    if fresh is None:
        return None
    wider = far.widened(fresh, target)
    return wider if wider.scores(closed)[-1].whole.bad else None


def _looked_over(
    far: Ground,
    rule: Rule,
    choice: Choice,
    found: Choice,
    candidate: Make,
    others: tuple[Expr, ...],
    target: str,
) -> tuple[Ground, Choice]:
    """``found``, if it is not worse than ``choice`` at points that tell the two or
    ``others`` apart either; and the ground with these."""
    if found.form == choice.form:
        return far, choice
    new, old = candidate(found.form).closed, candidate(choice.form).closed
    fresh = undone(rule, new, (old, *others), target)
    if fresh is None:
        return far, found
    far = far.widened(fresh, target)
    return far, found if far.allows(new, old) else choice


def in_written_order(ground: Ground, choice: Choice, candidate: Make) -> Choice:
    """``choice`` with its sums as they are written, if that is worse nowhere."""
    form = as_written(choice.form, ground.trials[0].meaning)
    if form == choice.form:
        return choice
    new, old = candidate(form).closed, candidate(choice.form).closed
    return replace(choice, form=form) if ground.allows(new, old) else choice
