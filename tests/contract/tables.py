"""Tables of the contract as files, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
Row = dict[str, str]

COLUMNS = {
    "rules": ("file", "rule", "verdicts", "codes"),
    "values": (
        *("file", "rule", "call", "statics", "inputs"),
        *("upstream", "outputs", "gradients"),
    ),
    "names": ("file", "name", "numpy", "torch", "tf", "jax"),
    "cells": (
        *("target", "feature", "exact", "result", "surrogate", "nonlinear"),
        *("pair", "static", "integer", "axis"),
    ),
}
KEYS = {"rules": 2, "values": 3, "names": 2, "cells": 2}
"""Columns, the first ones, that name a row."""


def path(table: str, folder: Path = HERE) -> Path:
    """Where a table stands."""
    return folder / f"{table}.tsv"


def read(table: str, folder: Path = HERE) -> list[Row]:
    """A table as it is pinned."""
    lines = path(table, folder).read_text("utf-8").splitlines()
    head = lines[0].split("\t")
    assert head == list(COLUMNS[table]), head
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def write(table: str, rows: Iterable[Row]) -> None:
    """Pin a table anew."""
    columns = COLUMNS[table]
    lines = ["\t".join(columns)]
    lines += ["\t".join(row[column] for column in columns) for row in rows]
    path(table).write_text("\n".join(lines) + "\n", "utf-8")


def differences(table: str, was: Iterable[Row], now: Iterable[Row]) -> list[str]:
    """A line for each cell that is another, and for each row that only one of the two
    has. Columns that a row of ``now`` lacks are not compared.
    """
    old, new = _by_key(table, was), _by_key(table, now)
    found = []
    for key in dict.fromkeys([*old, *new]):
        if key not in new or key not in old:
            what = "is pinned and is no more" if key in old else "is not pinned"
            found.append(f"{' '.join(key)}: {what}")
            continue
        found += [
            f"{' '.join(key)}: {c}: was {old[key][c]!r}, is {new[key][c]!r}"
            for c in COLUMNS[table]
            if c in new[key] and old[key][c] != new[key][c]
        ]
    return found


def told(found: list[str]) -> str:
    """What a failing test says."""
    cure = "If this is meant: python -m tests.contract.pin, and look at the diff."
    return "\n".join(["", *found, cure])


def _by_key(table: str, rows: Iterable[Row]) -> dict[tuple[str, ...], Row]:
    names = COLUMNS[table][: KEYS[table]]
    return {tuple(row[name] for name in names): row for row in rows}
