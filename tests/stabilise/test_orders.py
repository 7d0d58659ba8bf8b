"""Products whose partial products leave the range are put in another order."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import CheckedRule
from gradspec.primitives.lookup import formula
from tests.stabilise.rules import is_right, stable, texts


@pytest.mark.parametrize(
    ("forward", "given"),
    [
        ("a / (a * a + b * b)", {"a": 3e-200, "b": -2e-201}),
        ("a / (a * a + b * b)", {"a": 3e200, "b": -2e201}),
        ("(a - b) * (a + b) / (a * a + b * b)", {"a": 3e-180, "b": 2e-180}),
        ("a * b / ((a + b) * (a + b) * (a + b + 1))", {"a": 1e-180, "b": 2e-180}),
        ("a * b / ((a + b) * (a + b) * (a + b + 1))", {"a": 1e120, "b": 2e120}),
        ("(a + b + 1) / (a * b)", {"a": 1e200, "b": 2e200}),
    ],
)
def test_partial_products_stay_in_range(forward: str, given: dict[str, float]) -> None:
    assume = "    assume a > 0, b > 0\n" if min(given.values()) > 0 else ""
    found: CheckedRule = stable(f"rule f(a, b) -> y:\n{assume}    y = {forward}\n")
    (value,) = (let.value for let in found.rule.forward if let.name == "y")
    assert is_right(value, formula(forward), **given)


def test_what_cancels_is_gone() -> None:
    found = stable("rule f(a, b) -> y:\n    y = a / (b - a) * ((b - a) / (a * b))\n")
    assert texts(found.rule)["y"] == "1 / b"
