"""Sums with what is nearly its argument."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.near_nought import near_nought
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

ANGLE = """rule angle(a, d) -> y:
    y = asin(sin(a) / d)
"""


@pytest.mark.parametrize("op", ["sin", "tan", "sinh", "tanh", "asin", "atan", "asinh"])
def test_what_it_differs_by_has_its_digits(op: str) -> None:
    text = f"b - 3 * {op}(a)"
    (form,) = near_nought(formula(text))
    points = [{"a": a, "b": 3 * a} for a in (2.0**-30, -(2.0**-12), 0.2, -0.6)]
    columns = {n: np.array([point[n] for point in points]) for n in ("a", "b")}
    truth = np.array(nearest(formula(text), points, "float64"))
    off = np.abs(Machine(columns, np.float64).run(form) / truth - 1)
    was = np.abs(Machine(columns, np.float64).run(formula(text)) / truth - 1)
    assert off.max() < 1e-13
    assert was[0] == 1.0  # nothing is left


@pytest.mark.parametrize(
    "text", ["1 - sin(a)", "b * sin(a)", "sin(a) - sin(b)", "b - cos(a)", "b / sin(a)"]
)
def test_what_stays(text: str) -> None:
    assert [show(form) for form in near_nought(formula(text))] == []


def test_a_gradient_at_equal_inputs() -> None:
    """``cos(a) / sqrt((d - sin(a)) * (d + sin(a)))`` at ``d = a``, where it is ``sqrt(3) / a**2``."""
    slopes = closed.cotangents(stable(ANGLE).rule)
    columns = {n: np.array([2.0**-30, 2.0**-12, 0.5]) for n in ("a", "d")}
    machine = Machine(columns | {"dy": np.ones(3)}, np.float64)
    points = [{"a": v, "d": v} for v in columns["a"].tolist()]
    exact = "cos(a) / sqrt((d - sin(a)) * (d + sin(a)))"
    truth = np.array(nearest(formula(exact), points, "float64"))
    assert np.abs(machine.run(slopes["da"]) / truth - 1).max() < 1e-12
