"""Series about removable singularities: the function itself, within a window."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from gradspec.primitives.lookup import formula
from gradspec.stabilise.series import polynomial_about
from gradspec.symbolic.enclose import enclose
from tests.stabilise.rules import stable, texts, unary

REMOVABLE = [
    "expm1(x) / x",
    "exp(x) / x - expm1(x) / x / x",
    "(1 - cos(x)) / square(x)",
    "(x - sin(x)) / x**3",
    "1 / expm1(x) - 1 / x",
    "x - tanh(x)",
]


@pytest.mark.parametrize("text", REMOVABLE)
def test_the_polynomial_is_the_function(text: str) -> None:
    window, random = Fraction(1, 4), Random(1)
    found = polynomial_about(formula(text), "x", Fraction(0), window)
    assert found is not None
    condition, series = found
    for _ in range(40):
        x = Fraction(random.randint(1, 2**20), 2**22) * random.choice((1, -1))
        assert enclose(condition, {"x": x}) is (abs(x) < window)
        if abs(x) < window:
            gap = enclose(series, {"x": x}, 400) / enclose(formula(text), {"x": x}, 400)
            assert abs(gap - 1) < 2.0**-50


@pytest.mark.parametrize("text", ["1 / x", "log(x)", "abs(x)", "1 / (0.2 - x)"])
def test_there_is_no_series_where_the_function_is_not_analytic(text: str) -> None:
    window = Fraction(1, 4)
    assert polynomial_about(formula(text), "x", Fraction(0), window) is None


@pytest.mark.parametrize(
    "form", ["expm1(x) / x", "x - tanh(x)", "log(x) / (x - 1) if x > 0 else 0"]
)
def test_a_series_is_taken_where_nothing_else_is_good(form: str) -> None:
    assert "polynomial" in texts(stable(unary(form)).rule)["y"]


@pytest.mark.parametrize("form", ["x * sigmoid(x)", "x * ndtr(x)", "tanh(x)"])
def test_no_series_beside_the_zero_of_a_gradient(form: str) -> None:
    assert "polynomial" not in texts(stable(unary(form)).rule)["dx"]


@pytest.mark.parametrize(
    "forward",
    [
        "x * (cos(z) / z - sin(z) / (z * z))",
        "cosh(x) * (z - sin(z))",
        "cos(x * z) / (x * z) - sin(x * z) / (x * z) / (x * z)",
        "z / x * exp(-x * z) - (1 - exp(-x * z)) / x / x",
    ],
)
def test_a_function_of_one_input_may_be_a_factor(forward: str) -> None:
    found = stable(f"rule f(x, z) -> y:\n    y = {forward}\n")
    assert "polynomial" in texts(found.rule)["y"]


def test_no_series_is_taken_for_a_few_points_far_out() -> None:
    text = """
        rule f(x, p, q, b) -> y:
            u = b * (p - q) * x
            y = x * (p * sigmoid(u) + q * sigmoid(-u))
            dp = dy * x * (sigmoid(u) * (1 + u * sigmoid(-u)))
    """
    found = texts(stable(text).rule)["dp"]
    assert "vanishing" in found and "polynomial" not in found
