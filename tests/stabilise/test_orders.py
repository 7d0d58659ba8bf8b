"""Products whose partial products leave the range are put in another order."""

from __future__ import annotations

import pytest

from gradspec.ir.expr import show
from gradspec.ir.rule import Chosen
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
        ("sin(a) * sinh(b)", {"a": 0.0, "b": 1e200}),
        ("a * exp(-b) + b", {"a": 0.0, "b": -1e200}),
    ],
)
def test_partial_products_stay_in_range(forward: str, given: dict[str, float]) -> None:
    assume = "    assume a > 0, b > 0\n" if min(given.values()) > 0 else ""
    found: Chosen = stable(f"rule f(a, b) -> y:\n{assume}    y = {forward}\n")
    (value,) = (let.value for let in found.rule.forward if let.name == "y")
    assert is_right(value, formula(forward), **given)


def test_the_order_is_kept_where_divisors_are_1_at_a_tip() -> None:
    text = """
        rule f(a, b, c) -> y:
            y = acos(c / sqrt(a * a + b * b + c * c))
    """
    entry = stable(text).rule.backward[0]
    assert entry.is_derived
    assert "hypot(a, b) == 0 else" in show(entry.value)
    meaning = formula("a * c / (sqrt(a * a + b * b) * (a * a + b * b + c * c))")
    assert is_right(entry.value, meaning, a=-8e250, b=2e246, c=9e280, dy=1.0)


def test_what_cancels_is_gone() -> None:
    found = stable("rule f(a, b) -> y:\n    y = a / (b - a) * ((b - a) / (a * b))\n")
    assert texts(found.rule)["y"] == "1 / b"
