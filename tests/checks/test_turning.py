"""Thresholds that are off by a hair are refuted, on whatever side of whatever function."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import status

RULE = """
    rule f(x, t: nograd, n: static int = 0) -> y:
        assume t > 0
        y = {forward}
        dx = {declared}
    """

WRONG = {
    "a clamp": ("clip(x, -1, 1) * t", "dy * t if abs(x + 1e-6) < 1 else 0"),
    "a far threshold": (
        "x * t if x < 100 else 100 * t",
        "dy * t if x < 100.00001 else 0",
    ),
    "a jump inside a step": (
        "x * round(x * t)",
        "dy * round(x * t + 1e-6)",
    ),
    "inside a logarithm": (
        "x * round(log(t))",
        "dy * round(log(t + 1e-6))",
    ),
    "both sides of a sum": (
        "max(x + t, abs(x) * 2)",
        "dy if x + t > abs(x) * 2 + 1e-7 else 2 * sign(x) * dy",
    ),
    "a static that is 0 by default": (
        "x if round(x) + n <= 100 else 0",
        "dy if round(x) - n <= 100 else 0",
    ),
}
RIGHT = {
    "by another form": ("max(x, t)", "dy * (1 + sign(x - t)) / 2"),
    "a clamp by its distance": (
        "clip(x, -1, 1) * t",
        "dy * t if (x - 1) * (x + 1) < 0 else 0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_moved_threshold_is_refuted(name: str) -> None:
    forward, declared = WRONG[name]
    assert status(RULE.format(forward=forward, declared=declared)) is Status.REFUTED


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_threshold_in_other_words_is_not(name: str) -> None:
    forward, declared = RIGHT[name]
    assert status(RULE.format(forward=forward, declared=declared)) is not Status.REFUTED
