"""Stabilising within a rule's budget: a rule beyond it is evaluated as written.

The search counts its steps (`stabilise.py`), so that it ends at the same point on any
machine: those of a budget take about a third of its time, so that a machine three times
slower completes them too. The deadline of the rule, and the limit on memory, only
protect the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.plain import remembered
from gradspec.ir.rule import CheckedRule
from gradspec.ir.tidy import tidy
from gradspec.options import Options
from gradspec.stabilise import stabilise as search
from gradspec.stabilise.guards import guarded
from gradspec.stabilise.names import mapped, without_calls
from gradspec.stabilise.sampling import points
from gradspec.symbolic.limit import Effort, Shortage, limited


@dataclass(frozen=True, slots=True)
class Stable:
    """A rule with its evaluations; ``stopped``: the stage that was stopped."""

    rule: CheckedRule
    stopped: tuple[Diagnostic, ...] = ()


def stabilised(
    rule: CheckedRule, options: Options, seconds: float | None = None
) -> Stable:
    """``rule`` with stabilised expressions; ``seconds`` is the rest of its budget."""
    if options.as_written:
        return Stable(as_written(rule))
    left = options.budget if seconds is None else seconds
    found = _remembered(rule, left, Effort.of(options.budget))
    if isinstance(found, Shortage):
        return unsearched(rule, options, found)
    return Stable(replace(found, verdicts=rule.verdicts, second=rule.second))


def unsearched(
    rule: CheckedRule, options: Options, why: Shortage, step: str = "stabilising"
) -> Stable:
    """A rule evaluated as written, because a step exceeded its share of the budget."""
    stop = why.sentence(f"{step} {rule.rule.name}", options.budget)
    stopped = warning(
        "GS463",
        f"{stop}; it is evaluated as written",
        rule.rule.source,
        rule.rule.name_span,
        label="its accurate evaluations take longer than they are given",
        help="give it more time with `--budget`, divide the rule into rules that call"
        " each other, or say `--as-written` if its formulas are to stay",
    )
    return Stable(as_written(rule), (stopped,))


def _remembered(
    rule: CheckedRule, seconds: float, effort: Effort
) -> CheckedRule | Shortage:
    """The selected forms without verdicts, if steps and time suffice. Those of another
    budget are not taken from a former run: they may differ.
    """
    bare = replace(rule, verdicts=(), second=())

    def work() -> CheckedRule | Shortage:
        return limited(seconds, partial(search.stabilise, bare, effort))

    def is_lasting(found: object) -> bool:
        return isinstance(found, CheckedRule)

    stage = "stabilise", f"{effort.steps}"
    return remembered(rule.rule, stage, bare, work, is_lasting)


def as_written(checked: CheckedRule) -> CheckedRule:
    """The rule evaluated as written, derived gradients as differentiation gives them.
    Branches of conditionals are guarded all the same: that changes no value, and keeps
    NaN out of second derivatives.
    """
    rule = mapped(without_calls(checked.rule), tidy)
    sample = points(rule) if rule.is_elementwise else None
    safe = rule if sample is not None and not len(sample) else guarded(rule, sample)
    return replace(checked, rule=safe, as_written=True)
