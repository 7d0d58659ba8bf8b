"""Statics on the other side of 0 and of 1 than their defaults.

A rule is examined with statics like their defaults. What is right there and nowhere else
is told, unless an assumption says that it is meant so.
"""

from __future__ import annotations

import pytest

from tests.checks.written import checked

MAGNITUDE = """
rule scaled(x, a: static = 1.0) -> y:
    y = abs(a * x)
    dx = dy * a * sign(x)
"""
SLOPE = """
rule leaky(x, slope: static = 0.01) -> y:
    y = max(x, slope * x)
    dx = dy * (1 if x > 0 else slope)
"""


def _told(text: str) -> list[tuple[str, str]]:
    outcome = checked(text)
    codes = [(d.code, d.help.split(",")[0]) for d in outcome.diagnostics]
    return [found for found in codes if found[0] == "GS445"]


@pytest.mark.parametrize(
    ("text", "condition"), [(MAGNITUDE, "a > 0"), (SLOPE, "slope < 1")]
)
def test_a_gradient_of_one_side_is_told_with_the_assumption(
    text: str, condition: str
) -> None:
    assert _told(text) == [("GS445", f"say `assume {condition}`")]


@pytest.mark.parametrize(
    ("text", "condition"), [(MAGNITUDE, "a > 0"), (SLOPE, "slope < 1, slope > 0")]
)
def test_the_assumption_silences_it(text: str, condition: str) -> None:
    header, rest = text.split(":\n", 1)
    assert _told(f"{header}:\n    assume {condition}\n{rest}") == []


def test_what_holds_for_every_static_is_not_mentioned() -> None:
    assert _told(MAGNITUDE.replace("a * sign(x)", "a * sign(a * x)")) == []
