"""A gradient must have a value wherever its forward has one, at every size."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked

SMOOTHNESS = """
rule smoothness(x[n]) -> y[]:
    y = sum((x[i + 1] - x[i])**2 for i if i + 1 < n)
    before[i] = 2 * (x[i] - x[i - 1]) if i >= 1 else 0
    dx[i] = dy * (before[i] - (2 * (x[{next}] - x[i]) if {guard} else 0))
"""
FORGETFUL = {
    "an element too far": ("i + 2", "i + 1 < n"),
    "a border that one size forgets": ("i + 1", "i + 1 < n or n == 3"),
    "beyond the small sizes": ("i + 1", "i + 1 < n or n == 4"),
}


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_cotangent_that_lacks_an_element_is_refuted(name: str) -> None:
    next_, guard = FORGETFUL[name]
    outcome = checked(SMOOTHNESS.format(next=next_, guard=guard))
    assert [d.code for d in outcome.diagnostics] == ["GS420"]
    assert "dx of smoothness" in outcome.diagnostics[0].headline
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is Status.REFUTED


def test_the_right_guard_is_accepted() -> None:
    outcome = checked(SMOOTHNESS.format(next="i + 1", guard="i + 1 < n"))
    assert not outcome.diagnostics
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is Status.PROVED


def test_sizes_at_which_the_forward_lacks_an_element_are_nobodys() -> None:
    """A stencil that is longer than its axis has no value, nor has its gradient."""
    outcome = checked(
        """
        rule third(x[n]) -> y[]:
            y = x[2]**2
            dx[i] = 2 * x[2] * dy if i == 2 else 0
        """
    )
    assert not outcome.failed
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is not Status.REFUTED
