"""The compiler on one screen: every stage, in order, with its input and output.

Nothing here touches a file: sources come in as text, modules go out as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import process_time

from gradspec.checks import second_order
from gradspec.checks.check import AGAIN, check, examined
from gradspec.checks.diagnosis.wording import tried
from gradspec.derive.indexed import complete
from gradspec.diagnostics import Diagnostic, Outcome, error, not_ignored, warning
from gradspec.ir.plain import remembered
from gradspec.ir.rule import CheckedRule, Rule, Status
from gradspec.ir.walk import deep
from gradspec.lower.lowering import lower
from gradspec.lower.module import Function, LoweredModule
from gradspec.options import Options
from gradspec.plan.planning import plan_module, unsaved
from gradspec.source import Source
from gradspec.stabilise import stabilise as search
from gradspec.stabilise.explanation import unfilled_holes, unmended
from gradspec.symbolic.limit import Effort, Shortage, limited
from gradspec.syntax.nodes import Module
from gradspec.syntax.parse import parse
from gradspec.targets import emit
from gradspec.targets.target import Emitted

_OF_TIME = frozenset(["GS460", "GS461"])
_PROOFS = 0.4
"""The fraction of a rule's budget for its proofs."""

_DIGITS = 15
"""Digits to which two forms agree that are equal up to rounding (GS416)."""

_EMITTING = 0.3, 0.2
"""Fractions beyond the budget for emitting a rule, and for emitting it as written."""


