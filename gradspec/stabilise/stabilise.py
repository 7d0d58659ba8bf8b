"""Selection of the form in which each expression of a rule is evaluated.

The passes, for each quantity: points and exact values → as written, if that is good →
candidates → choice; in elementwise rules then products that leave the range (`ranges`)
→ series (`series`) → float64. Forward first, then, on the forward as selected, the
cotangents; overrides stay as they are. Last, branches of conditionals are guarded
(`guards`).
"""

from __future__ import annotations

import sys
from dataclasses import replace

from gradspec.derive.recurrence import cut_open
from gradspec.ir.recurrence import states
from gradspec.ir.rule import Chosen, Complete, Judged
from gradspec.ir.tidy import tidy
from gradspec.stabilise.arrays import ArraySelection
from gradspec.stabilise.comparisons import with_comparands, without_names
from gradspec.stabilise.guards import with_guards
from gradspec.stabilise.names import (
    map_values,
    without_calls,
    without_dead_locals,
)
from gradspec.stabilise.recurrence import sew
from gradspec.stabilise.scalars import ScalarSelection
from gradspec.stabilise.tips import with_tips
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.domain import signs
from gradspec.symbolic.points.measured import points


def stabilise(judged: Judged, effort: Effort | None = None) -> Chosen:
    """The rule with its expressions in the forms that measure best. Raises OutOfSteps
    if ``effort`` does not suffice; without one there is no limit. Steps are counted, so
    that the search ends at the same point on any machine.
    """
    if states(judged.rule):
        opened = replace(judged, rule=cut_open(judged.rule))
        return sew(judged, _selection(opened, effort))
    return _selection(judged, effort)


def _selection(judged: Judged, effort: Effort | None) -> Chosen:
    rule = without_calls(judged.rule)
    named, hidden = with_comparands(rule)
    select = ArraySelection if rule.has_axes else ScalarSelection
    work = select(named, judged.rule, effort or Effort(sys.maxsize), hidden)
    if not rule.has_axes and not work.samples:
        return Chosen(judged, judged.rule)
    found = _with_tips(without_names(work.run(), hidden, rule.exacts))
    done = without_dead_locals(rule, _recomputing(found, work.wide))
    safe = with_guards(done, work.points)
    work.losses += work.undefined_losses(safe)
    return Chosen(
        judged,
        safe,
        tuple(work.rewrites),
        tuple(work.losses),
        tuple(work.wide),
    )


def _with_tips(rule: Complete) -> Complete:
    """The rule with derived gradients that are 0 at tips of norms."""
    values = {let.name: let for let in rule.forward}
    return rule.redefine(
        *(
            replace(entry, value=with_tips(entry.value, values, signs(rule)))
            for entry in rule.backward
            if entry.is_derived
        )
    )


def as_written(judged: Judged) -> Chosen:
    """The rule evaluated as written, derived gradients as differentiation gives them.
    Branches of conditionals are guarded all the same: that changes no value, and keeps
    NaN out of second derivatives.
    """
    if states(judged.rule):
        return sew(judged, _unchanged(replace(judged, rule=cut_open(judged.rule))))
    return _unchanged(judged)


def _unchanged(judged: Judged) -> Chosen:
    rule = map_values(without_calls(judged.rule), tidy)
    sample = None if rule.has_axes else points(rule)
    safe = rule if sample is not None and not len(sample) else with_guards(rule, sample)
    return Chosen(judged, safe, as_written=True)


def _recomputing(rule: Complete, wide: list[str]) -> Complete:
    """Cotangents computed in float64 must not use rounded outputs: outputs are
    recomputed, unless the author saves them.
    """
    if not any(i.cotangent in wide for i in rule.inputs):
        return rule
    kept = {*rule.saves, *rule.recomputes}
    again = tuple(o.name for o in rule.outputs if o.name not in kept)
    return replace(rule, recomputes=(*rule.recomputes, *again))
