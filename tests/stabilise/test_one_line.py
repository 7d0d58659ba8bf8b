"""What is left of 1 beside a square, over one line."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.one_line import over_one_line
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

LATITUDE = """rule latitude(s, e, o) -> y:
    y = asin(s / sqrt(o * o + e * (s * s)))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqrt((1 - a / b) * (1 + a / b))", "sqrt((b - a) * (a + b) / square(b))"),
        ("(1 + a / b) * (1 - a / b)", "(b - a) * (a + b) / square(b)"),
        ("1 - a * a / (b * b)", "(b - a) * (a + b) / square(b)"),
        ("(1 - a) * (1 + a)", None),
        ("(1 - a / b) * (1 + b / a)", "(b - a) / b * (1 + b / a)"),
        ("(2 - a / b) * (2 + a / b)", None),
        ("1 - 2 / 3", None),
    ],
)
def test_what_is_written_over_one_line(text: str, expected: str | None) -> None:
    found = [show(form) for form in over_one_line(formula(text))]
    assert found[-1:] == [*filter(None, [expected])]


def test_polynomials_are_by_the_powers_of_an_input() -> None:
    text = "(1 - s / sqrt(o * o + e * (s * s))) * (1 + s / sqrt(o * o + e * (s * s)))"
    found = {show(form) for form in over_one_line(formula(text))}
    assert "(square(o) + (e - 1) * square(s)) / (square(o) + square(s) * e)" in found


def test_a_gradient_in_which_nothing_is_left_of_one() -> None:
    """``o**2 / ((o**2 + e * s**2) * sqrt(o**2 + (e - 1) * s**2))``: at ``e = 1`` what is under
    the root is ``o**2``, at ``s = o`` it is ``e * s**2``."""
    slopes = closed.cotangents(stable(LATITUDE).rule)
    points = [
        {"s": 1.0, "e": 1.0, "o": 2.0**-70},
        {"s": -3.0, "e": 1.0, "o": 2.0**-30},
        {"s": 0.75, "e": 2.0**-90, "o": 0.75},
        {"s": -2.0, "e": 2.0**-60, "o": 2.0},
    ]
    columns = {n: np.array([point[n] for point in points]) for n in ("s", "e", "o")}
    machine = Machine(columns | {"dy": np.ones(len(points))}, np.float64)
    exact = {
        "ds": "o * o / ((o * o + e * s * s) * sqrt((o - s) * (o + s) + e * s * s))",
        "do": "-o * s / ((o * o + e * s * s) * sqrt((o - s) * (o + s) + e * s * s))",
    }
    for name, text in exact.items():
        truth = np.array(nearest(formula(text), points, "float64"))
        assert np.abs(machine.run(slopes[name]) / truth - 1).max() < 1e-14, name
