"""A rule whose search ran out of time: the forms that were chosen by then, every other
formula as it is written, and float64 where float32 loses what float64 keeps.

That takes a hundredth of what a search takes: nothing is rewritten, each result that is
left is measured once as it stands, on the sample and at the hardest of some thousand
points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradspec.ir import closed
from gradspec.ir.calls import calls_surrogate
from gradspec.ir.expr import Expr
from gradspec.ir.rule import CheckedRule, Declared, Derived, Rewrite, Rule
from gradspec.ir.text import show
from gradspec.ir.walk import size
from gradspec.stabilise import wide, widening
from gradspec.stabilise.dead import without_dead_locals
from gradspec.stabilise.exact import restored
from gradspec.stabilise.further import Ground
from gradspec.stabilise.guard import guarded
from gradspec.stabilise.inlined import without_calls
from gradspec.stabilise.measure import Trial, is_real
from gradspec.stabilise.model import Machine
from gradspec.stabilise.part_way import PartWay
from gradspec.stabilise.points import Points, points
from gradspec.stabilise.unsearched import as_written, tidied

SHARE = 0.15
"""Of a rule's budget, what is kept for this."""

_LEAST = 3  # nodes of a formula that may lose anything


def hurried(checked: CheckedRule, part: PartWay | None = None) -> CheckedRule:
    """The rule as it is written, but for the forms that ``part`` has of it, with float64
    for the results that need it."""
    rule = checked.rule
    sample = points(rule) if rule.is_elementwise else None
    if sample is None or not len(sample):
        return replace(as_written(checked), as_written=False)
    begun = (part or PartWay(without_calls(rule))).sound(rule)
    begun = replace(begun, rule=tidied(begun.rule))
    whole = begun.whole()
    needs = () if calls_surrogate(rule) else _needs(rule, whole, sample, begun.done)
    names = (*begun.wide, *(need.name for need in needs))
    again = wide.recomputing(whole, list(names))
    safe = guarded(without_dead_locals(begun.rule, again), sample)
    return replace(
        checked,
        rule=restored(rule, safe),
        wide=names,
        rewrites=(*checked.rewrites, *begun.rewrites, *needs),
        harms=begun.harms,
    )


def _needs(
    rule: Rule, whole: Rule, sample: Points, done: tuple[str, ...]
) -> tuple[Rewrite, ...]:
    """What is to be computed in float64, and why; of ``done`` that is known."""
    results = {**closed.outputs(whole), **_gradients(whole)}
    found = []
    for name, form in results.items():
        is_left = name not in rule.exacts and name not in done
        why = _why(rule, sample, form) if is_left else ""
        if why:
            found.append(Rewrite(name, show(form), show(form), why))
    return tuple(found)


def _gradients(rule: Rule) -> dict[str, Expr]:
    """Those that are the derivative of what is written."""
    pairs = zip(rule.inputs, rule.backward, strict=True)
    known = {f"d{v.name}" for v, e in pairs if isinstance(e, Derived | Declared)}
    return {n: e for n, e in closed.cotangents(rule).items() if n in known}


def _why(rule: Rule, sample: Points, form: Expr) -> str:
    """The reason for float64, by what is asked of derived gradients: nobody has looked
    for anything better."""
    if not is_real(form) or size(form) < _LEAST:
        return ""
    machine = Machine(sample.columns, np.float32)
    try:
        ground = Ground(
            (Trial(form, sample, machine),),
            (wide.usual(rule, sample),),
            lambda part: part,
            is_derived=True,
        )
        return widening.why(ground.beyond(rule, ""), rule, form, "")
    except NotImplementedError:  # a part that neither balls nor the model know
        return ""
