"""Where no derivative is known a declared cotangent is held to difference quotients."""

from __future__ import annotations

import pytest

from gradspec.checks.instances import Instance
from gradspec.ir.rule import Status
from tests.checks.written import checked


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("dy * (1 - tanh(x)**2)", Status.AGREES),
        ("dy * (1 - tanh(x)**2) * 1.000001", Status.REFUTED),
        ("dy * (1 + tanh(x)**2)", Status.REFUTED),
    ],
)
def test_difference_quotients_judge_what_cannot_be_derived(
    declared: str, expected: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Instance, "derived", {})
    for text in (
        f"rule f(x) -> y:\n    y = tanh(x)\n    dx = {declared}",
        "rule f(x[n]) -> y[n]:\n    y[i] = tanh(x[i])\n    dx[i] = "
        + declared.replace("dy", "dy[i]").replace("(x)", "(x[i])"),
    ):
        outcome = checked(text)
        assert outcome.value is not None
        (verdict,) = outcome.value.verdicts
        assert (verdict.status, verdict.method) == (expected, "difference quotient")
        assert outcome.failed == (expected is Status.REFUTED)
