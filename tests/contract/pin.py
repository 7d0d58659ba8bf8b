"""Write the tables of the contract anew: `python -m tests.contract.pin [TABLE...]`.

Without a table, all of them (some six minutes of one core). A change of a table is a change of what
users see: its diff is to be read, and told in the change log.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.contract import cells, names, references, tables, verdicts
from tests.contract.files import CASES, EVERY, SHIPPED, module
from tests.contract.tables import Row

TARGETS = cells.TARGETS


def _rules(folder: Path) -> Iterator[Row]:
    for file in EVERY:
        yield from verdicts.rows(file, file.path, folder)


def _values(_: Path) -> Iterator[Row]:
    for file in (*SHIPPED, *CASES):
        yield from references.rows(file)


def _names(_: Path) -> Iterator[Row]:
    for file in (*SHIPPED, *CASES):
        found = {t: names.names(module(file, file.path, t)) for t in TARGETS}
        for name in dict.fromkeys(n for some in found.values() for n in some):
            yield names.row(file.name, name, found)


def _cells(_: Path) -> Iterator[Row]:
    yield from cells.measured()


WRITERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "rules": _rules,
    "values": _values,
    "names": _names,
    "cells": _cells,
}


def main(*chosen: str) -> None:
    """Write the tables that are named, or all."""
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        os.environ["GRADSPEC_CACHE_DIR"] = str(Path(folder) / "cache")
        for table in chosen or WRITERS:
            tables.write(table, WRITERS[table](Path(folder)))
            print(tables.path(table), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
