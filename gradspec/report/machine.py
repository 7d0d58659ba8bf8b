"""Findings for machines: JSON, and the commands that GitHub Actions reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gradspec.diagnostics import Diagnostic, Label
from gradspec.driver.cache import FileResult
from gradspec.ir.rule import Verdict
from gradspec.report.diagnostic_text import printable
from gradspec.report.summary import boundaries_data, costs_data

if TYPE_CHECKING:
    from gradspec.driver.boundaries import RuleTable

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
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    """The JSON escape of a control character."""
    return json.dumps(char)[1:-1]


def github(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Workflow commands: ``::error file=…,line=…,col=…,title=…::message``."""
    for diagnostic in found:
        place = _github_place(diagnostic.labels[0]) if diagnostic.labels else ""
        title = _property(diagnostic.code)
        message = "\n".join(
            part
            for part in (diagnostic.headline, *diagnostic.notes, diagnostic.help)
            if part
        )
        level = {"note": "notice"}.get(
            diagnostic.severity.value, diagnostic.severity.value
        )
        yield f"::{level} {place}title={title}::{_data(message)}"


def _file(result: FileResult) -> dict[str, Any]:
    return {
        "path": result.display,
        "rules": [
            {
                "name": rule.name,
                "line": rule.line,
                "rewrites": list(rule.reasons),
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
        "stopped": list(v.stopped),
        "through_surrogate": v.through_surrogate,
    } | ({"sizes": v.sizes} if v.sizes else {})


def _finding(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.headline,
        "places": [_place(label) for label in found.labels],
        "notes": list(found.notes),
        "help": found.help,
    }


def _place(label: Label) -> dict[str, Any]:
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
    place = _place(label)
    return (
        f"file={_property(place['path'])},line={place['line']},"
        f"endLine={place['end_line']},col={place['column']},"
        f"endColumn={place['end_column']},"
    )


def _data(text: str) -> str:
    """Escapes of GitHub's toolkit (actions/toolkit, command.ts): data."""
    lines = map(printable, text.replace("%", "%25").split("\n"))
    return "%0A".join(lines)


def _property(text: str) -> str:
    """Escapes of GitHub's toolkit (actions/toolkit, command.ts): property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
