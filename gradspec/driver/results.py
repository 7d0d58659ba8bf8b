"""The result of compiling one file, in a form for other processes and the cache.

The cache holds JSON, never pickles: a cache file is data, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradspec.diagnostics import Diagnostic, error
from gradspec.driver.workers import Lost
from gradspec.ir import plain
from gradspec.ir.rule import CheckedRule, Verdict
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets.target import Emitted


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


def lost(display: str, end: Lost) -> Diagnostic:
    """A file whose worker has ended."""
    if end.is_late:
        return error(
            "GS461",
            f"work on {display} was stopped: a step of it does not come to an end",
            help="give it more time with `--budget`, or divide the file",
        )
    if end.is_out_of_memory:
        return error(
            "GS461",
            f"work on {display} was stopped: it needs more than 1 GB of memory",
            help="divide the file, or its rules into rules that call each other",
        )
    return error(
        "GS615",
        f"the process that worked on {display} was killed ({end.reason})",
        help="run the command again; if it was killed for want of memory, with fewer"
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


def to_plain(result: FileResult, sources: tuple[Source, ...]) -> dict[str, Any]:
    """Data of the cache; sources are named by number, their text is not repeated."""
    has_costs = any(module.costs for module in result.modules)
    return plain.to_plain(result, _frame(sources, has_costs))


def from_plain(
    data: Mapping[str, Any], sources: tuple[Source, ...], has_costs: bool
) -> Any:
    """The inverse; KeyError or the like when the data is not of that form."""
    return plain.from_plain(data, _frame(sources, has_costs))


def _frame(sources: tuple[Source, ...], has_costs: bool) -> plain.Frame:
    """Cost summaries stand in the planner, which a result without any has no need
    of."""
    classes: tuple[type[Any], ...] = (FileResult, RuleRow, Emitted)
    if has_costs:
        from gradspec.plan.cost import CostSummary, Work

        classes += (CostSummary, Work)
    return plain.Frame(sources, 0, classes)


def is_result_of(result: Any, source: Source, below: str, options: Options) -> bool:
    """True if a result that was read belongs to this file: it names no other output
    path."""
    expected = f"{below.removesuffix('.grad')}.py"
    return (
        isinstance(result, FileResult)
        and result.display == source.path
        and all(m.target in options.targets for m in result.modules)
        and all(module.path == expected for module in result.modules)
    )
