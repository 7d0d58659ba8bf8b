"""The compiler on one screen: every stage, in order, with its input and output.

Nothing here touches a file: sources come in as text, modules go out as text. The search
of evaluations needs NumPy, and is imported where one is sought: a check needs none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from gradspec.checks import second_order
from gradspec.checks.check import check
from gradspec.checks.given import underivable
from gradspec.derive.complete import complete
from gradspec.diagnostics import Diagnostic, Outcome, error, not_ignored, warning
from gradspec.ir.plain import recall_or_compute
from gradspec.ir.rule import Chosen, Complete, Judged, Rule, Status
from gradspec.ir.walk import deep
from gradspec.lower.lowering import lower
from gradspec.lower.module import Extern, Function, LoweredModule
from gradspec.mend import (
    AGAIN,
    check_and_mend,
    keep_fixes_that_work,
    keep_namings_that_work,
)
from gradspec.options import Options
from gradspec.plan.planning import plan_module, unsaved_warnings, widening_warnings
from gradspec.primitives.foreign import is_plain
from gradspec.source import Source
from gradspec.symbolic.limit import Effort, Shortage, run_limited
from gradspec.syntax.nodes import Module
from gradspec.syntax.parse import parse
from gradspec.targets.emitting import emit
from gradspec.targets.target import Emitted

_PROOFS = 0.4
"""The fraction of a rule's budget for its proofs."""

