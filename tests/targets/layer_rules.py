"""Rules with params, for the tests of the layers: those of the golden case."""

from __future__ import annotations

from pathlib import Path

LEARNED = (
    Path(__file__)
    .parents[1]
    .joinpath("cases", "learned", "input.grad")
    .read_text("utf-8")
)
