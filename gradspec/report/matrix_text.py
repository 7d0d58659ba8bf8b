"""The conformance matrix, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

import click

from gradspec.driver.conforming import Cell, Matrix

WORDS = {
    "ok": "ok",
    "error": "error",
    "dropped": "DROPPED",
    "wrong": "WRONG",
    "none": "-",
}
COLOURS = {"ok": "green", "error": "red", "dropped": "magenta", "wrong": "magenta"}


def show(matrices: Iterable[Matrix], style: str) -> None:
    """Print the matrices in the chosen style."""
    matrices = tuple(matrices)
    match style:
        case "json":
            click.echo(json.dumps([asdict(m) for m in matrices], indent=2))
        case "github":
            for matrix in matrices:
                _github(matrix)
        case _:
            for matrix in matrices:
                _text(matrix)


def _github(matrix: Matrix) -> None:
    """GitHub annotations; a failure that plain code shares is only a notice."""
    if matrix.absent:
        click.echo(f"::error title=GS611::{matrix.target}: {matrix.absent}")
    for cell in _faults(matrix):
        level = "error" if cell.failed else "notice"
        click.echo(f"::{level} title=GS530::{_sentence(matrix, cell)}")


def _text(matrix: Matrix) -> None:
    if matrix.absent:
        click.echo(f"{matrix.target}: error[GS611]: {matrix.absent}")
        return
    states = {
        (cell.rule, cell.feature): (cell.state, worded(cell)) for cell in matrix.cells
    }
    first = max(len(name) for name in (matrix.target, *matrix.features))
    widths = [max(len(rule), 13) for rule in matrix.rules]
    columns = zip(matrix.rules, widths, strict=True)
    heads = "  ".join(f"{rule:<{width}}" for rule, width in columns)
    click.echo(f"{matrix.target:<{first}}  {heads}".rstrip())
    for feature in matrix.features:
        cells = (
            _word(*states.get((rule, feature), ("none", "-")), width)
            for rule, width in zip(matrix.rules, widths, strict=True)
        )
        click.echo(f"{feature:<{first}}  {'  '.join(cells)}".rstrip())
    for cell in _faults(matrix):
        word, colour = ("error[GS530]", "red") if cell.failed else ("note", "cyan")
        said = click.style(word, fg=colour, bold=True)
        click.echo(f"{said}: {_sentence(matrix, cell)}", err=True)
    click.echo(f"{counted(matrix)}\n")


def worded(cell: Cell) -> str:
    """The state of a cell, and what plain code does where that fails."""
    word = WORDS[cell.state]
    return word if cell.plain in ("ok", "none") else f"{word} ({cell.plain})"


def _word(state: str, text: str, width: int) -> str:
    text = f"{text:<{width}}"
    return click.style(text, fg=COLOURS[state]) if state in COLOURS else text


def _faults(matrix: Matrix) -> list[Cell]:
    return [cell for cell in matrix.cells if cell.state not in ("ok", "none")]


def _sentence(matrix: Matrix, cell: Cell) -> str:
    what = {"dropped": "the rule is dropped", "wrong": "something else came out"}
    state = what.get(cell.state, "error")
    text = f"{cell.rule} on {matrix.target}, {cell.feature}: {state}: {cell.message}"
    return (
        text if cell.failed else f"{text} [plain code fails too: {cell.plain_message}]"
    )


def counted(matrix: Matrix) -> str:
    """The number of cells in each state, and the number for plain code."""
    sentences = [_tally([cell.state for cell in matrix.cells])]
    plain = [cell.plain for cell in matrix.cells]
    if any(state != "none" for state in plain):
        own = sum(cell.failed for cell in matrix.cells)
        every = sum(c.plain == "none" for c in matrix.cells if c.state == "ok") == 0
        where = "plain code" if every else "plain code, where a rule failed"
        sentences.append(f"{where}: {_tally(plain)}")
        sentences.append(f"failures that plain code has not: {own}")
    return f"{matrix.target}: {'; '.join(sentences)}"


def _tally(states: list[str]) -> str:
    counts = {s: states.count(s) for s in WORDS}
    tried = len(states) - counts["none"]
    failed = [f"{counts[s]} {s}" for s in ("error", "dropped", "wrong") if counts[s]]
    return ", ".join([f"{counts['ok']} of {tried} ok", *failed])
