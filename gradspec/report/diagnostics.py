"""Diagnostics for a terminal, as in rustc: headline, place, caret, suggested fix.

Plain text with ANSI styles from click, which leaves them out when the stream is not a
terminal. For machines: JSON, and the commands that GitHub Actions reads. The pages
behind ``gradspec explain`` are Markdown files, one per code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradspec.diagnostics import Diagnostic, Label, Severity
from gradspec.driver.cache import FileResult
from gradspec.ir.rule import Verdict
from gradspec.report.summary import boundaries_data, costs_data
from gradspec.source import escape

if TYPE_CHECKING:
    from gradspec.measure.boundaries import RuleTable

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
WIDEST = 160
"""Longer source lines are cut around the caret: a rule generated on one line of ten
thousand characters must not bury its message."""


def render(found: Diagnostic) -> str:
    """One finding as lines of text."""
    return "\n".join(_lines(found))


def _lines(found: Diagnostic) -> Iterator[str]:
    colour = COLOURS[found.severity]
    head = click.style(f"{found.severity.value}[{found.code}]", fg=colour, bold=True)
    yield f"{head}: {click.style(printable(found.headline), bold=True)}"
    for number, label in enumerate(found.labels):
        yield from _place(label, colour if number == 0 else "blue")
    for note in found.notes:
        yield from _paragraph("note", note)
    if found.help:
        yield from _paragraph("help", found.help)


def _place(label: Label, colour: str) -> Iterator[str]:
    line, column = label.source.position(label.span.start)
    whole, start = label.source.line(line), column - 1
    marked = printable(whole[start : start + label.span.end - label.span.start])
    text, offset = _window(printable(whole), len(printable(whole[:start])))
    room = max(1, len(text) - offset)
    width = min(max(1, len(marked)), room)
    gutter = " " * len(str(line))
    bar = click.style("|", fg="blue")
    message = printable(label.message)
    carets = click.style(f"{'^' * width} {message}".rstrip(), fg=colour)
    path = printable(label.source.path)
    yield f"{gutter}{click.style('-->', fg='blue')} {path}:{line}:{column}"
    yield f"{gutter} {bar}"
    yield f"{click.style(str(line), fg='blue')} {bar} {text}".rstrip()
    yield f"{gutter} {bar} {_blank(text[:offset])}{carets}"


def _window(text: str, offset: int) -> tuple[str, int]:
    """The part of a long line around ``offset``, and where the offset is in it."""
    if len(text) <= WIDEST:
        return text, offset
    start = max(0, min(offset - WIDEST // 2, len(text) - WIDEST))
    end = start + WIDEST
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + text[start:end] + after, offset - start + len(before)


def printable(text: str) -> str:
    """The text with escapes in place of control characters (a file may have those that
    command a terminal)."""
    return "".join(c if c.isprintable() or c == "\t" else escape(c) for c in text)


def _blank(text: str) -> str:
    """As wide as ``text``: tabs stay, so that the caret stands under its column."""
    return "".join("\t" if char == "\t" else " " for char in text)


def _paragraph(word: str, text: str) -> Iterator[str]:
    first, *rest = map(printable, text.splitlines() or [""])
    yield f"  = {click.style(word, bold=True)}: {first}"
    indent = " " * (len(word) + 6)
    yield from (f"{indent}{line}".rstrip() for line in rest)


# --- for machines ---------------------------------------------------------------------


FORMAT_VERSION = 1


def document(
    results: Iterable[FileResult],
    others: Iterable[Diagnostic],
    changed: Iterable[str],
    tables: Iterable[RuleTable] = (),
) -> str:
    """One JSON document: files with their rules' verdicts, findings, changed outputs,
    and tables of boundaries if there are any.
    """
    results = tuple(results)
    found = [*others, *(d for result in results for d in result.diagnostics)]
    data = {
        "version": FORMAT_VERSION,
        "files": [_file(result) for result in results],
        "diagnostics": [_finding(d) for d in found],
        "changed": list(changed),
    }
    if found_at := boundaries_data(tables):
        data["boundaries"] = found_at
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)


def _json_escape(char: str) -> str:
    """The JSON escape of a control character."""
    return json.dumps(char)[1:-1]


def github(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Workflow commands: ``::error file=…,line=…,col=…,title=…::message``."""
    for diagnostic in found:
        place = _github_place(diagnostic.labels[0]) if diagnostic.labels else ""
        title = escape_property(diagnostic.code)
        message = "\n".join(
            part
            for part in (diagnostic.headline, *diagnostic.notes, diagnostic.help)
            if part
        )
        level = {"note": "notice"}.get(
            diagnostic.severity.value, diagnostic.severity.value
        )
        yield f"::{level} {place}title={title}::{escape_data(message)}"


