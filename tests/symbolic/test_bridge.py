"""Derivatives by SymPy."""

from __future__ import annotations

import pytest

from gradspec.primitives.lookup import formula
from gradspec.symbolic.compare import Relation, compare
from gradspec.symbolic.consult import derivative


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        ("sqrt(x**2)", "sign(x)"),
        ("x**2.5 * 3**x", "2.5 * x**1.5 * 3**x + x**2.5 * 3**x * log(3)"),
        ("lgamma(1e300) * x", "lgamma(1e300)"),
        ("sinc(x)", "cos(pi * x) / x - sin(pi * x) / (pi * x**2)"),
        ("i1(x)", "i0(x) - i1(x) / x"),
    ],
)
def test_sympy_differentiates(text: str, slope: str) -> None:
    found = derivative(formula(text), "x")
    assert found is not None
    seen = compare(found, formula(slope), {"x": 0.7, "y": 1.3})
    assert seen.relation is Relation.EQUAL


@pytest.mark.parametrize("text", ["x if x > 0 else 0", "max(x, y)", "floor(x)"])
def test_conditionals_and_steps_have_no_form_there(text: str) -> None:
    assert derivative(formula(text), "x") is None
