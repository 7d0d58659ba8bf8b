"""Forms that algebra finds at once, and float64 where many points show what is lost."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.directed import directed
from gradspec.stabilise.hard import hard
from tests.stabilise.rules import completed, stable, unary

QUADRATIC = """rule f(a, b, c) -> y:
    assume b * b >= 4 * a * c, a != 0
    y = (-b + sqrt(b * b - 4 * a * c)) / (2 * a)
"""


def unknown(_: Expr) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (
            "(-b + sqrt(b * b - a * c)) / a",
            "-c / (b + sqrt(b * b - a * c)) if b > 0"
            " else (-b + sqrt(b * b - a * c)) / a",
        ),
        (
            "x - sqrt(x * x + y)",
            "-y / (x + sqrt(x * x + y)) if x > 0 else x - sqrt(x * x + y)",
        ),
        (
            "l / sqrt((x + 1) / (x - 1) * (l * l + 2) - l * l)",
            "l / sqrt(2 * (1 + x + square(l)) / (x - 1))",
        ),
    ],
)
def test_found_at_once(text: str, form: str) -> None:
    found = [show(one) for one in directed(tidy(formula(text)), unknown)]
    assert form in found


def test_where_the_sign_is_known_there_is_no_conditional() -> None:
    (form,) = directed(tidy(formula("x - sqrt(x * x + y)")), lambda _: True)
    assert show(form) == "-y / (x + sqrt(x * x + y))"


def test_nothing_is_proposed_where_nothing_cancels() -> None:
    assert directed(tidy(formula("x + sqrt(x + y * z)")), unknown) == ()


def test_the_roots_of_a_quadratic_do_not_cancel() -> None:
    done = stable(QUADRATIC)
    assert "b > 0" in show(closed.outputs(done.rule)["y"])
    assert {"da", "db", "dc"} <= set(done.wide)  # b * b - 4 * a * c does, in any form


def test_hard_points_are_those_at_which_float32_loses_digits() -> None:
    rule = completed("rule f(a, b) -> y:\n    y = a * a / 2 - a * b\n")
    found = hard(rule, closed.cotangents(rule)["db"], "")
    assert found is None  # -a
    lost = hard(rule, tidy(formula("dy * (a - hypot(a, b))")), "")
    assert lost is not None
    assert all(a > 0 for a in lost.columns["a"])


def test_what_cancels_between_inputs_is_hard() -> None:
    """The gradient of a cross entropy is 0 in float32 where the label nearly hits."""
    text = "rule f(x, z) -> y:\n    y = log(1 + exp(x)) - x * z\n"
    assert stable(text).wide == ("dx",)
    lost = hard(completed(text), tidy(formula("dy * (sigmoid(x) - z)")), "")
    assert lost is not None


def test_the_zeros_of_a_gradient_of_one_input_are_hard() -> None:
    """Of many zeros none gets a series; float64 has the digits that float32 loses there."""
    rule = completed("rule f(x) -> y:\n    y = x * cos(x)\n")
    found = hard(rule, tidy(formula("dy * (cos(x) - x * sin(x))")), "")
    assert found is not None
    near = np.abs(
        np.cos(found.columns["x"]) - found.columns["x"] * np.sin(found.columns["x"])
    )
    assert (near < 0.3).all()
    assert stable(unary("x * cos(x)")).wide == ("dx",)


def test_a_gradient_that_cancels_at_few_points_is_computed_in_double() -> None:
    rule = "rule f(x, h) -> y:\n    y = erf(x + h) - erf(x)\n"
    assert "dx" in stable(rule).wide


def test_a_step_is_no_reason() -> None:
    rule = "rule f(a, b) -> y:\n    y = a if a * b > 1 else 2 * a\n"
    assert stable(rule).wide == ()


def test_what_is_good_stays() -> None:
    assert stable(unary("x * sigmoid(x)")).wide == ()