class Clock:
    """The processor time of each rule for checking and stabilising together."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._spent: dict[str, float] = {}

    def left(self, rule: Rule) -> float:
        """Seconds left."""
        return self.budget - self._spent.get(rule.name, 0.0)

    @contextmanager
    def running(self, rule: Rule) -> Iterator[float]:
        """Context manager that yields the seconds left and deducts those of its
        block."""
        begun = process_time()
        try:
            yield self.left(rule)
        finally:
            gone = process_time() - begun
            self._spent[rule.name] = self._spent.get(rule.name, 0.0) + gone


@dataclass(frozen=True, slots=True)
class Stable:
    """A rule with its evaluations; ``stopped``: the stage that was stopped."""

    rule: CheckedRule
    stopped: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Compiled:
    """One file: its checked rules, its modules (none if there was an error), and all
    diagnostics.
    """

    rules: tuple[CheckedRule, ...]
    modules: tuple[Emitted, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_module(source: Source) -> Outcome[Module]:
    """Source → Module."""
    return parse(source)


def lower_module(
    module: Module, imports: Mapping[str, LoweredModule]
) -> Outcome[LoweredModule]:
    """Module → Rules; imported modules are lowered already."""
    return lower(module, imports)


@deep()
def check_rule(
    rule: Rule, options: Options, defs: tuple[Function, ...] = ()
) -> Outcome[CheckedRule]:
    """Rule → CheckedRule: complete, check; not for longer than the budget."""
    stage = ("check", f"{options.budget!r}", f"{options.order}", f"{options.strict}")
    work = partial(_checked_in_time, rule, options, defs)
    return _heeded(remembered(rule, stage, rule, work, _is_lasting), options.ignored)


def _heeded(
    outcome: Outcome[CheckedRule], ignored: tuple[str, ...]
) -> Outcome[CheckedRule]:
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
    if any(d.code in _OF_TIME for d in found.diagnostics):
        return False
    return found.value is None or not any(v.stopped for v in found.value.verdicts)


def _checked_in_time(
    rule: Rule, options: Options, defs: tuple[Function, ...]
) -> Outcome[CheckedRule]:
    outcome = limited(options.budget, partial(_check_rule, rule, options, defs))
    if isinstance(outcome, Shortage):
        return Outcome(None, (stopped(rule, "checking", options, outcome),))
    return outcome


def _check_rule(
    rule: Rule, options: Options, defs: tuple[Function, ...]
) -> Outcome[CheckedRule]:
    checked = check(complete(rule), _PROOFS * options.budget, defs)
    found = checked.diagnostics
    if options.order == 2 and checked.value is not None and not checked.failed:
        checked = _with_second(checked.value, options)
        found += checked.diagnostics
    if options.strict and checked.value is not None:
        found += tuple(_unproved(checked.value))
    return Outcome(checked.value, found)


def _with_second(rule: CheckedRule, options: Options) -> Outcome[CheckedRule]:
    """The rule with verdicts on its second derivatives."""
    seconds = (1 - _PROOFS) * options.budget / 2
    judged = second_order.judge(rule.rule, rule.verdicts, seconds)
    found = tuple(d for judgement in judged for d in judgement.found)
    return Outcome(replace(rule, second=tuple(j.verdict for j in judged)), found)


def check_module(
    module: LoweredModule, options: Options, clock: Clock | None = None
) -> tuple[tuple[CheckedRule, ...], tuple[Diagnostic, ...]]:
    """All rules of a module; a bad one does not hide the next."""
    clock = clock or Clock(options.budget)
    defs = (*module.imported, *module.functions)
    outcomes = []
    for rule in module.rules:
        with clock.running(rule):
            outcomes.append(check_rule(rule, options, defs))
    rules = tuple(o.value for o in outcomes if o.value is not None)
    return rules, tuple(d for o in outcomes for d in o.diagnostics)


@deep()
def emit_module(
    source: Source,
    rules: tuple[CheckedRule, ...],
    options: Options,
    clock: Clock | None = None,
) -> Outcome[tuple[Emitted, ...]]:
    """CheckedRules → module texts: stabilise, plan, emit."""
    if not rules:
        return Outcome(())
    clock = clock or Clock(options.budget)
    stable = tuple(stabilised(r, options, clock.left(r.rule)) for r in rules)
    if not options.targets:
        return Outcome((), _distinct(_reported(rules, stable)))
    first, second = (part * options.budget * len(rules) for part in _EMITTING)
    outcomes = limited(first, partial(_emitted, source, stable, options))
    if isinstance(outcomes, Shortage) and not options.as_written:
        brief = tuple(unsearched(r, options, outcomes, "emitting") for r in rules)
        outcomes = limited(second, partial(_emitted, source, brief, options))
        stable = stable if isinstance(outcomes, Shortage) else brief
    found = _reported(rules, stable)
    if isinstance(outcomes, Shortage):
        stop = stopped(rules[-1].rule, "emitting", options, outcomes)
        return Outcome(None, (*found, stop))
    modules = tuple(o.value for o in outcomes if o.value is not None)
    found += tuple(d for o in outcomes for d in o.diagnostics)
    return Outcome(modules, _distinct(found))


def stabilised(
    rule: CheckedRule, options: Options, seconds: float | None = None
) -> Stable:
    """``rule`` with stabilised expressions. The search ends by its steps; ``seconds``,
    the rest of the budget, only protect the machine.
    """
    if options.as_written:
        return Stable(search.as_written(rule))
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
    return Stable(search.as_written(rule), (stopped,))


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


def _reported(
    rules: tuple[CheckedRule, ...], stable: tuple[Stable, ...]
) -> tuple[Diagnostic, ...]:
    """Diagnostics for searches that ran out of time, and for remaining inaccuracy."""
    found = [d for one in stable for d in one.stopped]
    for checked, one in zip(rules, stable, strict=True):
        holes = tuple(unfilled_holes(one.rule, checked.rule))
        found += (*tried(checked.rule, holes, _with_holes), *unmended(one.rule))
    return tuple(found)


def _with_holes(rule: Rule) -> Outcome[CheckedRule]:
    """The check of a changed rule, with the removable singularities that its text
    leaves."""
    outcome = examined(rule, AGAIN)
    if outcome.value is None:
        return outcome
    holes = unfilled_holes(outcome.value, rule)
    return replace(outcome, diagnostics=(*outcome.diagnostics, *holes))


def _emitted(
    source: Source, stable: tuple[Stable, ...], options: Options
) -> list[Outcome[Emitted]]:
    """One module per target."""
    rules = tuple(one.rule for one in stable)
    plan = plan_module(source, rules)
    outcomes = []
    for target in options.targets:
        emitted = emit(plan, target, trace=options.trace, costs=options.report)
        emitted = replace(emitted, diagnostics=emitted.diagnostics + unsaved(plan))
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


def _too_deep(rules: tuple[CheckedRule, ...]) -> Diagnostic:
    """A diagnostic at the longest rule."""
    rule = max((r.rule for r in rules), key=lambda r: r.span.end - r.span.start)
    return error(
        "GS224",
        f"`{rule.name}` is too deep: Python cannot read the module that it gives",
        rule.source,
        rule.name_span,
        notes=("Python reads at most 200 brackets inside one another",),
        help="divide the rule: a rule that is called is not put in place",
    )


@deep()
def evaluated(rule: CheckedRule, options: Options) -> CheckedRule:
    """CheckedRule → CheckedRule: how each of its expressions is evaluated."""
    return stabilised(rule, options).rule


def stopped(rule: Rule, step: str, options: Options, shortage: Shortage) -> Diagnostic:
    """GS461: a step took more than the rule is given."""
    return error(
        "GS461",
        shortage.sentence(f"{step} {rule.name}", options.budget),
        rule.source,
        rule.name_span,
        label="this rule takes more than it is given",
        help="divide it into rules that call each other, or give it more time with"
        " `--budget`",
    )


def compile_module(module: LoweredModule, source: Source, options: Options) -> Compiled:
    """LoweredModule → Compiled. ``source`` names the file in generated headers."""
    clock = Clock(options.budget)
    rules, found = check_module(module, options, clock)
    if any(d.is_error for d in found):
        return Compiled(rules, (), found)
    emitted = emit_module(source, rules, options, clock)
    modules = () if emitted.failed else emitted.value or ()
    told = {(d.code, d.labels[0].span) for d in found if d.labels}
    later = not_ignored(emitted.diagnostics, options.ignored)
    found += tuple(
        d for d in later if not d.labels or (d.code, d.labels[0].span) not in told
    )
    return Compiled(rules, modules, found)


def _unproved(checked: CheckedRule) -> Iterable[Diagnostic]:
    """Errors under `--strict`, for which agreement at points is not enough."""
    rule = checked.rule
    for entry, verdict in zip(rule.backward, checked.verdicts, strict=True):
        if verdict.status is Status.AGREES:
            yield error(
                "GS490",
                f"d{verdict.input} of {rule.name} agrees at {verdict.points} points to"
                f" {verdict.digits} digits, but is not proved",
                rule.source,
                getattr(entry, "span", rule.name_span),
                help="leave out --strict, or write the cotangent in a form nearer to"
                " the derivative (leave it out to have it derived)",
            )


def _distinct(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics without duplicates, since several targets may report the same."""
    return tuple(dict.fromkeys(found))
