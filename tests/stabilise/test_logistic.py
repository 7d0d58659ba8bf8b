"""A fraction in one exponential of a polynomial is the function it was made of."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gradspec.ir.expr import ONE, Apply, Const, Expr
from gradspec.ir.text import show
from gradspec.ir.walk import nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.stabilise.logistic import in_one_logistic
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable, texts, unary

W = "sqrt(2 / pi) * (x + 0.044715 * x**3)"
GELU = f"0.5 * x * (1 + tanh({W}))"
SLOPE = (
    f"0.5 * (1 + tanh({W})) + 2 * x * sigmoid(2 * {W}) * sigmoid(-2 * {W}) * sqrt(2 / pi)"
    f" * (1 + 0.134145 * x**2)"
)
POINTS = [Fraction(n, 16) for n in (-260, -200, -37, -12, -1, 0, 1, 15, 88, 259)]


def _close(one: Expr, other: Expr) -> None:
    points = [{"x": x} for x in POINTS]
    found, known = (nearest(form, points, "float64") for form in (one, other))
    for value, expected in zip(found, known, strict=True):
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-100)


@pytest.mark.parametrize(
    "text",
    [
        SLOPE,
        "sigmoid(x + x**3) + x * sigmoid(x + x**3) * sigmoid(-(x + x**3)) * (1 + 3 * x**2)",
        "3 * sigmoid(x + x**3) * sigmoid(-x - x**3)",
        "(1 - tanh(x**3)) * (1 + tanh(x**3)) / 5",
    ],
)
def test_it_is_the_same_function_with_one_exponential(text: str) -> None:
    given = formula(text)
    found = in_one_logistic(given, "x")
    assert found is not None, show(given)
    exponentials = [n for n in nodes(found) if isinstance(n, Apply) and n.op == "exp"]
    assert len(exponentials) == 1
    _close(found, given)


@pytest.mark.parametrize(
    "text",
    [
        "x * sigmoid(x + x**3)",  # grows with x
        "sigmoid(x + x**2)",  # not odd
        "sigmoid(x - x**3)",  # not one way
        "sigmoid(x + x**3) * sigmoid(x)",  # two logistics
        "sigmoid(x + x**3) * exp(x)",
        "sigmoid(2 * x) * sigmoid(-2 * x)",  # of x itself: `in_one_exponential`
        "square(1 + tanh(-x**3))",  # a number on the other side
        "x + 1",
    ],
)
def test_what_is_of_another_kind_is_left(text: str) -> None:
    assert in_one_logistic(formula(text), "x") is None


def test_the_gradient_of_gelu_by_tanh_has_one_exponential_in_float64() -> None:
    form = substitute(dict(stable(unary(GELU)).doubles)["dx"], {"dy": ONE})
    exponentials = [n for n in nodes(form) if isinstance(n, Apply) and n.op == "exp"]
    assert len(exponentials) == 1
    bounds = [n.value for n in nodes(form) if isinstance(n, Const)]
    assert Fraction(33, 2) in bounds  # exp(350) there
    _close(form, formula(SLOPE))


PAPER = """
def sigma(z) = 1 / (1 + exp(-z))

rule focal(x, k: static = 2.0) -> loss:
    assume k >= 0
    loss = -(1 - sigma(x))**k * log(sigma(x))
    dx = dloss * (1 - sigma(x))**k * (k * sigma(x) * log(sigma(x)) + sigma(x) - 1)
"""


def test_what_a_sum_with_a_logistic_is_less_than_one_is_its_complement() -> None:
    """The gradient keeps its factors: what is found otherwise has a power of ``1 - k``,
    and one exponential more.
    """
    form = texts(stable(PAPER).rule)["dx"]
    assert form.count("**") == 1 and "sigmoid(-x)**k" in form
    assert "exp(" not in form and "- 1)" not in form
