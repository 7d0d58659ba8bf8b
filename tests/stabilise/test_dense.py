"""Many points of a rule, also of one whose assumptions leave little room."""

from __future__ import annotations

import numpy as np

from gradspec.stabilise.dense import columns
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
