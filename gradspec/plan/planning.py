"""From checked rules to the plan of a module. Nothing is decided for one target here."""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import (
    CheckedRule,
    Override,
    Pending,
    Status,
)
from gradspec.plan.array import Expr
from gradspec.plan.broadcast import in_full
from gradspec.plan.closing import Closed, close
from gradspec.plan.docs import docs_of
from gradspec.plan.gradients import (
    gradients_of,
    ranked_gradients,
    ranked_tangents,
    tangents_of,
)
from gradspec.plan.plan import (
    Gradient,
    ModulePlan,
    Nature,
    RulePlan,
    Unplanned,
)
from gradspec.plan.tensors import NotEmitted, Tensors, tensors
from gradspec.source import Source

_SUFFIX = ".grad"


def plan_module(source: Source, rules: tuple[CheckedRule, ...]) -> ModulePlan:
    """The plan of one file. ``source.path`` is its path below the source root."""
    plans = [_planned(rule) for rule in rules]
    return ModulePlan(
        source=source,
        path=source.path.removesuffix(_SUFFIX) + ".py",
        origin=source.path,
        rules=tuple(plan for plan in plans if isinstance(plan, RulePlan)),
        unplanned=tuple(plan for plan in plans if isinstance(plan, Unplanned)),
    )


def _planned(checked: CheckedRule) -> RulePlan | Unplanned:
    rule = checked.rule
    if rule.is_elementwise:
        return plan_rule(checked)
    try:
        return plan_ranked(checked)
    except NotEmitted as reason:
        return Unplanned(rule.name, str(reason), rule.source, rule.name_span)


def plan_ranked(checked: CheckedRule) -> RulePlan:
    """The plan of one rule over named axes; raises :class:`NotEmitted`."""
    rule = checked.rule
    if any(isinstance(entry, Pending) for entry in rule.backward):
        raise NotEmitted("its gradients are not derived yet: declare them")
    if _is_unchecked(checked):
        raise NotEmitted("its gradients are not checked yet")
    closed = tensors(rule)
    gradients = ranked_gradients(rule, closed)
    full = in_full(rule, closed.forward, closed.surrogates, gradients)
    if full is not rule:
        return plan_ranked(replace(checked, rule=full))
    plan = _plan(checked, closed, gradients, ranked_tangents(rule, closed, gradients))
    return replace(plan, sizes=closed.sizes)


def plan_rule(checked: CheckedRule) -> RulePlan:
    """The plan of one elementwise rule."""
    rule = checked.rule
    closed = close(rule)
    gradients = gradients_of(rule, closed)
    full = in_full(rule, closed.forward, closed.surrogates, gradients)
    if full is not rule:
        return plan_rule(replace(checked, rule=full))
    plan = _plan(checked, closed, gradients, tangents_of(rule, closed, gradients))
    return replace(plan, wide=checked.wide)


def _plan(
    checked: CheckedRule,
    closed: Closed | Tensors,
    gradients: tuple[Gradient | None, ...],
    tangents: tuple[tuple[Expr, ...] | None, str],
) -> RulePlan:
    """What both kinds of rule have; ``tangents`` come with the reason for none."""
    rule = checked.rule
    return RulePlan(
        name=rule.name,
        inputs=rule.inputs,
        outputs=rule.outputs,
        constants=closed.constants,
        forward=closed.forward,
        backward_locals=closed.backward_locals,
        gradients=gradients,
        saved=closed.saved,
        tangents=tangents[0],
        no_tangents=tangents[1],
        surrogates=closed.surrogates,
        nature=_nature(checked),
        docs=docs_of(checked),
        examples=rule.examples,
        source=rule.source,
        span=rule.name_span,
        comments=tuple((r.name, r.reason) for r in checked.rewrites if r.reason),
        asked=rule.saves,
        recomputed=rule.recomputes,
    )


def _is_unchecked(checked: CheckedRule) -> bool:
    """Whether a gradient has no verdict: nothing unproved is emitted."""
    known = {verdict.input: verdict.status for verdict in checked.verdicts}
    return any(
        known.get(i.name, Status.NONE) is Status.NONE
        for i in checked.rule.inputs
        if i.takes_gradient
    )


def _nature(checked: CheckedRule) -> Nature:
    if any(isinstance(entry, Override) for entry in checked.rule.backward):
        return Nature.OVERRIDE
    through = any(verdict.through_surrogate for verdict in checked.verdicts)
    return Nature.SURROGATE if through else Nature.EXACT
