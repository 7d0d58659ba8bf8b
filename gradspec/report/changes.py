"""Changes between two versions of rules as text, JSON and GitHub commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from gradspec.checks.versions import How, Part
from gradspec.measure.changes import Change
from gradspec.report.diagnostics import escape_data, escape_property, printable
from gradspec.report.streams import align_columns

FORMAT_VERSION = 1


def text(changes: Iterable[Change]) -> str:
    """A line for each thing that changed, and the number of rules of each kind."""
    changes, rows = tuple(changes), list[tuple[str, str, str]]()
    for one in changes:
        told = [*_sentences(one)]
        name = printable(one.name or one.now)
        rows += [(_word(one), name, line) for line in told[:1]]
        rows += [("", "", line) for line in told[1:]]
    counts = Counter(map(_word, changes))
    numbers = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
    total = f"{len(changes)} rules: {numbers}" if changes else "no rules"
    return "\n".join((align_columns(rows), total) if rows else (total,))


def document(changes: Iterable[Change]) -> str:
    """One JSON document; ``noticed`` of a rule says that a caller can notice the change."""
    data = {"version": FORMAT_VERSION, "rules": [_data(one) for one in changes]}
    return json.dumps(data, indent=2)


def github(changes: Iterable[Change]) -> Iterator[str]:
    """An error for each rule whose change can be noticed."""
    for one in changes:
        if one.is_noticed:
            told = "; ".join(_sentences(one))
            place = f"file={escape_property(one.file)},line={one.line}"
            message = escape_data(f"{one.name}: {told}")
            yield f"::error {place},title={_word(one).lower()}::{message}"


_WORDS = ("same (text)", "same", "new", "CHANGED", "RENAMED", "REMOVED")


def _word(one: Change) -> str:
    if one.kind == "same":
        return "same (text)"
    word = "same" if one.kind == "changed" else one.kind
    if not one.is_noticed:
        return word
    return "CHANGED" if one.kind == "changed" else word.upper()


def _sentences(one: Change) -> Iterator[str]:
    """What changed of a rule; one whose text is the same has none."""
    if one.kind == "renamed":
        yield f"it is {printable(one.now)}"
    elif one.kind in ("removed", "new"):
        yield f"{printable(one.file)}:{one.line}"
    for _, words in one.compared.signature:
        yield printable(words)
    for part in one.compared.parts:
        if part.how is not How.TEXT:
            yield printable(f"{part.name} {_evidence(part)}")


def _evidence(part: Part) -> str:
    at_sizes = f" at {part.sizes}" if part.sizes else ""
    match part.how:
        case How.PROVED:
            return f"proved{at_sizes}"
        case How.AGREES:
            proved = f", and is proved{at_sizes}" if part.sizes else ""
            return f"agrees at {part.points} points{proved}"
        case How.ROUNDED:
            return "differs by rounding alone"
        case How.UNKNOWN:
            return f"was not compared: {part.reason}"
        case _:
            where = f" at {part.point}" if part.point else ""
            return f"differs{where}: {part.was} was, {part.now} is"


def _data(one: Change) -> dict[str, Any]:
    parts = [
        {
            "name": part.name,
            "status": part.how.value,
            "sizes": part.sizes,
            "points": part.points,
            "point": part.point,
            "was": part.was,
            "is": part.now,
            "reason": part.reason,
        }
        for part in one.compared.parts
    ]
    return {
        "rule": one.name,
        "now": one.now,
        "path": one.file,
        "line": one.line,
        "change": one.kind,
        "noticed": one.is_noticed,
        "signature": [words for _, words in one.compared.signature],
        "values": parts,
    }
