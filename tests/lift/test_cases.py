"""The verdict on every small case of `tests/lift/cases`, as `verdicts.tsv` has it."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from gradspec.lift.lifting import Finding, lift

FOLDER = Path(__file__).parent / "cases"
with (FOLDER / "verdicts.tsv").open() as table:
    ROWS = tuple(csv.DictReader(table, delimiter="\t"))


@cache
def _findings() -> dict[tuple[str, str], list[Finding]]:
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in lift([f"{FOLDER}"]).findings:
        found.setdefault((Path(one.file).name, one.name), []).append(one)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['file']}-{row['site']}")
def test_verdict(row: dict[str, str]) -> None:
    found = _findings()[row["file"], row["site"]]
    for one in found:
        assert one.verdict == row["verdict"], one.reason
        if row["kind"]:
            assert one.kind == row["kind"], one.reason


def test_each_site_is_listed_once() -> None:
    every = [one for some in _findings().values() for one in some]
    places = {(one.file, one.line) for one in every}
    assert len(places) == len(every)
    assert set(_findings()) == {(r["file"], r["site"]) for r in ROWS}
