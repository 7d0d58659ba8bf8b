"""Check a complete rule: one module a check, all of them named here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gradspec.checks import (
    assumptions,
    boundaries,
    constants,
    examples,
    indexed,
    inputs,
    kinks,
    overrides,
    parameters,
    surrogates,
)
from gradspec.checks.breaks import breaks
from gradspec.checks.budget import stopped
from gradspec.checks.cotangents import judge
from gradspec.checks.mending import tried
from gradspec.checks.subject import Subject, subject
from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.ir.calls import follows_surrogate
from gradspec.ir.rule import (
    CheckedRule,
    Declared,
    Input,
    NoGradient,
    Override,
    Rule,
    Status,
    Verdict,
)

CHECKS: tuple[Callable[[Subject], Iterable[Diagnostic]], ...] = (
    constants.check,
    assumptions.check,
    inputs.unused,
    inputs.steps,
    inputs.vanishing,
    surrogates.check,
    overrides.check,
    overrides.deaf,
    examples.check,
    kinks.check,
    parameters.check,
)


AGAIN = 0.5
"""Seconds that proofs may take of a rule that is changed as a suggestion says."""


def check(rule: Rule, budget: float = 10.0) -> Outcome[CheckedRule]:
    """The rule with its verdicts, and what is wrong with it.

    ``budget``: seconds that proofs may take (refuting takes milliseconds). A refuted
    rule has its verdicts too; the errors stop it. What is suggested has been tried.
    """
    outcome = examined(rule, budget)
    again = partial(examined, budget=min(budget / 10, AGAIN))
    found = tried(rule, outcome.diagnostics, again, budget / 3)
    return replace(outcome, diagnostics=found)


def examined(rule: Rule, budget: float) -> Outcome[CheckedRule]:
    """The same with suggestions that nobody has tried."""
    if rule.is_elementwise:
        seen = subject(rule)
        met = tuple(breaks(seen))
        found = [diagnostic for one in CHECKS for diagnostic in one(seen)]
        found += boundaries.check(seen, met)
        judgements = judge(seen, budget, met)
        holes = boundaries.holes(seen, met)
    else:
        judgements, others = indexed.examine(rule, budget)
        found, holes = list(others), ()
    found.extend(d for judgement in judgements for d in judgement.found)
    judged = {j.verdict.input: j.verdict for j in judgements}
    verdicts = tuple(
        judged.get(verdict.input, verdict) for verdict in _unexamined(rule)
    )
    found.extend(stopped(rule, verdicts))
    found.sort(key=lambda d: d.labels[0].span.start if d.labels else 0)
    return Outcome(CheckedRule(rule, verdicts, holes=holes), tuple(found))


def _unexamined(rule: Rule) -> tuple[Verdict, ...]:
    """What the kinds of backward say by themselves."""
    return tuple(
        Verdict(v.name, _status(v, entry), through_surrogate=_through(rule, v, entry))
        for v, entry in zip(rule.inputs, rule.backward, strict=True)
    )


def _status(variable: Input, entry: object) -> Status:
    match entry:
        case Override():
            return Status.OVERRIDE
        case NoGradient():
            return Status.NONE
        case Declared():
            return Status.AGREES
        case _:
            return Status.DERIVED if variable.takes_gradient else Status.NONE


def _through(rule: Rule, variable: Input, entry: object) -> bool:
    """Whether the gradient is that of a surrogate."""
    if not follows_surrogate(rule) or not variable.takes_gradient:
        return False
    return not isinstance(entry, Override)
