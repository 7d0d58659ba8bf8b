"""Sums stay in the order in which they are written."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.written_order import as_written
from tests.stabilise.rules import stable

CONE = """rule cone(u, t, c) -> y:
    assume 2.328306437e-10 <= u, u <= 1, 2.328306437e-10 <= t, t <= 1, 0 <= c, c <= 1
    costheta = (1 - u) + u * c
    sintheta = sqrt(1 - costheta * costheta)
    phi = (t * 2) * pi
    y = cos(phi) * sintheta
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


@pytest.fixture(scope="module")
def slopes() -> dict[str, Expr]:
    return closed.cotangents(stable(CONE).rule)


@pytest.mark.parametrize(("slope", "sign"), [("du", 1), ("dc", -1)])
def test_a_gradient_keeps_what_the_author_s_order_keeps(
    slopes: dict[str, Expr], slope: str, sign: int
) -> None:
    """At ``u = 1`` the cosine is ``c`` alone. The first is in float32, the other is seen
    to where float64 is."""
    c = np.array([3.8e-17, 1.2e-25])
    at = {"u": np.ones(2), "t": np.full(2, 0.0625), "c": c, "dy": np.ones(2)}
    value = Machine(at, np.float64).run(slopes[slope])
    assert np.abs(value / (sign * np.cos(np.pi / 8) * c) - 1).max() < 1e-14
