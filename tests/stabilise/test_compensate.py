"""What rounding takes off an argument is put back, where it is worth it."""

from __future__ import annotations

import pytest

from gradspec.primitives.formula import formula
from gradspec.stabilise.compensate import compensated
from gradspec.stabilise.measure import GOOD, Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import DOUBLE, SINGLE, points
from tests.derive.rules import completed
from tests.stabilise.rules import stable, texts, unary


@pytest.mark.parametrize(
    ("rule", "y"),
    [
        ("rule f(a, b) -> y:\n    y = exp(a - b)\n", "exp_sum(a, -b)"),
        ("rule f(a, b) -> y:\n    y = exp(a * b)\n", "exp_product(a, b)"),
        ("rule f(a, b) -> y:\n    y = 1 / (1 + exp(b - a))\n", "sigmoid_sum(a, -b)"),
        ("rule f(a, b) -> y:\n    y = log(1 + exp(a * b))\n", "softplus_product(a, b)"),
        ("rule f(a, b) -> y:\n    y = -log(1 + exp(b - a))\n", "-softplus_sum(b, -a)"),
        (
            "rule f(u) -> y:\n    assume abs(u) < 1\n    p = u * 2 * pi\n"
            "    y = 3 * sin(p)\n",
            "3 * sinpi(u * 2)",
        ),
        (
            "rule f(u) -> y:\n    y = tan(pi * u)\n",
            "sinpi(u) / cospi(u if cospi(u) != 0 else 1)"
            " if cospi(u) != 0 else tan(pi * u)",
        ),
    ],
)
def test_a_rounded_argument_is_made_good(rule: str, y: str) -> None:
    assert texts(stable(rule).rule)["y"] == y


@pytest.mark.parametrize(
    "form", ["exp(2 * x)", "exp(-x)", "1 / (1 + exp(-0.5 * x))", "exp(x / 4)"]
)
def test_what_is_exact_is_left_alone(form: str) -> None:
    assert "_" not in texts(stable(unary(form)).rule)["y"]


def test_a_static_that_is_1_costs_nothing() -> None:
    rule = (
        "rule f(x, beta: static = 1.0) -> y:\n    y = log(1 + exp(beta * x)) / beta\n"
    )
    assert texts(stable(rule).rule)["y"] == "softplus(beta * x) / beta"


@pytest.mark.parametrize("grid", [SINGLE, DOUBLE], ids=["float32", "float64"])
def test_the_error_is_that_of_the_function_alone(grid: object) -> None:
    rule = completed("rule f(a, b) -> y:\n    y = 1 / (1 + exp(b - a))\n")
    sample = points(rule, grid)  # type: ignore[arg-type]
    work = sample.columns["a"].dtype.type
    trial = Trial(formula("sigmoid(a - b)"), sample, Machine(sample.columns, work))
    assert trial.score(formula("sigmoid(a - b)")).whole.worst > GOOD
    score = trial.score(formula("sigmoid_sum(a, -b)"))
    assert score.whole.worst <= 3
    assert score.whole.bad == 0


def test_places_are_tried_together_and_apart() -> None:
    found = [*compensated(formula("exp(a - b) + sigmoid(a * b)"))]
    assert found == [
        formula("exp_sum(a, -b) + sigmoid_product(a, b)"),
        formula("exp_sum(a, -b) + sigmoid(a * b)"),
        formula("exp(a - b) + sigmoid_product(a, b)"),
    ]
