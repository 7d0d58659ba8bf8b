"""From rules with evaluations to the plan of a module, for all targets alike."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import replace

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import show
from gradspec.ir.rule import (
    Chosen,
    Rewrite,
    Rule,
    Status,
    Verdict,
)
from gradspec.ir.walk import nodes
from gradspec.plan.arrays import Name
from gradspec.plan.closing import NotEmitted, close
from gradspec.plan.domain import domain_of
from gradspec.plan.extents import forward_extents
from gradspec.plan.gradients import gradients_of, in_full, tangents_of
from gradspec.plan.plan import (
    Docs,
    ModulePlan,
    Nature,
    Note,
    RulePlan,
    Unplanned,
)
from gradspec.source import Source

_SUFFIX = ".grad"


def plan_module(
    source: Source, rules: tuple[Chosen, ...], is_checked: bool = False
) -> ModulePlan:
    """The plan of one file. ``source.path`` is its path below the source root. If it
    ``is_checked``, calls check the assumptions of their rules."""
    make = _checked_plans if is_checked else _plans
    plans = [plan for rule in rules for plan in make(rule)]
    return ModulePlan(
        source=source,
        path=source.path.removesuffix(_SUFFIX) + ".py",
        origin=source.path,
        rules=tuple(plan for plan in plans if isinstance(plan, RulePlan)),
        unplanned=tuple(plan for plan in plans if isinstance(plan, Unplanned)),
    )


def _plans(chosen: Chosen) -> list[RulePlan | Unplanned]:
    rule = chosen.rule
    try:
        return [plan_rule(chosen)]
    except NotEmitted as reason:
        return [Unplanned(rule.name, str(reason), rule.source, rule.name_span)]


def _checked_plans(chosen: Chosen) -> list[RulePlan | Unplanned]:
    """The plan of a rule, behind that of where its assumptions hold."""
    rule, domain = chosen.rule, domain_of(chosen)
    plans = _plans(chosen)
    if domain is None or not isinstance(plan := plans[0], RulePlan):
        return plans
    texts = tuple(show(assume.condition) for assume in rule.assumes)
    plan = replace(plan, assumed=texts, domain=domain.rule.name)
    words = f"Where the assumptions of ``{rule.name}`` hold: {', '.join(texts)}."
    docs = Docs(textwrap.fill(words, _COMMENT), "", ())
    (checks,) = _plans(domain)
    if isinstance(checks, RulePlan):
        checks = replace(checks, docs=docs)
    return [checks, plan]


def plan_rule(chosen: Chosen) -> RulePlan:
    """The plan of one rule; raises :class:`NotEmitted`."""
    if _is_unchecked(chosen):
        raise NotEmitted("its gradients are not checked yet")
    rule = chosen.rule
    closed = close(rule)
    gradients = gradients_of(rule, closed)
    forward = in_full(rule, closed.forward, gradients)
    if forward != closed.forward:
        closed = replace(closed, forward=forward)
        gradients = gradients_of(rule, closed)
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
        nature=_nature(chosen),
        docs=docs_of(chosen),
        source=rule.source,
        span=rule.name_span,
        comments=tuple((r.name, _comment(r)) for r in chosen.rewrites if r.reason),
        asked=rule.saves,
        sizes=closed.sizes,
        wide=chosen.wide,
        kernels=rule.kernels,
    )


def _is_unchecked(chosen: Chosen) -> bool:
    """True if a gradient has no verdict: nothing unproved is emitted."""
    known = {verdict.input: verdict.status for verdict in chosen.judged.verdicts}
    return any(
        known.get(i.name, Status.NONE) is Status.NONE
        for i in chosen.rule.inputs
        if i.takes_gradient
    )


def _nature(chosen: Chosen) -> Nature:
    if chosen.rule.overrides:
        return Nature.OVERRIDE
    through = any(verdict.through_surrogate for verdict in chosen.judged.verdicts)
    return Nature.SURROGATE if through else Nature.EXACT


# --- what is saved in vain ------------------------------------------------------------
#
# Values that the author saves but no gradient uses as evaluated are reported, since
# they are no residuals.


def unsaved_warnings(module: ModulePlan) -> tuple[Diagnostic, ...]:
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


# --- what takes more memory than it need ------------------------------------------------


def widening_warnings(module: ModulePlan) -> tuple[Diagnostic, ...]:
    """A warning for each rule whose backward has an array of more axes than any value
    of its forward.
    """
    return tuple(found for plan in module.rules for found in _wider(plan))


def _wider(plan: RulePlan) -> Iterator[Diagnostic]:
    extents = forward_extents(plan)
    ends = [i.name for i in plan.tensor_inputs] + [o.name for o in plan.outputs]
    ahead = [*map(Name, ends), *nodes(*(let.value for let in plan.forward))]
    most = max(extents.of(value).rank[0] for value in ahead)
    behind = extents.largest(g.whole for g in plan.gradients if g is not None)
    if behind is not None and extents.of(behind).rank[0] > most:
        axes = ", ".join(extents.of(behind).axes)
        yield warning(
            "GS465",
            f"the backward of {plan.name} has an array over [{axes}], more axes than any"
            " value of its forward",
            plan.source,
            plan.span,
            label=f"its forward has at most {most}",
            help="write a gradient whose sums have fewer indices, or leave a declared one"
            " out: a derived one adds elements at their places",
        )


_COMMENT = 74  # characters of a comment, which stands in a line of a module


def _comment(rewrite: Rewrite) -> str:
    """The reason for a rewrite, above the line that it is about."""
    text = rewrite.reason.replace("as written, ", f"not {rewrite.before}, which ")
    if len(text) <= _COMMENT:
        return text
    return rewrite.reason.replace("as written, ", "the formula as written ")


# --- the docstring ----------------------------------------------------------------------


_DOCSTRING = re.compile(r'\n[ \t]*"""(?:[^\\]|\\.)*?"""[ \t]*(?=\n|$)', re.DOTALL)


def docs_of(chosen: Chosen) -> Docs:
    """The author's words, the rule as written, domain, verdicts and reasons."""
    rule = chosen.rule
    notes = (
        *_domain(rule),
        *_gradients(chosen),
        *_overrides(rule),
        *_evaluation(chosen),
    )
    doc = textwrap.dedent(rule.doc or "").strip() or f"The rule ``{rule.name}``."
    return Docs(doc, _definition(rule), notes)


