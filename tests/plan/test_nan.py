"""NaN in, NaN out."""

from __future__ import annotations

import pytest

from gradspec.plan import nan
from gradspec.plan.array import Expr
from gradspec.plan.translate import Types, translate
from gradspec.primitives.formula import formula

TYPES = Types(frozenset({"k"}), frozenset(), frozenset())


def array(text: str) -> Expr:
    return translate(formula(text), TYPES)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x + 1", True),
        ("2 * x if x > 0 else x", True),
        ("x if x > 0 else 0", False),
        ("0 if x <= 0 else x", True),
        ("1 if x > 0 else 0", False),
        ("x if y > 0 else y", False),
        ("x if 0 < x and x < 1 else 2 * x", True),
        ("x if not (x > 0) else 0", True),
        ("x if x != 0 else 0", True),
        ("1 if k > 0 else x", False),
    ],
)
def test_keeps(text: str, kept: bool) -> None:
    assert nan.keeps(array(text), "x") is kept


def test_a_choice_is_turned_where_that_keeps_it() -> None:
    assert nan.turned(array("x if x > 0 else 0"), frozenset({"x"})) == array(
        "0 if x <= 0 else x"
    )
    assert nan.turned(array("1 if x > 0 else 0"), frozenset({"x"})) == array(
        "1 if x > 0 else 0"
    )


def test_a_step_passes_it_on() -> None:
    passed = nan.passed_on(array("1 if x > 0 else 0"), ("x",))
    assert nan.keeps(passed, "x")
    assert nan.passed_on(array("x + 1"), ("x",)) == array("x + 1")
