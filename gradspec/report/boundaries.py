"""Tables of boundaries: for a terminal, for a pipe, for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from gradspec.driver.boundaries import RuleTable
from gradspec.driver.boundary_table import Line

_HEADS = ("where", "kind", "of", "left | at | right", "slope", "emitted", "verdict")
_NONE = "no boundaries"


def plain(tables: Iterable[RuleTable]) -> str:
    """Aligned columns, a heading for each rule."""
    return "\n".join(line for table in tables for line in _plain(table))


def _plain(table: RuleTable) -> Iterator[str]:
    if not table.lines:
        yield f"{table.place} {table.name}: {_NONE}"
        return
    yield f"{table.place} {table.name}"
    rows = [_HEADS, *map(_cells, table.lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield ("  " + "  ".join(cells)).rstrip()


def _cells(line: Line) -> tuple[str, ...]:
    where = f"{line.where} ({line.given})" if line.given else line.where
    return (
        where,
        line.kind,
        f"{line.output} by {line.input}",
        " | ".join(line.forward),
        " | ".join(line.slope),
        line.emitted or "-",
        f"{line.verdict} [{line.code}]" if line.code else line.verdict,
    )


def show(tables: Iterable[RuleTable]) -> None:
    """The same with rich."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for rule in tables:
        title = f"[dim]{escape(rule.place)}[/dim] {escape(rule.name)}"
        console.print(title if rule.lines else f"{title}: [dim]{_NONE}[/dim]")
        if not rule.lines:
            continue
        table = Table(box=None, pad_edge=False, header_style="dim")
        for head in ("", *_HEADS):
            table.add_column(head)
        for line in rule.lines:
            cells = (escape(cell) for cell in _cells(line))
            table.add_row("", *cells, style=_style(line))
        console.print(table)


def tell(tables: Iterable[RuleTable]) -> None:
    """Print with rich on a terminal, aligned columns elsewhere; nothing if empty."""
    tables = tuple(tables)
    if tables and sys.stdout.isatty():
        show(tables)
    elif tables:
        sys.stdout.write(f"{plain(tables)}\n")


def _style(line: Line) -> str:
    if line.code:
        return "red" if line.code in ("GS402", "GS430", "GS431") else "yellow"
    return ""


def data(tables: Iterable[RuleTable]) -> list[dict[str, Any]]:
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
