"""Tables of text, in the same columns on a terminal, in a pipe and in a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click


def aligned(rows: Iterable[Sequence[str]], words: int | None = None) -> str:
    """The rows with their columns in line; the first ``words`` columns (all, if it is
    not given) from the left, those of numbers from the right. Styles of cells stay:
    `click.echo` leaves them out where they are not shown.
    """
    table = [[*row] for row in rows]
    columns = list(zip(*table, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    first = len(columns) if words is None else words
    lines = (
        "  ".join(
            cell + " " * (width - _width(cell))
            if k < first
            else " " * (width - _width(cell)) + cell
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def styled(cells: Iterable[str], **style: Any) -> list[str]:
    """Cells in a style."""
    return [click.style(cell, **style) if cell else "" for cell in cells]


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
