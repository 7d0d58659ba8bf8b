"""Stabilising within a rule's budget: what does not come back in time is told, and the
rule keeps the evaluations that it has by then.

One budget serves the forms of all targets together. If the forms that all targets share
are not found in it, the rule is evaluated as it is written; if those of one target are
not, that target gets the shared ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.rule import CheckedRule
from gradspec.options import Options
from gradspec.stabilise import stabilise as search
from gradspec.stabilise.unsearched import as_written
from gradspec.symbolic.attempts import attempt
from gradspec.symbolic.limit import hurried_time, in_time

PATIENCE = 3.0
"""How much longer the watcher waits than a stage has, before it kills."""


@dataclass(frozen=True, slots=True)
class Stable:
    """A rule as it is evaluated: on all targets, and on each of those asked for;
    ``stopped`` says what there was no time for."""

    shared: CheckedRule
    own: tuple[CheckedRule, ...]
    stopped: tuple[Diagnostic, ...] = ()


def stabilised(rule: CheckedRule, options: Options) -> Stable:
    """How each expression of ``rule`` is evaluated on the targets of ``options``."""
    if options.as_written:
        written = as_written(rule)
        return Stable(written, (written,) * len(options.targets))
    begun = hurried_time()
    shared = _in_time(rule, "", options.budget, partial(search.stabilise, rule))
    if shared is None:
        written = as_written(rule)
        every = (written,) * len(options.targets)
        return Stable(written, every, (_stopped(rule, options),))
    own: list[CheckedRule] = []
    stopped: list[Diagnostic] = []
    for target in options.targets:
        left = options.budget - (hurried_time() - begun)
        work = partial(search.for_target, shared, target)
        found = _in_time(rule, f" for {target}", left, work)
        own.append(found or shared)
        stopped += [] if found else [_stopped_for(rule, target, options)]
    return Stable(shared, tuple(own), tuple(stopped))


def _in_time(
    rule: CheckedRule, kind: str, seconds: float, work: Callable[[], CheckedRule]
) -> CheckedRule | None:
    name = f"stabilising {rule.rule.source.path}:{rule.rule.name}{kind}"
    if seconds <= 0:
        return None
    with attempt(name, PATIENCE * seconds) as may:
        return in_time(seconds, work) if may else None


def _stopped(rule: CheckedRule, options: Options) -> Diagnostic:
    return warning(
        "GS463",
        f"stabilising {rule.rule.name} was stopped after {options.budget:g} s: it is"
        " evaluated as written",
        rule.rule.source,
        rule.rule.name_span,
        label="the search for accurate evaluations takes longer than it is given",
        help="give it more time with `--budget`, divide the rule into rules that call"
        " each other, or say `--as-written` if its formulas are to stay",
    )


def _stopped_for(rule: CheckedRule, target: str, options: Options) -> Diagnostic:
    return warning(
        "GS463",
        f"stabilising {rule.rule.name} for {target} was stopped, {options.budget:g} s"
        " after its search began: it is evaluated as on other targets",
        rule.rule.source,
        rule.rule.name_span,
        label=f"what {target}'s own functions need takes longer than it is given",
        help="give it more time with `--budget`, or divide the rule into rules that"
        " call each other",
    )
