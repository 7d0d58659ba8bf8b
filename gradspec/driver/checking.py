"""Checks of texts for those who work on them: verdicts, gradients as text, and findings;
without modules, and without searching evaluations unless that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gradspec.derive.shortest import as_written, shortest
from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.driver import cache
from gradspec.driver.discover import Entry, read_entry, read_imported
from gradspec.driver.load import Reader
from gradspec.driver.run import compile_rules
from gradspec.ir.expr import Expr
from gradspec.ir.plain import recall_or_compute, use_shelf
from gradspec.ir.rule import Complete, Definition, Judged, Verdict
from gradspec.options import Options
from gradspec.source import Source, Span
from gradspec.symbolic.limit import Shortage, run_limited


@dataclass(frozen=True, slots=True)
class CheckedGradient:
    """The gradient of one input. ``formula`` is ``dx = …`` as its author wrote it; a
    derived one has the shortest text that is known to say the same. ``verdict`` has the
    status (``verdict.status.value``: derived, proved, agrees, refuted or override) and
    the evidence for it.
    """

    input: str
    formula: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule and its gradients, in the order of its inputs; those that take none are
    left out. ``span`` is the place of its text, ``name_span`` that of its name.
    ``second`` are verdicts on second derivatives, if they were asked for.
    """

    name: str
    source: Source
    span: Span
    name_span: Span
    gradients: tuple[CheckedGradient, ...]
    second: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: the rules that can be read, in the order written, and the
    findings. ``diagnostics[i].labels[0]`` is the place of a finding, its ``fixes`` are
    changes of the text that were tried.
    """

    rules: tuple[CheckedRule, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """True if there is an error among the findings."""
        return any(d.is_error for d in self.diagnostics)


def check_source(
    source: Source, below: str, options: Options, read: Reader = read_imported
) -> CheckResult:
    """One text; ``read`` gives the texts that it imports."""
    with use_shelf(cache.rules()):
        compiled, _ = compile_rules(source, below, options, read=read)
        rules = tuple(_checked_rule(rule, options.budget) for rule in compiled.rules)
    return CheckResult(rules, compiled.diagnostics)


def check_entry(options: Options, entry: Entry) -> Outcome[CheckResult]:
    """One file."""
    source = read_entry(entry)
    if source.value is None:
        return Outcome(CheckResult((), source.diagnostics))
    return Outcome(check_source(source.value, entry.below, options))


def _checked_rule(judged: Judged, budget: float) -> CheckedRule:
    rule, verdicts = judged.rule, {v.input: v for v in judged.verdicts}
    work = partial(_derived_texts, rule, budget)
    derived = recall_or_compute(rule, ("gradients",), rule, work, lambda _: True)
    gradients = tuple(
        CheckedGradient(
            entry.input, f"{_left_side(entry)} = {text}", verdicts[entry.input]
        )
        for entry, short in zip(rule.backward, derived, strict=True)
        if (text := short or _on_one_line(rule.source.slice(entry.span)))
    )
    places = rule.source, rule.span, rule.name_span
    return CheckedRule(rule.name, *places, gradients, judged.second)


def _on_one_line(text: str) -> str:
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")")


def _left_side(entry: Definition) -> str:
    return f"{entry.name}[{', '.join(entry.indices)}]" if entry.indices else entry.name


def _derived_texts(rule: Complete, budget: float) -> tuple[str, ...]:
    """The texts of the gradients that are derived; empty for those that are written."""
    return tuple(
        _shortest_text(rule, one, budget) if one.is_derived else ""
        for one in rule.backward
    )


def _shortest_text(rule: Complete, entry: Definition, budget: float) -> str:
    def work() -> Expr:
        return shortest(rule, entry.input, entry.value)

    found = run_limited(budget, work)
    return as_written(entry.value if isinstance(found, Shortage) else found)
