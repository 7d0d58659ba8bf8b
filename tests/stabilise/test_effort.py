"""The search is bounded by steps: no clock decides what is selected."""

from __future__ import annotations

import pytest

from gradspec.driver.cache import FileResult
from gradspec.driver.run import compile_source
from gradspec.ir.rule import Judged
from gradspec.options import Options
from gradspec.pipeline import stabilise_rule
from gradspec.source import Source
from gradspec.symbolic import limit
from tests.derive.rules import completed
from tests.stabilise.rules import unary


def _chain(length: int) -> str:
    lines = [f"a{i + 1} = a{i} * a{i} + sin(a{i})" for i in range(length)]
    return unary(f"a{length}", "a0 = x", *lines)


def _compiled(text: str, budget: float) -> FileResult:
    options = Options(("numpy",), budget=budget)
    return compile_source(Source("f.grad", text), "f.grad", options)[0]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (unary("1 - 1 / (1 + exp(x))"), set()),
        (_chain(2), set()),
        (_chain(16), {"GS463"}),
        (unary("tanh(514 * x) + 513"), set()),
    ],
)
def test_a_machine_thirty_times_slower_gives_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, text: str, codes: set[str]
) -> None:
    """The clock is a brake, and decides nothing."""
    found = _compiled(text, 10.0)
    monkeypatch.setattr(limit, "BRAKE", limit.BRAKE / 30)
    slow = _compiled(text, 10.0)
    assert [module.text for module in slow.modules] == [m.text for m in found.modules]
    assert slow.diagnostics == found.diagnostics
    assert {d.code for d in found.diagnostics} - {"GS441", "GS442", "GS443"} == codes


def test_the_budget_scales_the_steps() -> None:
    rule = Judged(completed(unary("1 - 1 / (1 + exp(x))")), ())
    _, (stopped,) = stabilise_rule(rule, Options(budget=0.02))
    assert stopped.code == "GS463"
    assert "more steps than a budget of 0.02 permits" in stopped.headline
    assert stabilise_rule(rule, Options(budget=2.0))[1] == ()
