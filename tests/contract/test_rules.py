"""Verdicts and findings of every rule, and values of NumPy's modules, are as pinned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract import verdicts
from tests.contract.comparing import changed
from tests.contract.files import CASES, CORPUS, EVERY, RANKED, SHIPPED, File
from tests.contract.tables import Row, differences, read, told

pytestmark = [pytest.mark.shared_cache, pytest.mark.timeout(600)]

GROUPS = {"shipped": (*SHIPPED, *CASES), "corpus": CORPUS, "ranked corpus": RANKED}
by_group = pytest.mark.parametrize(
    "files",
    [
        pytest.param(files, id=name, marks=pytest.mark.xdist_group(f"{name} rules"))
        for name, files in GROUPS.items()
    ],
)
"""Those who compile the shipped rules for their trials are of the first group, too."""


@by_group
def test_verdicts_and_findings(files: tuple[File, ...], tmp_path: Path) -> None:
    now = [
        row
        for file in files
        for row in verdicts.rows(file, file.placed(tmp_path), tmp_path / "out")
    ]
    found = differences("rules", *verdicts.alike(_pinned(files), now))
    assert not found, told(found)


def _pinned(files: tuple[File, ...]) -> list[Row]:
    """Rows of the rules that are tried; of those that a file has no more, too."""
    tried = {(f.name, rule) for f in files for rule in f.rules()}
    every = {(f.name, rule) for f in files for rule in f.rules(whole=True)}
    names = {file.name for file in files}
    return [
        row
        for row in read("rules")
        if row["file"] in names
        if (key := (row["file"], row["rule"])) in tried or key not in every
    ]


@pytest.mark.xdist_group("shipped rules")
def test_values_on_numpy(tmp_path: Path) -> None:
    """Those of the corpora are compared with independent ones in `tests/corpus`."""
    found = changed("numpy", GROUPS["shipped"], tmp_path)
    assert not found, told(found)


def test_no_file_is_pinned_that_is_no_more() -> None:
    names = {file.name for file in EVERY}
    for table in ("rules", "values", "names"):
        assert {row["file"] for row in read(table)} <= names, table