_DIGITS = 15
"""Digits to which two forms agree that are equal up to rounding (GS416)."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One file: its judged rules, its modules (none if there was an error), and all
    diagnostics.
    """

    rules: tuple[Judged, ...]
    modules: tuple[Emitted, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_module(source: Source) -> Outcome[Module]:
    """Source → Module."""
    return parse(source)


def lower_module(
    module: Module,
    imports: Mapping[str, LoweredModule],
    offered: Callable[[], Mapping[str, str]] = dict,
) -> Outcome[LoweredModule]:
    """Module → Rules; imported modules are lowered already. ``offered``: the rules that
    come with gradspec, asked for where a function is not known."""
    outcome = lower(module, imports)
    if any(found.code == "GS202" for found in outcome.diagnostics):
        outcome = lower(module, imports, offered())
    if not any(found.fixes for found in outcome.diagnostics):
        return outcome
    again = partial(lower, imports=imports)
    told = keep_namings_that_work(module, outcome.diagnostics, again)
    return replace(outcome, diagnostics=told)


@deep()
def check_rule(
    rule: Rule, options: Options, defs: tuple[Function | Extern, ...] = ()
) -> Outcome[Judged]:
    """Rule → Judged: complete, check; with no more effort than the budget."""
    stage = ("check", f"{options.budget!r}", f"{options.order}", f"{options.strict}")
    work = partial(_checked_or_stopped, rule, options, defs)
    return _apply_ignores(
        recall_or_compute(rule, stage, rule, work, _is_lasting), options.ignored
    )


def _apply_ignores(
    outcome: Outcome[Judged], ignored: tuple[str, ...]
) -> Outcome[Judged]:
    """A checked rule without the ignored diagnostics. A refuted gradient without a
    remaining error differs by rounding only (GS416), and agrees.
    """
    found = not_ignored(outcome.diagnostics, ignored)
    if outcome.value is None or any(d.is_error for d in found):
        return replace(outcome, diagnostics=found)
    verdicts = tuple(
        replace(verdict, status=Status.AGREES, digits=_DIGITS)
        if verdict.status is Status.REFUTED
        else verdict
        for verdict in outcome.value.verdicts
    )
    return Outcome(replace(outcome.value, verdicts=verdicts), found)


def _is_lasting(found: object) -> bool:
    """True if another run would have the same result, on any machine."""
    if not isinstance(found, Outcome):
        return False
    return not any(d.code == "GS461" for d in found.diagnostics)


def _checked_or_stopped(
    rule: Rule, options: Options, defs: tuple[Function | Extern, ...]
) -> Outcome[Judged]:
    outcome = run_limited(options.budget, partial(_check_rule, rule, options, defs))
    if isinstance(outcome, Shortage):
        return Outcome(None, (shortage_error(rule, "checking", options, outcome),))
    return outcome


def _check_rule(
    rule: Rule, options: Options, defs: tuple[Function | Extern, ...]
) -> Outcome[Judged]:
    unknown = tuple(underivable(rule))
    if unknown:
        return Outcome(None, unknown)
    completed = complete(rule)
    if completed.value is None:
        return Outcome(None, completed.diagnostics)
    checked = check_and_mend(completed.value, _PROOFS * options.budget, defs)
    found = checked.diagnostics
    if options.order == 2 and checked.value is not None and not checked.failed:
        checked = _with_second(checked.value, options)
        found += checked.diagnostics
    if options.strict and checked.value is not None:
        found += tuple(_unproved_errors(checked.value))
    return Outcome(checked.value, found)


def _with_second(rule: Judged, options: Options) -> Outcome[Judged]:
    """The rule with verdicts on its second derivatives."""
    budget = (1 - _PROOFS) * options.budget / 2
    judged = second_order.judge(rule.rule, rule.verdicts, budget)
    found = tuple(d for judgement in judged for d in judgement.found)
    return Outcome(replace(rule, second=tuple(j.verdict for j in judged)), found)


def check_module(
    module: LoweredModule, options: Options
) -> tuple[tuple[Judged, ...], tuple[Diagnostic, ...]]:
    """All rules of a module; a bad one does not hide the next."""
    outcomes = [check_rule(rule, options, module.defs) for rule in module.rules]
    rules = tuple(o.value for o in outcomes if o.value is not None)
    return rules, tuple(d for o in outcomes for d in o.diagnostics)


@deep()
def emit_module(
    source: Source,
    rules: tuple[Judged, ...],
    options: Options,
    defs: tuple[Function | Extern, ...] = (),
) -> Outcome[tuple[Emitted, ...]]:
    """Judged rules → module texts: stabilise, plan, emit. ``defs`` are those that the
    texts of the rules may call."""
    if not rules:
        return Outcome(())
    from gradspec.stabilise.explanation import loss_warnings, unfilled_holes

    searched = [stabilise_rule(rule, options) for rule in rules]
    chosen = tuple(rule for rule, _ in searched)
    found = tuple(d for _, told in searched for d in told)
    for rule in chosen:
        written, holes = rule.judged.rule, tuple(unfilled_holes(rule.rule, rule.judged))
        found += keep_fixes_that_work(written, holes, _with_holes, defs=defs)
        found += tuple(loss_warnings(rule))
    if not options.targets:
        return Outcome((), found)
    budget = options.budget * len(rules)
    outcomes = run_limited(budget, partial(_emit_modules, source, chosen, options))
    if isinstance(outcomes, Shortage):
        stop = shortage_error(_longest(rules), "emitting", options, outcomes)
        return Outcome(None, (*found, stop))
    modules = tuple(o.value for o in outcomes if o.value is not None)
    found += tuple(d for o in outcomes for d in o.diagnostics)
    return Outcome(modules, tuple(dict.fromkeys(found)))  # targets may agree


def stabilise_rule(
    rule: Judged, options: Options
) -> tuple[Chosen, tuple[Diagnostic, ...]]:
    """The rule with stabilised expressions; as written, and a warning, if the search
    exceeded the budget."""
    from gradspec.stabilise import stabilise as search

    if options.as_written or not is_plain(rule.rule):  # nothing of it is measurable
        return search.as_written(rule), ()
    found = _recall_or_select(rule, options.budget)
    if not isinstance(found, Shortage):
        return replace(found, judged=rule), ()
    stop = found.sentence(f"stabilising {rule.rule.name}", options.budget)
    told = warning(
        "GS463",
        f"{stop}; it is evaluated as written",
        rule.rule.source,
        rule.rule.name_span,
        label="its accurate evaluations take more than they are given",
        help="give it more with `--budget`, divide the rule into rules that call"
        " each other, or say `--as-written` if its formulas are to stay",
    )
    return search.as_written(rule), (told,)


def _recall_or_select(rule: Judged, budget: float) -> Chosen | Shortage:
    """The selected forms, whatever was judged of them, if the budget suffices. Those of another
    budget are not taken from a former run: they may differ.
    """
    from gradspec.stabilise import stabilise as search

    bare, effort = Judged(rule.rule, ()), Effort.of(budget)

    def work() -> Chosen | Shortage:
        return run_limited(budget, partial(search.stabilise, bare, effort))

    def is_lasting(found: object) -> bool:
        return isinstance(found, Chosen)

    stage = "stabilise", f"{effort.steps}"
    return recall_or_compute(rule.rule, stage, bare, work, is_lasting)


def _with_holes(rule: Complete) -> Outcome[Judged]:
    """The check of a changed rule, with the removable singularities that its text
    leaves."""
    from gradspec.stabilise.explanation import unfilled_holes

    outcome = check(rule, AGAIN)
    if outcome.value is None:
        return outcome
    holes = unfilled_holes(rule, outcome.value)
    return replace(outcome, diagnostics=(*outcome.diagnostics, *holes))


def _emit_modules(
    source: Source, rules: tuple[Chosen, ...], options: Options
) -> list[Outcome[Emitted]]:
    """One module per target."""
    plan = plan_module(source, rules, options.checked)
    told = unsaved_warnings(plan) + widening_warnings(plan)
    outcomes = []
    for target in options.targets:
        emitted = emit(plan, target, trace=options.trace, costs=options.report)
        emitted = replace(emitted, diagnostics=emitted.diagnostics + told)
        if emitted.value is not None and not _is_readable(emitted.value):
            emitted = Outcome(None, (_too_deep(rules),))
        outcomes.append(emitted)
    return outcomes


def _is_readable(emitted: Emitted) -> bool:
    """True if Python parses the module: it accepts 200 nested brackets."""
    try:
        ast.parse(emitted.text)
    except (SyntaxError, MemoryError, RecursionError):
        return not emitted.path.endswith(".py")
    return True


def _longest(rules: Iterable[Judged | Chosen]) -> Rule:
    return max((r.rule for r in rules), key=lambda r: r.span.end - r.span.start)


def _too_deep(rules: Iterable[Chosen]) -> Diagnostic:
    """A diagnostic at the longest rule."""
    rule = _longest(rules)
    return error(
        "GS224",
        f"`{rule.name}` is too deep: Python cannot read the module that it gives",
        rule.source,
        rule.name_span,
        notes=("Python reads at most 200 brackets inside one another",),
        help="divide the rule: a rule that is called is not put in place",
    )


@deep()
def with_evaluations(rule: Judged, options: Options) -> Chosen:
    """Judged → Chosen: how each of its expressions is evaluated."""
    return stabilise_rule(rule, options)[0]


def shortage_error(
    rule: Rule, step: str, options: Options, shortage: Shortage
) -> Diagnostic:
    """GS461: a step took more than the rule is given."""
    return error(
        "GS461",
        shortage.sentence(f"{step} {rule.name}", options.budget),
        rule.source,
        rule.name_span,
        label="this rule takes more than it is given",
        help="divide it into rules that call each other, or give it more with"
        " `--budget`",
    )


def compile_module(module: LoweredModule, source: Source, options: Options) -> Compiled:
    """LoweredModule → Compiled. ``source`` names the file in generated headers."""
    rules, found = check_module(module, options)
    if not options.searches or any(d.is_error for d in found):
        return Compiled(rules, (), found)
    emitted = emit_module(source, rules, options, module.defs)
    modules = () if emitted.failed else emitted.value or ()
    told = {(d.code, d.labels[0].span) for d in found if d.labels}
    later = not_ignored(emitted.diagnostics, options.ignored)
    found += tuple(
        d for d in later if not d.labels or (d.code, d.labels[0].span) not in told
    )
    return Compiled(rules, modules, found)


def _unproved_errors(checked: Judged) -> Iterable[Diagnostic]:
    """Errors under `--strict`, for which agreement at points is not enough."""
    rule = checked.rule
    for verdict in checked.verdicts:
        if verdict.status is Status.AGREES:
            yield error(
                "GS490",
                f"d{verdict.input} of {rule.name} agrees at {verdict.points} points to"
                f" {verdict.digits} digits, but is not proved",
                rule.source,
                rule.declared[verdict.input].span,
                help="leave out --strict, or write the cotangent in a form nearer to"
                " the derivative (leave it out to have it derived)",
            )
