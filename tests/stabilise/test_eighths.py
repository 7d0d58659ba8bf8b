"""The Gudermannian function and its inverse, forward and gradient."""

from __future__ import annotations

from tests.stabilise.rules import stable, texts, unary


def test_the_inverse_has_the_secant_for_its_slope() -> None:
    found = texts(stable(unary("log(tan(pi / 4 + x / 2))")).rule)
    assert found["y"] == "asinh(tan(x))"
    assert found["dx"] == "dy / cos(x)"


def test_the_function_goes_through_the_hyperbolic_sine() -> None:
    checked = stable(unary("2 * atan(exp(x)) - pi / 2"))
    found = texts(checked.rule)
    assert found["y"] == "atan(sinh(x))"
    assert "sinh" not in found["dx"] and checked.wide == ()
