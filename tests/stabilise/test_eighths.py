"""The Gudermannian function and its inverse, forward and gradient."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import completed, stable, texts, unary


def test_the_inverse_has_the_secant_for_its_slope() -> None:
    found = texts(stable(unary("log(tan(pi / 4 + x / 2))")).rule)
    assert found["y"] == "asinh(tan(x))"
    assert found["dx"] == "dy / cos(x)"


def test_the_function_goes_through_the_hyperbolic_sine() -> None:
    checked = stable(unary("2 * atan(exp(x)) - pi / 2"))
    found = texts(checked.rule)
    assert found["y"] == "atan(sinh(x))"
    assert "sinh" not in found["dx"] and checked.wide == ()


@pytest.mark.parametrize("text", ["tan(pi / 4 + x / 2)", "tan(pi / 4 - x / 2)"])
def test_an_eighth_is_not_lost_beside_a_large_angle(text: str) -> None:
    rule = unary(text)
    meaning = closed.outputs(completed(rule))["y"]
    form = closed.outputs(stable(rule).rule)["y"]
    for x in (2.0**60, -(2.0**90), 1e-20, 3.0, -1.5):
        (true,) = nearest(meaning, [{"x": x}], "float64")
        found = Machine({"x": np.array([x])}, np.float64).run(form)[0]
        assert found == pytest.approx(true, rel=1e-13), x
