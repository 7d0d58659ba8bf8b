"""Findings as SARIF 2.1.0, which code hosts and editors read, with fixes, and the page of
each code as help."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from gradspec.diagnostics import Diagnostic, Fix, Label
from gradspec.report.diagnostics import page, place_data, printable
from gradspec.version import __version__


def sarif_log(
    tool: str, rules: Iterable[dict[str, Any]], results: Iterable[dict[str, Any]]
) -> str:
    """A log of one run of a tool."""
    driver = {"name": tool, "version": __version__, "rules": list(rules)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": list(results),
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2)


def of_diagnostics(found: Iterable[Diagnostic]) -> str:
    """A log whose results are diagnostics."""
    found = tuple(found)
    codes = sorted({one.code for one in found})
    return sarif_log("gradspec", map(_rule, codes), map(_result, found))


def _rule(code: str) -> dict[str, Any]:
    title, _, body = (page(code) or code).partition("\n")
    help = {"text": body.strip(), "markdown": body.strip()}
    short = {"text": title.removeprefix(f"# {code}: ")}
    return {"id": code, "shortDescription": short, "help": help}


def _result(found: Diagnostic) -> dict[str, Any]:
    first, others = found.labels[:1], found.labels[1:]
    lines = (found.headline, *(a.message for a in first), *found.notes, found.help)
    related = (_location(a) | {"message": {"text": a.message}} for a in others)
    return {
        "ruleId": found.code,
        "level": found.severity.value,
        "message": {"text": printable_lines(lines)},
        "locations": [_location(label) for label in first],
        "relatedLocations": list(related),
        "fixes": [_fix(fix, found.labels[0]) for fix in found.fixes],
    }


def printable_lines(lines: Iterable[str]) -> str:
    """The lines that are not empty."""
    texts = "\n".join(line for line in lines if line).split("\n")
    return "\n".join(map(printable, texts))


def _location(label: Label) -> dict[str, Any]:
    artifact = _artifact(label.source.path)
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": _region(label)}
    }


def _artifact(path: str) -> dict[str, str]:
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(path)}


def _region(label: Label) -> dict[str, int]:
    place = place_data(label)
    return {
        "startLine": place["line"],
        "startColumn": place["column"],
        "endLine": place["end_line"],
        "endColumn": place["end_column"],
    }


def _fix(fix: Fix, label: Label) -> dict[str, Any]:
    """A change; ``properties.safe`` says whether `gradspec check --fix` applies it."""
    region = _region(Label(label.source, fix.span))
    replacement = {"deletedRegion": region, "insertedContent": {"text": fix.text}}
    change = {
        "artifactLocation": _artifact(label.source.path),
        "replacements": [replacement],
    }
    return {
        "description": {"text": printable(fix.title)},
        "artifactChanges": [change],
        "properties": {"safe": fix.is_safe},
    }