def _definition(rule: Rule) -> str:
    """The rule's own text, without its docstring (printed above it) and without its
    examples, which are for `gradspec test`.
    """
    text, start = rule.text, rule.span.start
    for example in sorted(rule.examples, key=lambda e: -e.span.start):
        text = text[: example.span.start - start] + text[example.span.end - start :]
    if rule.doc is not None:
        text = _DOCSTRING.sub("", text, count=1)
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(line for line in lines if line)


def _domain(rule: Rule) -> tuple[Note, ...]:
    conditions = ", ".join(show(assume.condition) for assume in rule.assumes)
    return (Note("Domain", conditions),) if conditions else ()


def _gradients(chosen: Chosen) -> tuple[Note, ...]:
    said = [(v, verdict_text(v)) for v in chosen.judged.verdicts]
    lines = "; ".join(f"d{v.input} {text}" for v, text in said if text)
    return (Note("Gradients", lines or "none"),)


def verdict_text(verdict: Verdict) -> str:
    """A verdict in a few words; none where an input takes no gradient."""
    what = {
        Status.DERIVED: "derived",
        Status.PROVED: "proved",
        Status.AGREES: f"agrees at {verdict.points} points to {verdict.digits} digits",
        Status.REFUTED: "refuted",
        Status.OVERRIDE: "overridden",
        Status.NONE: "",
    }[verdict.status]
    if what and verdict.through_surrogate:
        what += " through the surrogate"
    if what and verdict.sizes:
        what += f" at {verdict.sizes}"
    if what and verdict.on_domain:
        what += " on the domain"
    if what and verdict.given:
        what += f", given {', '.join(verdict.given)}"
    return what


def _overrides(rule: Rule) -> tuple[Note, ...]:
    reasons = [
        f"{entry.name} is not the derivative: {entry.reason}"
        for entry in rule.overrides.values()
    ]
    return (Note("Override", "; ".join(reasons)),) if reasons else ()


def _evaluation(chosen: Chosen) -> tuple[Note, ...]:
    if not chosen.as_written:
        return ()
    return (Note("Evaluation", "as written, nothing more accurate was looked for"),)
