"""Sums with an exponential that is nearly 1."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.near_one import near_one
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

POINTS = [
    {"w": 1e-17, "x": 1e-17},
    {"w": -3e-13, "x": -3e-13},
    {"w": 0.25, "x": 0.25},
    {"w": 3.0, "x": 0.5},
    {"w": -40.0, "x": 1e-9},
]

NEWTON = """rule newton(w, x) -> y:
    y = w - (w * exp(w) - x) / (exp(w) + w * exp(w))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "w - x / exp(w)",
            "w - x - x * expm1(-w) if abs(w) < 0.5 else w - x / exp(w)",
        ),
        (
            "x * exp(w) - w",
            "x - w + x * expm1(w) if abs(w) < 0.5 else x * exp(w) - w",
        ),
    ],
)
def test_the_other_form_is_taken_where_it_keeps_digits(
    text: str, expected: str
) -> None:
    (form,) = near_one(formula(text))
    assert show(form) == expected
    columns = {n: np.array([point[n] for point in POINTS]) for n in ("w", "x")}
    value = Machine(columns, np.float64).run(form)
    truth = np.array(nearest(formula(text), POINTS, "float64"))
    assert np.abs(value / truth - 1).max() < 1e-14


@pytest.mark.parametrize(
    "text", ["exp(w) / x", "x - exp(w) * exp(x)", "exp(x) - exp(w)", "x - expm1(w)"]
)
def test_other_sums_stay(text: str) -> None:
    assert list(near_one(formula(text))) == []


def test_a_gradient_that_is_lost_where_two_inputs_are_equal() -> None:
    """``(w + 2) * (w - x / exp(w)) / (1 + w)**2`` is 2 w**2 there."""
    slopes = closed.cotangents(stable(NEWTON).rule)
    w = np.array([1e-17, 8.25e-15, -3e-13])
    machine = Machine({"w": w, "x": w, "dy": np.ones(3)}, np.float64)
    assert np.abs(machine.run(slopes["dw"]) / (2 * w * w) - 1).max() < 1e-11
