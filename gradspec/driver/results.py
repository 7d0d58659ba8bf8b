"""What compiling one file gave, in a form that crosses processes and goes to the cache.

The cache holds JSON, never pickles: a cache file is data, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradspec.diagnostics import Diagnostic, Label, Severity, error
from gradspec.driver.workers import Lost
from gradspec.ir.rule import CheckedRule, Status, Verdict
from gradspec.options import Options
from gradspec.source import Source, Span
from gradspec.targets.target import Emitted

if TYPE_CHECKING:
    from gradspec.plan.cost import CostSummary


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule's line in the summary."""

    name: str
    line: int
    verdicts: tuple[Verdict, ...]
    reasons: tuple[str, ...] = ()
    second: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file: its rules' verdicts, its modules and what was found."""

    display: str
    rules: tuple[RuleRow, ...]
    modules: tuple[Emitted, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        return any(d.is_error for d in self.diagnostics)


def too_long(source: Source, options: Options) -> Diagnostic:
    """A text that cannot be read in the time that a rule is given."""
    return error(
        "GS461",
        f"reading {source.path} was stopped after {options.budget:g} s",
        help="give it more time with `--budget`, or divide the file",
    )


def lost(display: str, end: Lost, options: Options) -> Diagnostic:
    """A file whose worker has ended."""
    if end.is_late:
        return error(
            "GS461",
            f"compiling {display} was stopped: a step of it does not come to an end",
            help="give it more time with `--budget`, or divide the file",
        )
    if end.is_out_of_memory:
        return error(
            "GS461",
            f"compiling {display} was stopped: it needs more than 1 GB of memory",
            help="divide the file, or its rules into rules that call each other",
        )
    return error(
        "GS615",
        f"the process that compiled {display} was killed ({end.reason})",
        help="compile the file again; if it was killed for want of memory, with fewer"
        " processes (`-j`)",
    )


def row(checked: CheckedRule) -> RuleRow:
    """The summary line of a checked rule."""
    rule = checked.rule
    line, _ = rule.source.position(rule.name_span.start)
    return RuleRow(
        rule.name,
        line,
        checked.verdicts,
        tuple(f"{r.name}: {r.reason}" for r in checked.rewrites),
        checked.second,
    )


def to_json(result: FileResult) -> dict[str, Any]:
    """Plain data; sources are named by path, their text is not repeated."""
    return {
        "display": result.display,
        "rules": [
            {
                "name": rule.name,
                "line": rule.line,
                "verdicts": [_verdict_json(v) for v in rule.verdicts],
                "reasons": list(rule.reasons),
                "second": [_verdict_json(v) for v in rule.second],
            }
            for rule in result.rules
        ],
        "modules": [
            [m.target, m.path, m.text, sorted(m.runtime), [*map(cost_json, m.costs)]]
            for m in result.modules
        ],
        "diagnostics": [_diagnostic_json(d) for d in result.diagnostics],
    }


def from_json(data: Mapping[str, Any], sources: Mapping[str, Source]) -> FileResult:
    """The inverse of `to_json`; KeyError or the like when the data is not of that form
    (the cache then counts as empty).
    """
    return FileResult(
        data["display"],
        tuple(
            RuleRow(
                r["name"],
                r["line"],
                tuple(_verdict(v) for v in r["verdicts"]),
                tuple(r["reasons"]),
                tuple(_verdict(v) for v in r["second"]),
            )
            for r in data["rules"]
        ),
        tuple(
            Emitted(target, path, text, frozenset(runtime), tuple(map(_cost, costs)))
            for target, path, text, runtime, costs in data["modules"]
        ),
        tuple(_diagnostic(d, sources) for d in data["diagnostics"]),
    )


def is_result_of(
    result: FileResult, source: Source, below: str, options: Options
) -> bool:
    """Whether a result that was read is of this file: it names no other place to write."""
    expected = f"{below.removesuffix('.grad')}.py"
    return result.display == source.path and all(
        module.target in options.targets and module.path == expected
        for module in result.modules
    )


def cost_json(cost: CostSummary) -> dict[str, Any]:
    """What a rule costs, as plain data."""
    return {
        "rule": cost.rule,
        "kept": list(cost.kept),
        "beyond": None if cost.beyond is None else [list(one) for one in cost.beyond],
        "forward": asdict(cost.forward),
        "backward": asdict(cost.backward),
    }


def _cost(data: Mapping[str, Any]) -> CostSummary:
    from gradspec.plan.cost import CostSummary, Work

    beyond = data["beyond"]
    return CostSummary(
        data["rule"],
        tuple(data["kept"]),
        None if beyond is None else tuple((name, size) for name, size in beyond),
        Work(**data["forward"]),
        Work(**data["backward"]),
    )


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "input": verdict.input,
        "status": verdict.status.value,
        "method": verdict.method,
        "points": verdict.points,
        "digits": verdict.digits,
        "on_domain": verdict.on_domain,
        "through_surrogate": verdict.through_surrogate,
        "sizes": verdict.sizes,
        "bits": verdict.bits,
        "assumed": list(verdict.assumed),
        "stopped": list(verdict.stopped),
        "seconds": verdict.seconds,
    }


def _verdict(data: Mapping[str, Any]) -> Verdict:
    lists = {name: tuple(data[name]) for name in ("assumed", "stopped")}
    return Verdict(**{**data, **lists, "status": Status(data["status"])})


def _diagnostic_json(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "headline": found.headline,
        "labels": [
            [label.source.path, label.span.start, label.span.end, label.message]
            for label in found.labels
        ],
        "notes": list(found.notes),
        "help": found.help,
    }


def _diagnostic(data: Mapping[str, Any], sources: Mapping[str, Source]) -> Diagnostic:
    return Diagnostic(
        data["code"],
        Severity(data["severity"]),
        data["headline"],
        tuple(
            Label(sources[path], Span(start, end), message)
            for path, start, end, message in data["labels"]
        ),
        tuple(data["notes"]),
        data["help"],
    )
