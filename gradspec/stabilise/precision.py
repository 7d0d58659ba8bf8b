"""Float64 for a result that no form gives in float32: computed in it, rounded once.

It costs twice the bytes and, on most accelerators, more than twice the time, so it is the
last resort: the selected form has bad points in float32 that it does not have in float64.
Where they are all far out, a gradient that is derived is a reason, and an output that many
points lose; else what the author wrote is reported (GS442) and left to the author. Float64
inputs are computed as they are.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import Rule
from gradspec.stabilise.accuracy_model import Quantity
from gradspec.stabilise.choice import Candidate

_FEW = 2
"""Bad points far out that are no reason to double the bytes of every call."""


OUTPUT = 0.025
"""The same of an output, as a part of all points."""


def in_double(quantity: Quantity, selected: Candidate, part: float) -> str:
    """The reason for float64; empty if there is none. ``part`` of the points, all of them
    far out, may be wrong without one."""
    single = selected.scores[0]
    if not single.core and single.bad <= max(_FEW, part * single.points):
        return ""
    wide = quantity.trials[0].score_in_double(quantity.close(selected.form))
    is_mended = wide.bad <= single.bad // 2
    if single.core:
        is_mended = wide.core <= single.core // 4 and wide.bad < single.bad
    if not is_mended:
        return ""
    return (
        f"in float32 {single.bad} of {single.points} points wrong: computed in float64,"
        " at twice the bytes, and rounded"
    )


def recomputing(rule: Rule, wide: list[str]) -> Rule:
    """Cotangents computed in float64 must not use outputs that were rounded: outputs are
    computed again, unless the author saves them."""
    if not any(f"d{i.name}" in wide for i in rule.inputs):
        return rule
    kept = {*rule.saves, *rule.recomputes}
    again = tuple(o.name for o in rule.outputs if o.name not in kept)
    return replace(rule, recomputes=(*rule.recomputes, *again))
