"""Chosen forms against what is written, at many more points."""

from __future__ import annotations

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.referee import referee, worse_at
from tests.stabilise.rules import completed, stable

TEXT = (
    "rule f(t, a) -> y:\n    assume t > 0, t < 1e30\n    y = (a - 0.5) * log(t) - t\n"
)
WRITTEN, FAIR, POOR = (
    tidy(formula(text))
    for text in ("(a - 0.5) / t - 1", "(a - 0.5 - t) / t", "(a + (-0.5 - t)) / t")
)


def test_a_form_that_loses_more_where_terms_cancel_is_worse() -> None:
    rule = completed(TEXT)
    found = referee(rule, WRITTEN, POOR, "")
    assert found is not None and found.is_worse
    assert found.allows(FAIR) and not found.allows(POOR)
    assert referee(rule, WRITTEN, FAIR, "") is None


def test_the_points_are_those_at_which_it_loses_most() -> None:
    rule = completed(TEXT)
    points = worse_at(rule, WRITTEN, POOR, "")
    assert points is not None and points.core.any()
    assert min(abs(row["a"] - 0.5 - row["t"]) / row["t"] for row in points.rows) < 1e-2


def test_none_is_taken_that_is_worse() -> None:
    rule = stable(TEXT).rule
    form = closed.cotangents(rule)["dt"]
    assert referee(rule, times_dy(WRITTEN), form, "") is None, show(form)


def times_dy(expr: Expr) -> Expr:
    return tidy(formula(f"dy * ({show(expr)})"))


def test_a_difference_that_overflows_at_the_largest_numbers_is_worse() -> None:
    rule = completed(TEXT.replace(", t < 1e30", ""))
    found = referee(rule, WRITTEN, FAIR, "")
    assert found is not None and found.is_worse and not found.is_worse_near
