"""Rules and plans whose gradients nobody has checked: what is planned is what is tested."""

from __future__ import annotations

from gradspec.derive.complete import complete
from gradspec.ir.rule import Chosen, Complete, Judged, Status, Verdict
from gradspec.lower.lowering import lower
from gradspec.plan.plan import ModulePlan
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.syntax.parse import parse


def lowered(text: str) -> tuple[Complete, ...]:
    """The rules with their gradients."""
    parsed = parse(Source("rules.grad", text))
    assert parsed.value is not None, parsed.diagnostics
    found = lower(parsed.value, {})
    assert found.value is not None, found.diagnostics
    return tuple(r for rule in found.value.rules if (r := complete(rule).value))


def planned(rules: tuple[Complete, ...]) -> ModulePlan:
    """The plan of rules that are believed."""
    return plan_module(
        Source("rules.grad", ""), tuple(Chosen(believed(rule), rule) for rule in rules)
    )


def believed(rule: Complete) -> Judged:
    """A rule whose gradients count as proved."""
    verdicts = tuple(
        Verdict(i.name, Status.PROVED if i.takes_gradient else Status.NONE)
        for i in rule.inputs
    )
    return Judged(rule, verdicts)
