"""The shortest text of a derived gradient: SymPy's where it is proved and shorter."""

from __future__ import annotations

import pytest

from gradspec.derive.shortest import as_written, shortest
from tests.derive.rules import completed


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "y = x * tanh(softplus(x))",
            "dy * (x * (1 - tanh(softplus(x))**2) * sigmoid(x) + tanh(softplus(x)))",
        ),
        ("y = tanh(x)", "dy * (1 - tanh(x)**2)"),
        (
            "y = x * tanh(exp(x))",
            "dy * (x * (1 - tanh(exp(x))**2) * exp(x) + tanh(exp(x)))",
        ),
        ("y = x**2", "2 * dy * x"),
        ("y = x * sigmoid(x)", "dy * (sigmoid(x) + x * sigmoid(x) * sigmoid(-x))"),
        ("y = max(x, 0)", "dy if x > 0 else 0.5 * dy if x == 0 else 0"),
    ],
)
def test_the_shown_form_is_short(body: str, text: str) -> None:
    rule = completed(f"rule f(x) -> y:\n    {body}\n")
    (entry,) = rule.backward
    assert entry.is_derived
    assert len(as_written(shortest(rule, "x", entry.value))) <= len(text)


def test_a_rule_beyond_the_limits_keeps_its_form() -> None:
    terms = " + ".join(f"tanh({k} * x)" for k in range(2, 40))
    rule = completed(f"rule f(x) -> y:\n    y = {terms}\n")
    (entry,) = rule.backward
    assert entry.is_derived
    assert shortest(rule, "x", entry.value) is entry.value
