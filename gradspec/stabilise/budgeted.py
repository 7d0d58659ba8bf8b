"""Stabilising within a rule's budget: what does not come back in time is told, and the
rule keeps the evaluations that it has by then.

One budget serves the forms of all targets together. If those that all targets share are not
found in it, the results whose forms are chosen by then have these (`so_far.py`), and the
others are evaluated as they are written, in float64 where that helps (`hurried.py`, for which
a part of the budget is kept): the result is one of few wherever the search is cut short. If
those of one target are not found, that target gets the shared ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.rule import CheckedRule
from gradspec.ir.shelf import remembered
from gradspec.options import Options
from gradspec.primitives.on_target import FLUSHING
from gradspec.stabilise import stabilise as search
from gradspec.stabilise.faults import concern
from gradspec.stabilise.fenced import fenced
from gradspec.stabilise.hurried import SHARE, hurried
from gradspec.stabilise.part_way import PartWay
from gradspec.stabilise.scaled import scaled
from gradspec.stabilise.shared_logistic import logistic
from gradspec.stabilise.so_far import keeping
from gradspec.stabilise.unsearched import as_written
from gradspec.symbolic.attempts import attempt
from gradspec.symbolic.limit import hurried_time, in_time

PATIENCE = 3.0
"""How much longer the watcher waits than a stage has, before it kills."""


_Found: TypeAlias = CheckedRule | bool | None
"""Forms, True for those that all targets share, None if there was no time."""


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
    with keeping() as stages:
        shared = _shared(rule, options.budget)
    if shared is None:
        left = options.budget - (hurried_time() - begun)
        taken, how = _late(rule, stages[-1] if stages else None, left)
        every = (taken,) * len(options.targets)
        return Stable(taken, every, (_stopped(rule, options, how),))
    own: list[CheckedRule] = []
    stopped: list[Diagnostic] = []
    for target in options.targets:
        left = options.budget - (hurried_time() - begun)
        found = _own(rule, shared, target, left)
        own.append(found or shared)
        stopped += [] if found else [_stopped_for(rule, target, options)]
    return Stable(shared, tuple(own), tuple(stopped))


def unsearched(rule: CheckedRule, options: Options) -> Stable:
    """A rule whose chosen forms took too long to emit: as one whose search did."""
    taken = _hurried(rule, options.budget)
    every = (taken,) * len(options.targets)
    told = _stopped(rule, options, _as_written(taken), step="emitting")
    return Stable(taken, every, (told,))


def remembered_forms(rule: CheckedRule) -> CheckedRule:
    """The forms for all targets, however long that takes; those that a former run has
    found (`ir.shelf`), where it has."""
    found = _kept(rule, "", lambda: search.stabilise(rule))
    assert isinstance(found, CheckedRule)
    return found


def _shared(rule: CheckedRule, seconds: float) -> CheckedRule | None:
    """The forms for all targets; None if they were not found in time."""
    return _with_verdicts(
        _kept(
            rule,
            "",
            lambda: _in_time(rule, "", (1 - SHARE) * seconds, search.stabilise),
        ),
        rule,
    )


def _late(
    rule: CheckedRule, stage: PartWay | None, seconds: float
) -> tuple[CheckedRule, str]:
    """The rule as its search has left it, and what that is."""
    taken = _hurried(rule, seconds, stage)
    return taken, _as_written(taken, _finished(rule, stage))


def _hurried(
    rule: CheckedRule, seconds: float, part: PartWay | None = None
) -> CheckedRule:
    """What there is time for when a search has taken too long."""
    work = partial(hurried, part=part)
    return _in_time(rule, "as written", seconds, work) or as_written(rule)


def _finished(rule: CheckedRule, part: PartWay | None) -> tuple[str, ...]:
    """The results whose forms are chosen."""
    results = [o.name for o in rule.rule.outputs]
    results += [f"d{i.name}" for i in rule.rule.inputs]
    return tuple(name for name in results if part is not None and name in part.done)


def _own(
    rule: CheckedRule, shared: CheckedRule, target: str, seconds: float
) -> CheckedRule | None:
    """Those for one target, which most share."""
    if not concern(shared.rule, target) and target not in FLUSHING:
        return shared

    def work() -> _Found:
        found = _in_time(shared, target, seconds, partial(_for, target))
        return True if found is shared else found

    found = _kept(rule, target, work)
    return shared if found is True else _with_verdicts(found, rule)


def _for(target: str, shared: CheckedRule) -> CheckedRule:
    chosen = search.for_target(shared, target)
    own = scaled(logistic(chosen, target), target)
    return fenced(own, target)


def _kept(rule: CheckedRule, target: str, work: Callable[[], _Found]) -> _Found:
    """What ``work`` finds, or a former run found (`ir.shelf`). Verdicts are no part of
    it."""
    stage = ("stabilise", target)
    return remembered(rule.rule, stage, _bare(rule), lambda: _bare(work()), _is_lasting)


def _is_lasting(found: object) -> bool:
    return found is True or isinstance(found, CheckedRule)


def _bare(found: _Found) -> _Found:
    if isinstance(found, CheckedRule):
        return replace(found, verdicts=(), second=())
    return found


def _with_verdicts(found: _Found, rule: CheckedRule) -> CheckedRule | None:
    if isinstance(found, CheckedRule):
        return replace(found, verdicts=rule.verdicts, second=rule.second)
    return None


def _in_time(
    rule: CheckedRule,
    target: str,
    seconds: float,
    work: Callable[[CheckedRule], CheckedRule],
) -> CheckedRule | None:
    name = f"stabilising {rule.rule.source.path}:{rule.rule.name}"
    name += f" for {target}" if target else ""
    if seconds <= 0:
        return None
    with attempt(name, PATIENCE * seconds) as may:
        return in_time(seconds, partial(work, rule)) if may else None


def _as_written(taken: CheckedRule, finished: tuple[str, ...] = ()) -> str:
    if taken.as_written:
        return "it is evaluated as written"
    wide = f", {', '.join(taken.wide)} in float64" if taken.wide else ""
    if finished:
        chosen = f"the forms of {', '.join(finished)} are chosen"
        return f"{chosen}, the rest is evaluated as written{wide}"
    return f"it is evaluated as written{wide}"


def _stopped(
    rule: CheckedRule, options: Options, how: str, step: str = "stabilising"
) -> Diagnostic:
    return warning(
        "GS463",
        f"{step} {rule.rule.name} was stopped after {options.budget:g} s: {how}",
        rule.rule.source,
        rule.rule.name_span,
        label="its accurate evaluations take longer than they are given",
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
