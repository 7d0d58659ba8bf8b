"""What a condition over indices or data excludes is made harmless, and nothing else."""

from __future__ import annotations

import pytest

from gradspec.derive.complete import complete
from gradspec.ir.expr import show
from gradspec.ir.rule import Rule
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.stabilise.guards import with_guards
from gradspec.syntax.parse import parse


def _rule(text: str) -> Rule:
    parsed = parse(Source("rules.grad", text))
    assert parsed.value is not None
    found = lower(parsed.value, {})
    assert found.value is not None, found.diagnostics
    return complete(found.value.rules[0]).value


@pytest.mark.parametrize(
    ("header", "written", "harmless"),
    [
        (
            "f(x[..., n], keep[..., n]: bool) -> y",
            "sum(exp(x[j]) for j if keep[j])",
            "sum(exp(x[j] if keep[j] else -inf) for j if keep[j])",
        ),
        (
            "f(x[..., n]) -> y",
            "sum(sqrt(x[j]) for j if x[j] > 0)",
            "sum(sqrt(x[j] if x[j] > 0 else 1) for j if x[j] > 0)",
        ),
        (
            "f(x[..., n]) -> y",
            "sum(1 / x[j + 1] for j if j + 1 < n)",
            "sum(1 / (x[j + 1] if j + 1 < n else 1) for j in n if j + 1 < n)",
        ),
        (
            "f(x[..., n]) -> y",
            "sum(exp(x[j]) for j) if max(x[j] for j) < 1 else 0",
            "sum(exp(x[j]) for j) if max(x[j] for j) < 1 else 0",
        ),
        (
            "f(x[..., n], keep[..., n]: bool) -> y",
            "sum(x[j]**2 * tanh(x[j]) for j if keep[j])",
            "sum(x[j]**2 * tanh(x[j]) for j if keep[j])",
        ),
    ],
)
def test_a_forward(header: str, written: str, harmless: str) -> None:
    rule = _rule(f"rule {header}:\n    y = {written}\n")
    assert show(with_guards(rule).forward[0].value) == harmless


def test_a_quotient_of_a_row_that_may_be_empty() -> None:
    rule = _rule(
        """\
rule f(x[..., n], keep[..., n]: bool) -> y[..., n]:
    s = sum(x[j]**2 for j if keep[j])
    y[i] = x[i] / s if keep[i] else 0
"""
    )
    done = with_guards(rule)
    assert show(done.forward[1].value) == (
        "x[i] / (s if keep[i] else 1) if keep[i] else 0"
    )
    assert done.forward[0] == rule.forward[0]


def test_without_conditions_nothing_is_looked_at() -> None:
    rule = _rule("rule f(x[..., n]) -> y:\n    y = log(sum(exp(x[j]) for j))\n")
    assert with_guards(rule) is rule