def _file(result: FileResult) -> dict[str, Any]:
    return {
        "path": result.display,
        "rules": [
            {
                "name": rule.name,
                "line": rule.line,
                "cotangents": [_cotangent(v) for v in rule.verdicts],
            }
            | _second(rule.second)
            for rule in result.rules
        ],
    } | _costs(result)


def _costs(result: FileResult) -> dict[str, Any]:
    """The costs, if requested."""
    found = costs_data(result)
    return {"costs": found} if found else {}


def _second(verdicts: tuple[Verdict, ...]) -> dict[str, Any]:
    """Second derivatives, if requested: that of ``d<input>`` by another input."""
    found = []
    for verdict in verdicts:
        name, _, by = verdict.input.partition(",")
        found.append({**_cotangent(verdict), "input": name, "by": by})
    return {"second_order": found} if found else {}


def _cotangent(v: Verdict) -> dict[str, Any]:
    """The verdict and its evidence (docs/verdicts.md)."""
    return {
        "input": v.input,
        "verdict": v.status.value,
        "method": v.method,
        "points": v.points,
        "digits": v.digits,
        "precision_bits": v.bits,
        "seconds": round(v.seconds, 6),
        "on_assumed_domain": v.on_domain,
        "assumptions_used": list(v.assumed),
        "given": list(v.given),
        "stopped": list(v.stopped),
        "through_surrogate": v.through_surrogate,
    } | ({"sizes": v.sizes} if v.sizes else {})


def _finding(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.headline,
        "places": [place_data(label) for label in found.labels],
        "notes": list(found.notes),
        "help": found.help,
    } | _fixes(found)


def _fixes(found: Diagnostic) -> dict[str, Any]:
    """Changes that mend it, if there are any: what stands at each place in its stead."""
    fixes = [
        place_data(Label(found.labels[0].source, fix.span, fix.title))
        | {"text": fix.text, "safe": fix.is_safe}
        for fix in found.fixes
    ]
    return {"fixes": fixes} if fixes else {}


def place_data(label: Label) -> dict[str, Any]:
    """A place for JSON; lines and columns count from 1."""
    line, column = label.source.position(label.span.start)
    end_line, end_column = label.source.position(label.span.end)
    return {
        "path": label.source.path,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "message": label.message,
    }


def _github_place(label: Label) -> str:
    place = place_data(label)
    return (
        f"file={escape_property(place['path'])},line={place['line']},"
        f"endLine={place['end_line']},col={place['column']},"
        f"endColumn={place['end_column']},"
    )


def escape_data(text: str) -> str:
    """Escapes of GitHub's toolkit (actions/toolkit, command.ts): data."""
    lines = map(printable, text.replace("%", "%25").split("\n"))
    return "%0A".join(lines)


def escape_property(text: str) -> str:
    """Escapes of GitHub's toolkit (actions/toolkit, command.ts): property."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


# --- pages of codes -------------------------------------------------------------------


_FOLDER = Path(__file__).parent.parent / "explain"
_CODE = re.compile(r"GS\d{3}")


def page(code: str) -> str | None:
    """The page of a code (any case), None when there is none."""
    code = code.upper()
    if not _CODE.fullmatch(code):
        return None
    path = _FOLDER / f"{code}.md"
    return path.read_text("utf-8") if path.is_file() else None


def codes() -> tuple[str, ...]:
    """All codes that have a page, in order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("GS*.md")))


def listing() -> str:
    """A line per code: the pages' titles."""
    titles = (_FOLDER.joinpath(f"{code}.md").open(encoding="utf-8") for code in codes())
    lines = []
    for file in titles:
        with file:
            lines.append(file.readline().removeprefix("# ").rstrip())
    return "\n".join(lines)
