"""The output of the command ``test``: trials of rules against the truth and each other,
and the conformance matrix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gradspec.report.table import aligned

if TYPE_CHECKING:
    from gradspec.driver.conforming import Cell, Matrix
    from gradspec.driver.trials import Failure, TrialReport

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
            counts = f"{report.rules} rules, {report.checks} checks"
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
            click.echo(f"{counted(matrix)}\n")


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
    return aligned([(matrix.target, *matrix.rules), *rows])


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


def counted(matrix: Matrix) -> str:
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
