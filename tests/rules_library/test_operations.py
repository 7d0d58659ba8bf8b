"""The page of operations is that of its table, and what it names as shipped is shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import operations
from gradspec.primitives.lookup import rows

RULES = Path(__file__).parents[2] / "rules"


def test_the_page_is_written_from_the_table() -> None:
    assert operations.PAGE.read_text("utf-8") == operations.page()


def test_what_is_said_to_be_shipped_is_shipped() -> None:
    texts = [path.read_text("utf-8") for path in RULES.rglob("*.grad")]
    shipped = {name for text in texts for name in re.findall(r"(?m)^rule (\w+)", text)}
    built_in = {row.name for row in rows()} | {"sum", "mean", "prod"}
    missing = [
        entry
        for entry in operations.entries()
        if (entry.said == "rule" and entry.how not in shipped)
        or (entry.said == "built-in" and entry.how not in built_in)
    ]
    assert missing == []


@pytest.mark.parametrize("way", operations.SAID)
def test_every_way_has_operations(way: str) -> None:
    assert any(entry.said == way for entry in operations.entries())
