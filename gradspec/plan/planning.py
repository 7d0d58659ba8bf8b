"""From checked rules to the plan of a module. Nothing is decided for one target here."""

from __future__ import annotations

from gradspec.ir.rule import (
    CheckedRule,
    Override,
)
from gradspec.plan.closing import close
from gradspec.plan.docs import docs_of
from gradspec.plan.gradients import gradients_of, tangents_of
from gradspec.plan.plan import (
    ModulePlan,
    Nature,
    RulePlan,
    Unplanned,
)
from gradspec.source import Source

_SUFFIX = ".grad"


def plan_module(source: Source, rules: tuple[CheckedRule, ...]) -> ModulePlan:
    """The plan of one file. ``source.path`` is its path below the source root."""
    return ModulePlan(
        source=source,
        path=source.path.removesuffix(_SUFFIX) + ".py",
        origin=source.path,
        rules=tuple(plan_rule(rule) for rule in rules if rule.rule.is_elementwise),
        unplanned=tuple(
            Unplanned(
                checked.rule.name,
                "rules over named axes are checked, but not emitted yet",
                checked.rule.source,
                checked.rule.name_span,
            )
            for checked in rules
            if not checked.rule.is_elementwise
        ),
    )


def plan_rule(checked: CheckedRule) -> RulePlan:
    """The plan of one elementwise rule."""
    rule = checked.rule
    closed = close(rule)
    gradients = gradients_of(rule, closed)
    tangents, reason = tangents_of(rule, closed, gradients)
    return RulePlan(
        name=rule.name,
        inputs=rule.inputs,
        outputs=rule.outputs,
        constants=closed.constants,
        forward=closed.forward,
        backward_locals=closed.backward_locals,
        gradients=gradients,
        saved=closed.saved,
        tangents=tangents,
        no_tangents=reason,
        surrogates=closed.surrogates,
        nature=_nature(checked),
        docs=docs_of(checked),
        examples=rule.examples,
        source=rule.source,
        span=rule.name_span,
        comments=tuple((r.name, r.reason) for r in checked.rewrites if r.reason),
    )


def _nature(checked: CheckedRule) -> Nature:
    if any(isinstance(entry, Override) for entry in checked.rule.backward):
        return Nature.OVERRIDE
    through = any(verdict.through_surrogate for verdict in checked.verdicts)
    return Nature.SURROGATE if through else Nature.EXACT
