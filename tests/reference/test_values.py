"""The published reference cases of values and gradients alone, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.conftest import tutorial
from tests.targets.vjps import TARGETS, upstream_of

Numbers = tuple[list[float], ...]

CASES: dict[str, tuple[str, str, Numbers, Numbers, Numbers]] = {
    "R4": ("product", "product", ([2], [3]), ([6],), ([3], [2])),
    "R5": ("sign_step", "sign_step", ([3],), ([1],), ([0.0451766551],)),
    "R5, loss": ("sign_step", "sign_step_loss", ([3],), ([2],), ([0.0903533101],)),
    "R7": (
        *("elementwise_square", "elementwise_square", ([1, 2, 3],)),
        *(([1, 4, 9],), ([2, 4, 6],)),
    ),
    "R8": (
        *("complex_op", "complex_op", ([2], [3])),
        *(([6.9092974], [9]), ([2.5838532], [8])),
    ),
    "R9": ("piecewise", "piecewise", ([-1, 0, 1],), ([-1, 0, 2],), ([1, 1, 2],)),
}
"""File, rule, inputs, outputs, and gradients for cotangents of 1."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_published(name: str, target: str) -> None:
    framework, _, vjp = TARGETS[target]
    pytest.importorskip(framework)
    file, rule, inputs, outputs, gradients = CASES[name]
    given = tuple(np.squeeze(np.array(x, float)) for x in inputs)
    found, slopes = vjp(tutorial(file, target), rule, given)
    for one, other in zip(found, outputs, strict=True):
        np.testing.assert_allclose(one, np.squeeze(other), rtol=1e-6)
    for one, other in zip(slopes, gradients, strict=True):
        wanted = np.squeeze(other) * upstream_of(np.squeeze(other))
        np.testing.assert_allclose(one, wanted, rtol=1e-6)
