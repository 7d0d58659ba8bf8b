"""From checked rules to the plan of a module, for all targets alike."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.rule import (
    CheckedRule,
    Override,
    Pending,
    Rule,
    Status,
)
from gradspec.plan.closing import Closed, NotEmitted, close
from gradspec.plan.docs import docs_of
from gradspec.plan.gradients import gradients_of, tangents_of
from gradspec.plan.plan import (
    Gradient,
    ModulePlan,
    Nature,
    RulePlan,
    Unplanned,
)
from gradspec.plan.rules import broadcast
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
    try:
        return plan_rule(checked)
    except NotEmitted as reason:
        return Unplanned(rule.name, str(reason), rule.source, rule.name_span)


def plan_rule(checked: CheckedRule) -> RulePlan:
    """The plan of one rule; raises :class:`NotEmitted`."""
    if any(isinstance(entry, Pending) for entry in checked.rule.backward):
        raise NotEmitted("its gradients are not derived yet: declare them")
    if _is_unchecked(checked):
        raise NotEmitted("its gradients are not checked yet")
    rule, closed, gradients = in_full(checked.rule)
    tangents, no_tangents = tangents_of(rule, closed, gradients)
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
        no_tangents=no_tangents,
        surrogates=closed.surrogates,
        nature=_nature(checked),
        docs=docs_of(checked),
        examples=rule.examples,
        source=rule.source,
        span=rule.name_span,
        comments=tuple((r.name, r.reason) for r in checked.rewrites if r.reason),
        asked=rule.saves,
        sizes=closed.sizes,
        recomputed=rule.recomputes,
        wide=checked.wide,
    )


def in_full(rule: Rule) -> tuple[Rule, Closed, tuple[Gradient | None, ...]]:
    """The rule with each output broadcast to the joint shape of its dependencies, its
    closed values and its gradients.
    """
    while True:
        closed = close(rule)
        gradients = gradients_of(rule, closed)
        full = broadcast(rule, closed.forward, closed.surrogates, gradients)
        if full is rule:
            return rule, closed, gradients
        rule = full


def _is_unchecked(checked: CheckedRule) -> bool:
    """True if a gradient has no verdict: nothing unproved is emitted."""
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


# --- what is saved in vain ------------------------------------------------------------
#
# Values that the author saves but no gradient uses as evaluated are reported, since
# they are no residuals.


def unsaved(module: ModulePlan) -> tuple[Diagnostic, ...]:
    """A warning for each name that ``save`` lists without effect."""
    return tuple(found for plan in module.rules for found in _of_rule(plan))


def _of_rule(plan: RulePlan) -> Iterator[Diagnostic]:
    for name in plan.asked:
        if name not in plan.saved:
            yield warning(
                "GS464",
                f"{name} of {plan.name} is not saved: no gradient uses it",
                plan.source,
                plan.span,
                label=f"its gradients are evaluated in a form without {name}",
                help=f"leave out `save {name}`; or write the gradient with {name}, marked"
                " `exact`, so that it is evaluated as it stands",
            )
