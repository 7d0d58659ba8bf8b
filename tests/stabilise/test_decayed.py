"""Sums with ``expm1`` where that is nearly -1."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.decayed import decayed
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

POINTS = [{"x": x, "y": y} for x in (-60.0, -3.0, -0.5, 2.0) for y in (1.0, 0.25, 1e-9)]

TRANSFORM = """rule transform(c, x, y) -> z:
    z = c * log(1 + (exp(x) - 1) * y)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1 + y * expm1(x)",
            "1 - y + y * exp(x) if x < -1 else 1 + y * expm1(x)",
        ),
        (
            "log1p(y * expm1(x))",
            "log(1 - y + y * exp(x)) if x < -1 and y * expm1(x) < -0.5"
            " else log1p(y * expm1(x))",
        ),
    ],
)
def test_the_other_form_is_taken_where_it_keeps_digits(
    text: str, expected: str
) -> None:
    (form,) = decayed(formula(text))
    assert show(form) == expected
    columns = {n: np.array([point[n] for point in POINTS]) for n in ("x", "y")}
    value = Machine(columns, np.float64).run(form)
    truth = np.array(nearest(formula(text), POINTS, "float64"))
    assert np.abs(value / truth - 1).max() < 1e-14


@pytest.mark.parametrize(
    "text", ["1 + y * expm1(x)**2", "expm1(x) / y", "1 + y * exp(x)"]
)
def test_other_sums_stay(text: str) -> None:
    assert list(decayed(formula(text))) == []


def test_a_gradient_that_is_lost_at_few_points() -> None:
    """Where ``y`` is 1 exactly, which no point is on which forms compete."""
    slopes = closed.cotangents(stable(TRANSFORM).rule)
    at = {"c": np.array([0.5, 2.0]), "x": np.array([-50.25, -62.5])}
    machine = Machine(at | {"y": np.ones(2), "dz": np.ones(2)}, np.float64)
    assert machine.run(slopes["dc"]).tolist() == [-50.25, -62.5]
    assert machine.run(slopes["dx"]).tolist() == [0.5, 2.0]
