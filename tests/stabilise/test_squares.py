"""Differences of squares among more terms."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.squares import with_squares_apart
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

WAVE = """rule wave(f, l) -> y:
    y = pi * l - 1 / (f * f) * tan(pi * l)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * a - 1 - t", "(a - 1) * (a + 1) - t"),
        ("t + square(a) - square(b)", "(a - b) * (a + b) + t"),
        ("4 - t - 9 * square(a)", None),
        ("1 - (1 + t) / square(a)", "((a - 1) * (a + 1) - t) / square(a)"),
        ("a * a - 1", None),
        ("a * a - 2 - t", None),
        ("a * a + b * b + t", None),
        ("a * b - 1 - t", None),
    ],
)
def test_what_is_taken_apart(text: str, expected: str | None) -> None:
    assert [show(form) for form in with_squares_apart(formula(text))] == [
        *filter(None, [expected])
    ]


def test_what_is_left_beside_one_has_its_digits() -> None:
    text = "1 - (1 + t) / square(a)"
    points = [{"a": 1 + 2.0**-40, "t": 1e-14}, {"a": -1.0, "t": 1e-30}]
    (form,) = with_squares_apart(formula(text))
    columns = {n: np.array([point[n] for point in points]) for n in ("a", "t")}
    truth = np.array(nearest(formula(text), points, "float64"))
    assert np.abs(Machine(columns, np.float64).run(form) / truth - 1).max() < 1e-15
    assert (
        np.abs(Machine(columns, np.float64).run(formula(text)) / truth - 1).max() > 1e-4
    )


def test_a_gradient_that_is_lost_where_an_input_is_one() -> None:
    """``pi * ((f - 1) * (f + 1) - tan(pi * l)**2) / f**2``; of a large ``l`` whole turns
    are taken off exactly, too."""
    slopes = closed.cotangents(stable(WAVE).rule)
    points = [
        {"f": 1.0, "l": -3.8e-19},
        {"f": -1.0, "l": 2.0**-40},
        {"f": 0.5, "l": 2.0**40},
        {"f": 3.0, "l": 1000.25},
    ]
    columns = {n: np.array([point[n] for point in points]) for n in ("f", "l")}
    machine = Machine(columns | {"dy": np.ones(len(points))}, np.float64)
    exact = "pi * ((f - 1) * (f + 1) - square(sinpi(l) / cospi(l))) / square(f)"
    truth = np.array(nearest(formula(exact), points, "float64"))
    assert np.abs(machine.run(slopes["dl"]) / truth - 1).max() < 1e-14
