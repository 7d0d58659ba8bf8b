"""The summary of rules: verdicts and their evidence, costs, boundaries, trials against
the truth and each other, and the conformance matrix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gradspec.driver.cache import FileResult, RuleRow
from gradspec.ir.rule import Status, Verdict
from gradspec.report.streams import align_columns, style_cells

if TYPE_CHECKING:
    from gradspec.checks.witness import Witness
    from gradspec.measure.boundaries import Line, RuleTable
    from gradspec.measure.conformance import Cell, Matrix
    from gradspec.measure.trials import Failure, TrialReport
    from gradspec.plan.cost import CostSummary
    from gradspec.targets.target import Emitted


def describe(verdict: Verdict) -> str:
    """A verdict in a few words: ``dx proved``, ``dx agrees (64 points, 30 digits)``,
    ``dx proved, given j0'(x) = -j1(x)``."""
    given = f", given {', '.join(verdict.given)}" if verdict.given else ""
    return _described(verdict) + given


def _described(verdict: Verdict) -> str:
    name = f"d{verdict.input}"
    match verdict.status:
        case Status.AGREES:
            points = f"{verdict.points} point{'s'[: verdict.points != 1]}"
            where = _sizes(verdict)
            return f"{name} agrees{where} ({points}, {verdict.digits} digits)"
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
    return align_columns(
        (
            click.style(f"{result.display}:{rule.line}", dim=True),
            rule.name,
            _in_colour(verdicts(rule)),
        )
        for result in results
        for rule in result.rules
    )


def _in_colour(told: str) -> str:
    colours = (("proved", "green"), ("agrees", "yellow"), ("override", "magenta"))
    for word, colour in colours:
        told = told.replace(word, click.style(word, fg=colour))
    return told


# --- evidence ------------------------------------------------------------------------

_TOLD = (Status.PROVED, Status.AGREES, Status.REFUTED)


def evidence(
    results: Iterable[FileResult], witnesses: Iterable[tuple[str, Witness]]
) -> str:
    """A line for every cotangent that was checked: ``dx proved: by normal form;
    24 points agree to 50 digits (256 bits); SymPy's derivative agrees at 4 points``."""
    counts = {(file, one.line, one.input): one.points for file, one in witnesses}
    lines = []
    for result in results:
        for rule in result.rules:
            for verdict in rule.verdicts:
                count = counts.get((result.display, rule.line, verdict.input), 0)
                if verdict.status in _TOLD or (
                    count and verdict.status is Status.DERIVED
                ):
                    told = evidence_of(verdict, count)
                    lines.append(f"{result.display}:{rule.line} {rule.name}: {told}")
    return "\n".join(lines)


def evidence_of(verdict: Verdict, witnessed: int = 0) -> str:
    """A verdict and what it rests on; SymPy's derivative agrees at so many points."""
    if verdict.status is Status.REFUTED:
        parts = [f"by {verdict.method} at {verdict.bits} bits"]
    elif verdict.status is Status.PROVED or verdict.sizes:
        parts = [f"by {verdict.method}", *_points(verdict)]
    else:
        parts = list(_points(verdict))
    if verdict.assumed:
        parts.append(f"assuming {', '.join(verdict.assumed)}")
    if verdict.stopped:
        parts.append(f"stopped: {' and '.join(verdict.stopped)}")
    if witnessed:
        noun = "point" if witnessed == 1 else "points"
        parts.append(f"SymPy's derivative agrees at {witnessed} {noun}")
    if verdict.given:
        parts.append(f"given {', '.join(verdict.given)}")
    name = _described(verdict).partition(" (")[0]
    return f"{name}: {'; '.join(parts)}" if parts else name


def _points(verdict: Verdict) -> Iterator[str]:
    if verdict.points:
        yield (
            f"{verdict.points} points agree to {verdict.digits} digits"
            f" ({verdict.bits} bits)"
        )


# --- costs (`compile --report`) ------------------------------------------------------

_COSTS = (
    *("rule", "target", "keeps", "beyond in and out", "largest array"),
    *("calls", "transcendental", "arrays", "as one kernel"),
)
_WORDS = 5
"""The first columns are words, the others counts: forward + backward."""


def costs(results: Iterable[FileResult]) -> str:
    """A row for each rule and target."""
    found = [
        (
            cost.rule,
            module.target,
            ", ".join(cost.kept) or "-",
            _residuals_text(cost),
            _largest_text(cost),
            *(
                f"{getattr(cost.forward, name)} + {getattr(cost.backward, name)}"
                for name in ("calls", "transcendental", "arrays", "fused")
            ),
        )
        for result in results
        for cost, module in _by_rule(result)
    ]
    return (
        align_columns([style_cells(_COSTS, dim=True), *found], _WORDS) if found else ""
    )


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


def _largest_text(cost: CostSummary) -> str:
    """``[..., n, m] 4 B``: axes, and the bytes of an element."""
    return (
        "[{}] {} B".format(", ".join(cost.largest[0]), cost.largest[1])
        if cost.largest
        else "-"
    )


def costs_data(result: FileResult) -> list[dict[str, Any]]:
    """For JSON: names as in the table, bytes an element."""
    return [
        {
            **asdict(cost),
            "target": module.target,
            "beyond": _cost_entries(cost),
            "largest": _array(cost),
        }
        for cost, module in _by_rule(result)
    ]


def _cost_entries(cost: CostSummary) -> list[dict[str, Any]] | None:
    if cost.beyond is None:
        return None
    return [{"name": n, "bytes_per_element": size} for n, size in cost.beyond]


