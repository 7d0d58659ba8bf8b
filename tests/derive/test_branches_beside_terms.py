"""A conditional is one term among others: what stands beside it adds up."""

from __future__ import annotations

import pytest

from gradspec.derive.complete import complete
from gradspec.ir.rule import Derived
from gradspec.ir.text import show
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse


@pytest.mark.parametrize(
    ("value", "derivative"),
    [
        ("(x if b > 0 else 0) + x", "dy * ((1 if b > 0 else 0) + 1)"),
        ("x + (x if b > 0 else 0)", "dy * (1 + (1 if b > 0 else 0))"),
        ("(x if b > 0 else 0) * x", "2 * dy * x if b > 0 else 0"),
    ],
)
def test_an_input_that_is_a_branch_and_stands_beside_it(
    value: str, derivative: str
) -> None:
    source = Source("rules.grad", f"rule f(b: nograd, x) -> y:\n    y = {value}\n")
    module = parse(source).value
    assert module is not None
    lowered = lower(module, {}).value
    assert lowered is not None
    rule = complete(lowered.rules[0]).value
    assert rule is not None
    found = rule.backward[1]
    assert isinstance(found, Derived)
    assert show(found.value) == derivative
