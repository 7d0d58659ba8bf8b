"""A rule whose search ran out of time: every formula as it is written, and float64 where
float32 loses what float64 keeps.

That takes a hundredth of what a search takes: nothing is rewritten, each result is
measured once as it stands, on the sample and at the hardest of some thousand points.
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
from gradspec.stabilise.further import Ground
from gradspec.stabilise.measure import Trial, is_real
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import Points, points
from gradspec.stabilise.unsearched import as_written

SHARE = 0.15
"""Of a rule's budget, what is kept for this."""

_LEAST = 3  # nodes of a formula that may lose anything


def hurried(checked: CheckedRule) -> CheckedRule:
    """The rule as it is written, with float64 for the results that need it."""
    written = replace(as_written(checked), as_written=False)
    rule = checked.rule
    if not rule.is_elementwise or calls_surrogate(rule):
        return written
    sample = points(rule)
    if not len(sample):
        return written
    needs = tuple(_needs(rule, sample))
    names = tuple(need.name for need in needs)
    safe = wide.recomputing(written.rule, list(names))
    return replace(written, rule=safe, wide=names, rewrites=(*checked.rewrites, *needs))


def _needs(rule: Rule, sample: Points) -> list[Rewrite]:
    """What is to be computed in float64, and why."""
    results = {**closed.outputs(rule), **_gradients(rule)}
    found = []
    for name, form in results.items():
        why = "" if name in rule.exacts else _why(rule, sample, form)
        if why:
            found.append(Rewrite(name, show(form), show(form), why))
    return found


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
