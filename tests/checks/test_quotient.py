"""Where no derivative is known a declared cotangent is held to difference quotients."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec.checks.cotangents import judge
from gradspec.checks.subject import subject
from gradspec.ir.rule import Status
from tests.checks.written import written


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("dy * (1 - tanh(x)**2)", Status.AGREES),
        ("dy * (1 - tanh(x)**2) * 1.000001", Status.REFUTED),
        ("dy * (1 + tanh(x)**2)", Status.REFUTED),
    ],
)
def test_difference_quotients_judge_what_cannot_be_derived(
    declared: str, expected: Status
) -> None:
    rule = written(f"rule f(x) -> y:\n    y = tanh(x)\n    dx = {declared}")
    underivable = replace(subject(rule), derived={})
    (judgement,) = judge(underivable, 1.0)
    assert judgement.verdict.status is expected
    assert bool(judgement.found) == (expected is Status.REFUTED)
