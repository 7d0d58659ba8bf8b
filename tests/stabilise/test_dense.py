"""Many points of a rule, also of one whose assumptions leave little room."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gradspec.primitives.formula import formula
from gradspec.stabilise.dense import columns
from gradspec.stabilise.model import Machine
from gradspec.stabilise.quick import QuickMachine
from tests.derive.rules import completed
from tests.stabilise.rules import stable

TURBINE = """rule turbine(v, w, r) -> y:
    assume -4.5 <= v, v <= -0.3, 0.4 <= w, w <= 0.9, 3.8 <= r, r <= 7.8
    y = 3 - 2 / (r * r) - 0.125 * (1 + 2 * v) * (w * w * r * r) / (1 - v) - 0.5
"""
BOUNDS = {"v": (-4.5, -0.3), "w": (0.4, 0.9), "r": (3.8, 7.8)}


def test_a_narrow_box_is_full_of_points() -> None:
    drawn, core = columns(completed(TURBINE))
    assert core.sum() > 4000
    for name, (low, high) in BOUNDS.items():
        shares = np.histogram(drawn[name], 4, (low, high))[0] / len(core)
        assert np.isclose(shares.sum(), 1), "all are inside"
        assert shares.min() > 0.1, "everywhere"


def test_a_gradient_that_cancels_somewhere_in_it_is_seen_to() -> None:
    """In float32 it is 0 at a point where it is -1.3e-9, and its terms are 0.07."""
    assert "dr" in stable(TURBINE).wide


CONE = """rule cone(x, z, u) -> y:
    y = x * cos(2 * pi * u) + z * sin(2 * pi * u)
"""


def test_so_is_one_with_an_angle_in_turns() -> None:
    assert "du" in stable(CONE).wide


def test_the_quick_machine_is_nearly_right() -> None:
    column = np.random.Generator(np.random.PCG64(5)).uniform(-9.0, 9.0, 300)
    columns_ = {"x": np.append(column, [0.5, 1.0, -2.5, 1e-30, 1e30, 1 - 2.0**-40])}
    for text in ("sinpi(x)", "cospi(x)"):
        quick = QuickMachine(columns_, np.float64).run(formula(text))
        exact = Machine(columns_, np.float64).run(formula(text))
        assert np.allclose(quick, exact, rtol=1e-15, atol=0.0)


@pytest.mark.parametrize(
    "text",
    [
        "rule f(x) -> y:\n    assume x > 1, x < 1e308\n    y = sqrt(x + 1) - sqrt(x)\n",
        "rule f(x) -> y:\n    assume x > 1, x < 1e308\n    y = cbrt(x + 1) - cbrt(x)\n",
        "rule f(p) -> y:\n    assume p >= -1.79e308, p <= 1.79e308\n"
        "    y = p + 1 - min(p, 0)**2 / (min(p, 0) - 1)\n",
    ],
)
def test_numbers_that_float32_has_not_make_no_noise(text: str) -> None:
    """What NumPy warns of is not for users of a compiler."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stable(text).rule.outputs
