"""The last resort: to compute in float64 what float32 cannot give, and round it once.

It costs twice the bytes and, on most accelerators, more time than that, so it is taken
only where the best form found is bad at one point in a hundred, or is off by more than
4 ULP at one point in thirty of the core, and float64 mends it. (Less than that is the
neighbourhood of a zero, where the result depends on the input's own last digits, or the
very end of the range.) Float64 arguments are computed as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.stabilise.measure import GOOD, Score, Trial
from gradspec.stabilise.points import Points

_SHARE = 0.035
"""Of the points of the core, beyond 4 ULP."""

_BAD, _FEW = 0.01, 2
"""Of all points, bad ones; and how many are none too many in the core, where several
inputs that nearly cancel give 0."""
_REMEDY = ": computed in float64, at twice the bytes, and rounded"

Pair: TypeAlias = tuple[Trial, Any]
"""A trial, and the points of it that count."""

_GAIN = 4.0
"""How many times smaller the largest error must become."""


def usual(rule: Rule, sample: Points) -> Any:
    """The points at which statics have their defaults: other values bring rounding errors
    of their own (``beta * x``), which are no reason to make every call slower."""
    chosen = np.ones(len(sample), dtype=bool)
    for static in rule.static_inputs:
        if static.default is not None:
            column = sample.columns[static.name]
            chosen &= column == column.dtype.type(float(static.default))
    return chosen


def recomputing(rule: Rule, wide_names: list[str]) -> Rule:
    """What is computed in float64 is no better than an output that was rounded: outputs
    are computed again, unless the author saves them."""
    if not any(f"d{i.name}" in wide_names for i in rule.inputs):
        return rule
    kept = {*rule.saves, *rule.recomputes}
    again = tuple(o.name for o in rule.outputs if o.name not in kept)
    return replace(rule, recomputes=(*rule.recomputes, *again))


def reason(pairs: tuple[Pair, ...], candidate: Expr) -> str:
    """Why ``candidate`` is to be computed in float64 (measured at the chosen points of
    each trial); empty if it is not.

    Only what is poor is computed so (special functions take long: they are balls)."""
    trial, where = pairs[0]
    narrow = trial.score_at(candidate, where)
    few = 0 if len(trial.variables) == 1 else _FEW
    if not _is_poor(narrow, few):
        return ""
    return _told(pairs[0], candidate, narrow)


def reason_for_derived(pairs: tuple[Pair, ...], candidate: Expr) -> str:
    """The same for a gradient that is derived: any bad point is a reason, and so is being
    off by more than 4 ULP at several points of the core (at one, where two branches meet,
    it may be luck): nobody has chosen that form, and no reader sees what it loses."""
    for pair in pairs:
        narrow = pair[0].score_at(candidate, pair[1])
        often = int((narrow.core.errors > GOOD).sum()) >= _FEW
        why = _told(pair, candidate, narrow) if narrow.whole.bad or often else ""
        if why:
            return why
    return ""


def _told(pair: Pair, candidate: Expr, narrow: Score) -> str:
    wide = pair[0].score_in_double(candidate, pair[1])
    if not _mends(wide, narrow):
        return ""
    if wide.whole.bad < narrow.whole.bad:
        was = f"{narrow.whole.bad} of {narrow.whole.count} points wrong"
    else:
        was = f"off by {narrow.core.worst + 0.5:.0f} ULP"
    return f"in float32 {was}{_REMEDY}"


def fault(reason: str) -> str:
    """What was wrong, without what is done about it."""
    return reason.removesuffix(_REMEDY)


def _is_poor(score: Score, few: int) -> bool:
    whole, core = score.whole, score.core
    many = whole.bad > max(_FEW, _BAD * whole.count)
    return core.share > _SHARE or core.bad > few or many


def _mends(wide: Score, narrow: Score) -> bool:
    """Fewer bad points, or a much smaller error, and nothing worse."""
    if wide.whole.bad > narrow.whole.bad or wide.core.worst > max(narrow.core.worst, 1):
        return False
    fewer = wide.whole.bad < narrow.whole.bad
    return fewer or _GAIN * wide.core.worst <= narrow.core.worst
