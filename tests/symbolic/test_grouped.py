"""Polynomials by the powers of one input."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.symbolic.grouped import grouped
from gradspec.symbolic.truth import nearest


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (
            "0.5 + (square(z) - square(x)) / (2 * square(y))",
            (
                "0.5 * ((z - x) * (z + x) + square(y)) / square(y)",
                "0.5 * (-((x - y) * (x + y)) + square(z)) / square(y)",
            ),
        ),
        (
            "a * (a * a + b * b) + 2 * a - 3 * a * a",
            ("a * ((a - 2) * (a - 1) + square(b))",),
        ),
        ("1 / (x + y) - 1 / x", ()),
        ("log(x) * y", ()),
    ],
)
def test_coefficients_are_factored(text: str, forms: tuple[str, ...]) -> None:
    found = {show(form) for form in grouped(tidy(formula(text)))}
    assert found == set(forms)


def test_the_square_of_a_difference_stays_one() -> None:
    form = formula("a * a + b * b - 2 * a * b + 4 * a * b * s")
    assert "square(a - b) + 4 * a * b * s" in map(show, grouped(form))


@pytest.mark.parametrize("text", ["square(y) - square(x) + square(z)"])
def test_what_is_left_where_the_rest_is_0_is_kept(text: str) -> None:
    point = {"x": 9208302.0, "y": 9208302.0, "z": 9.154987e-06}
    column = {name: np.array([value]) for name, value in point.items()}
    (true,) = nearest(formula(text), [point], "float64")
    values = [Machine(column, np.float64).run(f)[0] for f in grouped(formula(text))]
    assert any(value == pytest.approx(true, rel=1e-15) for value in values)