def _array(cost: CostSummary) -> dict[str, Any] | None:
    if cost.largest is None:
        return None
    return {"axes": [*cost.largest[0]], "bytes_per_element": cost.largest[1]}


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
    rows = [style_cells(("", *_BOUNDARIES), dim=True), *map(_cells, rule.lines)]
    return f"{title}\n{align_columns(rows)}"


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
    return style_cells(cells, fg="red" if line.code in _GRAVE else "yellow")


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


# --- tests ----------------------------------------------------------------------------


SHOWN = 20
"""Failures shown: a rule that is wrong at one point is wrong at many."""


def show_trials(reports: Iterable[TrialReport], style: str) -> None:
    """Print reports of trials in the chosen style."""
    reports = tuple(reports)
    if style == "json":
        click.echo(json.dumps([asdict(r) for r in reports], indent=2))
        return
    for report in reports:
        most = SHOWN if style == "text" else len(report.failures)
        for one in report.failures[:most]:
            place = f"file={one.display},"
            _finding("error", "GS612", _trial_sentence(one), style, place)
        if (more := len(report.failures) - most) > 0:
            click.echo(f"  … and {more} more on {report.target}", err=True)
    for report in reports:
        if report.absent:
            _missing(report.target, report.absent, style)
        elif style == "text":
            failed = f", {len(report.failures)} failed" if report.failures else ""
            rules = f"{report.rules} rule{'s'[: report.rules != 1]}"
            counts = f"{rules}, {report.checks} check{'s'[: report.checks != 1]}"
            click.echo(f"{report.target}: {counts}{failed}")


def _trial_sentence(failure: Failure) -> str:
    where = f" at {failure.where}" if failure.where else ""
    return (
        f"{failure.rule} on {failure.target}: {failure.what}{where}: {failure.message}"
    )


# --- the conformance matrix ----------------------------------------------------------

WORDS = {
    "ok": "ok",
    "error": "error",
    "dropped": "DROPPED",
    "wrong": "WRONG",
    "none": "-",
}
COLOURS = {"ok": "green", "error": "red", "dropped": "magenta", "wrong": "magenta"}


def show_matrices(matrices: Iterable[Matrix], style: str) -> None:
    """Print matrices of rules and features in the chosen style. On GitHub a failure
    that plain code shares is only a notice.
    """
    matrices = tuple(matrices)
    if style == "json":
        click.echo(json.dumps([asdict(m) for m in matrices], indent=2))
        return
    for matrix in matrices:
        if matrix.absent:
            _missing(matrix.target, matrix.absent, style)
        elif style == "text":
            click.echo(_matrix(matrix))
        for cell in matrix.cells:
            if cell.state not in ("ok", "none"):
                level = "error" if cell.failed else "note"
                _finding(level, "GS530", _cell_sentence(matrix, cell), style)
        if style == "text" and not matrix.absent:
            click.echo(f"{state_counts(matrix)}\n")


def _missing(target: str, absent: str, style: str) -> None:
    if style == "github":
        click.echo(f"::error title=GS611::{target}: {absent}")
    else:
        click.echo(f"{target}: error[GS611]: {absent}")


def _finding(level: str, code: str, sentence: str, style: str, place: str = "") -> None:
    if style == "github":
        level = "notice" if level == "note" else level
        click.echo(f"::{level} {place}title={code}::{sentence}")
        return
    red = level == "error"
    word = click.style(
        f"error[{code}]" if red else level, fg="red" if red else "cyan", bold=True
    )
    click.echo(f"{word}: {sentence}", err=True)


def _matrix(matrix: Matrix) -> str:
    cells = {(cell.rule, cell.feature): cell for cell in matrix.cells}

    def word(rule: str, feature: str) -> str:
        cell = cells.get((rule, feature))
        return click.style(cell_text(cell), fg=COLOURS.get(cell.state)) if cell else "-"

    rows = [(f, *(word(rule, f) for rule in matrix.rules)) for f in matrix.features]
    return align_columns([(matrix.target, *matrix.rules), *rows])


def cell_text(cell: Cell) -> str:
    """The state of a cell, and what plain code does where that fails."""
    word = WORDS[cell.state]
    return word if cell.plain in ("ok", "none") else f"{word} ({cell.plain})"


def _cell_sentence(matrix: Matrix, cell: Cell) -> str:
    what = {"dropped": "the rule is dropped", "wrong": "something else came out"}
    state = what.get(cell.state, "error")
    text = f"{cell.rule} on {matrix.target}, {cell.feature}: {state}: {cell.message}"
    return (
        text if cell.failed else f"{text} [plain code fails too: {cell.plain_message}]"
    )


def state_counts(matrix: Matrix) -> str:
    """The number of cells in each state, and the number for plain code."""
    sentences = [_counts([cell.state for cell in matrix.cells])]
    plain = [cell.plain for cell in matrix.cells]
    if any(state != "none" for state in plain):
        own = sum(cell.failed for cell in matrix.cells)
        every = sum(c.plain == "none" for c in matrix.cells if c.state == "ok") == 0
        where = "plain code" if every else "plain code, where a rule failed"
        sentences.append(f"{where}: {_counts(plain)}")
        sentences.append(f"failures that plain code has not: {own}")
    return f"{matrix.target}: {'; '.join(sentences)}"


def _counts(states: list[str]) -> str:
    counts = {s: states.count(s) for s in WORDS}
    tried = len(states) - counts["none"]
    failed = [f"{counts[s]} {s}" for s in ("error", "dropped", "wrong") if counts[s]]
    return ", ".join([f"{counts['ok']} of {tried} ok", *failed])
