"""Chosen forms against what is written, next to the largest numbers."""

from __future__ import annotations

import numpy as np

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.far_out import as_written_far_out, far_out
from gradspec.stabilise.model import Machine
from gradspec.stabilise.referee import referee
from tests.stabilise.rules import completed, stable

TEXT = """rule f(b, angle) -> y:
    assume angle > 0
    y = b * sqrt(angle / 180 * pi)
"""
WRITTEN, SOONER, FAIR = (
    tidy(formula(text))
    for text in (
        "b * sqrt(angle / 180 * pi)",
        "b * sqrt(angle * pi / 180)",
        "sqrt(angle / 180 * pi) * b",
    )
)


def test_what_overflows_sooner_is_worse() -> None:
    rule = completed(TEXT)
    found = far_out(rule, WRITTEN, SOONER, "")
    assert found is not None and found.is_worse(SOONER, WRITTEN)
    assert found.lost(SOONER) > 0 == found.lost(WRITTEN)
    sizes = [abs(row["angle"]) for row in found.points.rows]
    assert sum(size > 1e38 for size in sizes) >= 8, "pi times it is beyond the largest"
    judge = referee(rule, WRITTEN, SOONER, "")
    assert judge is not None and not judge.is_worse_near
    assert judge.allows(FAIR) and not judge.allows(SOONER)


def test_an_angle_that_overflows_is_worse_than_one_that_does_not() -> None:
    """Both are no numbers at infinity, where forms are bounded; one is none before."""
    rule = completed("rule f(x) -> y:\n    y = 2 * sin(x) * cos(x)\n")
    written, sooner = (tidy(formula(t)) for t in ("2 * sin(x) * cos(x)", "sin(x + x)"))
    found = far_out(rule, written, sooner, "")
    assert found is not None and found.is_worse(sooner, written)
    assert far_out(rule, sooner, sooner, "") is None


def test_of_equal_forms_none_is_worse() -> None:
    rule = completed(TEXT)
    assert far_out(rule, WRITTEN, FAIR, "") is None
    assert referee(rule, WRITTEN, FAIR, "") is None


def test_what_is_written_can_be_taken_there() -> None:
    rule = completed(TEXT)
    form = as_written_far_out(rule, SOONER, WRITTEN)
    judge = referee(rule, WRITTEN, SOONER, "")
    assert judge is not None and judge.allows(form)
    columns = {"b": np.float32([2, 2]), "angle": np.float32([60, 2e38])}
    value = Machine(columns).run(form)
    assert abs(value[0] - 2 * np.sqrt(np.pi / 3)) < 1e-6 and np.isfinite(value[1])


def test_gradients_are_not_lost_far_out() -> None:
    checked = stable(TEXT)
    rule = completed(TEXT)
    for name, written in closed.cotangents(rule).items():
        form = closed.cotangents(checked.rule)[name]
        found = far_out(rule, plain(written), form, "")
        if found is not None and name not in checked.wide:
            assert not found.is_worse(form, plain(written)), name


def plain(expr: Expr) -> Expr:
    return tidy(expr)
