"""The summary of rules: verdicts and their evidence, costs, boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gradspec.driver.results import FileResult, RuleRow
from gradspec.ir.rule import Status, Verdict
from gradspec.report.table import aligned, styled

if TYPE_CHECKING:
    from gradspec.driver.boundaries import Line, RuleTable
    from gradspec.plan.cost import CostSummary
    from gradspec.targets.target import Emitted


def describe(verdict: Verdict) -> str:
    """A verdict in a few words: ``dx proved``, ``dx agrees (64 points, 30 digits)``."""
    name = f"d{verdict.input}"
    match verdict.status:
        case Status.AGREES:
            return f"{name} agrees ({verdict.points} points, {verdict.digits} digits)"
        case Status.PROVED if verdict.on_domain:
            return f"{name} proved{_sizes(verdict)} on the assumed domain"
        case Status.PROVED:
            return f"{name} proved{_sizes(verdict)}"
        case Status.DERIVED if verdict.through_surrogate:
            return f"{name} derived from the surrogate"
        case _:
            return f"{name} {verdict.status.value}"


def _sizes(verdict: Verdict) -> str:
    return f" at {verdict.sizes}" if verdict.sizes else ""


def verdicts(rule: RuleRow) -> str:
    """The verdicts of a rule, inputs without gradient left out."""
    told = [describe(v) for v in rule.verdicts if v.status is not Status.NONE]
    return (", ".join(told) or "no gradient") + _second(rule.second)


def _second(verdicts: tuple[Verdict, ...]) -> str:
    """``; second order proved``, or pair by pair where they differ."""
    kinds = dict.fromkeys(v.status for v in verdicts)
    if not kinds:
        return ""
    if len(kinds) == 1:
        return f"; second order {next(iter(kinds)).value}"
    told = (f"d{v.input.replace(',', ' by ')} {v.status.value}" for v in verdicts)
    return f"; second order: {', '.join(told)}"


def totals(results: Iterable[FileResult]) -> str:
    """``12 rules: 3 cotangents proved, 9 derived``."""
    rules = [rule for result in results for rule in result.rules]
    counts = dict.fromkeys(Status, 0)
    for rule in rules:
        for verdict in rule.verdicts:
            counts[verdict.status] += 1
    told = [
        f"{count} {status.value}"
        for status, count in counts.items()
        if count and status is not Status.NONE
    ]
    noun = "rule" if len(rules) == 1 else "rules"
    return f"{len(rules)} {noun}" + (f" ({', '.join(told)})" if told else "")


def table(results: Iterable[FileResult]) -> str:
    """A line for each rule: its place, its name and its verdicts."""
    return aligned(
        (
            click.style(f"{result.display}:{rule.line}", dim=True),
            rule.name,
            _coloured(verdicts(rule)),
        )
        for result in results
        for rule in result.rules
    )


def _coloured(told: str) -> str:
    colours = (("proved", "green"), ("agrees", "yellow"), ("override", "magenta"))
    for word, colour in colours:
        told = told.replace(word, click.style(word, fg=colour))
    return told


# --- evidence ------------------------------------------------------------------------

_TOLD = (Status.PROVED, Status.AGREES, Status.REFUTED)


def evidence(results: Iterable[FileResult]) -> str:
    """A line for every cotangent that was checked: ``dx proved, 12 ms: by normal form;
    24 points agree to 50 digits (256 bits)``."""
    return "\n".join(
        f"{result.display}:{rule.line} {rule.name}: {_evidence(verdict)}"
        for result in results
        for rule in result.rules
        for verdict in rule.verdicts
        if verdict.status in _TOLD
    )


def _evidence(verdict: Verdict) -> str:
    if verdict.status is Status.REFUTED:
        parts = [f"by {verdict.method} at {verdict.bits} bits"]
    elif verdict.status is Status.PROVED:
        parts = [f"by {verdict.method}", *_points(verdict)]
    else:
        parts = list(_points(verdict))
    if verdict.assumed:
        parts.append(f"assuming {', '.join(verdict.assumed)}")
    if verdict.stopped:
        parts.append(f"stopped: {' and '.join(verdict.stopped)}")
    name = describe(verdict).partition(" (")[0]
    return f"{name}, {1000 * verdict.seconds:.0f} ms: {'; '.join(parts)}"


def _points(verdict: Verdict) -> Iterator[str]:
    if verdict.points:
        yield (
            f"{verdict.points} points agree to {verdict.digits} digits"
            f" ({verdict.bits} bits)"
        )


# --- costs (`compile --report`) ------------------------------------------------------

_COSTS = (
    *("rule", "target", "keeps", "beyond in and out"),
    *("calls", "transcendental", "arrays", "as one kernel"),
)
_WORDS = 4
"""The first columns are words, the others counts: forward + backward."""


def costs(results: Iterable[FileResult]) -> str:
    """A row for each rule and target."""
    found = [
        (
            cost.rule,
            module.target,
            ", ".join(cost.kept) or "-",
            _residuals_text(cost),
            *(
                f"{getattr(cost.forward, name)} + {getattr(cost.backward, name)}"
                for name in ("calls", "transcendental", "arrays", "fused")
            ),
        )
        for result in results
        for cost, module in _by_rule(result)
    ]
    return aligned([styled(_COSTS, dim=True), *found], _WORDS) if found else ""


def _by_rule(result: FileResult) -> list[tuple[CostSummary, Emitted]]:
    """The rows grouped by rule, one for each target."""
    pairs = [(a, m) for m in result.modules for a in m.costs]
    order = {rule.name: k for k, rule in enumerate(result.rules)}
    return sorted(pairs, key=lambda pair: order.get(pair[0].rule, len(order)))


def _residuals_text(cost: CostSummary) -> str:
    """``0 B``, or the other residuals and the bytes of an element."""
    if cost.beyond is None:
        return "as the framework has it"
    return ", ".join(f"{name} {size} B" for name, size in cost.beyond) or "0 B"


def costs_data(result: FileResult) -> list[dict[str, Any]]:
    """For JSON: names as in the table, bytes an element."""
    return [
        {**asdict(cost), "target": module.target, "beyond": _named(cost)}
        for cost, module in _by_rule(result)
    ]


def _named(cost: CostSummary) -> list[dict[str, Any]] | None:
    if cost.beyond is None:
        return None
    return [{"name": n, "bytes_per_element": size} for n, size in cost.beyond]


# --- boundaries (`check --boundaries`) -----------------------------------------------

_BOUNDARIES = (
    *("where", "kind", "of", "left | at | right", "slope", "emitted", "verdict"),
)
_GRAVE = ("GS402", "GS430", "GS431")


def boundaries(tables: Iterable[RuleTable]) -> str:
    """A heading and a table for each rule."""
    return "\n".join(map(_boundaries, tables))


def _boundaries(rule: RuleTable) -> str:
    title = f"{click.style(rule.place, dim=True)} {rule.name}"
    if not rule.lines:
        return f"{title}: no boundaries"
    rows = [styled(("", *_BOUNDARIES), dim=True), *map(_cells, rule.lines)]
    return f"{title}\n{aligned(rows)}"


def _cells(line: Line) -> list[str]:
    cells = (
        "",
        f"{line.where} ({line.given})" if line.given else line.where,
        line.kind,
        f"{line.output} by {line.input}",
        " | ".join(line.forward),
        " | ".join(line.slope),
        line.emitted or "-",
        f"{line.verdict} [{line.code}]" if line.code else line.verdict,
    )
    if not line.code:
        return list(cells)
    return styled(cells, fg="red" if line.code in _GRAVE else "yellow")


def boundaries_data(tables: Iterable[RuleTable]) -> list[dict[str, Any]]:
    """For JSON: numbers stay text, as they are shown."""
    return [
        {
            "place": t.place,
            "rule": t.name,
            "boundaries": [_row(line) for line in t.lines],
        }
        for t in tables
    ]


def _row(line: Line) -> dict[str, Any]:
    left, value, right = line.forward
    before, stated, after = line.slope
    return {
        "where": line.where,
        "given": line.given,
        "kind": line.kind,
        "output": line.output,
        "input": line.input,
        "forward": {"left": left, "at": value, "right": right},
        "slope": {"left": before, "right": after},
        "gradient": {"at": stated, "is": line.entry},
        "emitted": line.emitted,
        "verdict": line.verdict,
        "code": line.code,
    }
