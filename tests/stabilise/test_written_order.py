"""Sums stay in the order in which they are written."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.written_order import as_written
from tests.stabilise.rules import stable

CONE = """rule cone(u, c) -> y:
    assume 2.328306437e-10 <= u, u <= 1, 0 <= c, c <= 1
    costheta = (1 - u) + u * c
    y = sqrt(1 - costheta * costheta)
"""


@pytest.mark.parametrize(
    ("form", "written", "expected"),
    [
        ("1 + u * c - u", "(1 - u) + u * c", "1 - u + u * c"),
        ("x * (c + b + a)", "exp(a + b + c)", "x * (a + b + c)"),
        ("a - b + c", "a + b + c", "a - b + c"),
        ("b + a", "a + b", "b + a"),
        ("c + b + a + d", "a + b + c", "a + b + c + d"),
        ("b - a + 1 if b > 1 else 1 - a + b", "1 - (a - b)", "1 - (a - b)"),
    ],
)
def test_a_sum_that_is_written_in_another_order(
    form: str, written: str, expected: str
) -> None:
    assert show(as_written(formula(form), formula(written))) == expected


def test_a_gradient_keeps_what_the_author_s_order_keeps() -> None:
    """At ``u = 1`` the cosine is ``c`` alone."""
    slopes = closed.cotangents(stable(CONE).rule)
    c = np.array([3.8e-17, 1.2e-25])
    machine = Machine({"u": np.ones(2), "c": c, "dy": np.ones(2)}, np.float64)
    assert np.abs(machine.run(slopes["du"]) / c - 1).max() < 1e-14
    assert np.abs(machine.run(slopes["dc"]) / -c - 1).max() < 1e-14
