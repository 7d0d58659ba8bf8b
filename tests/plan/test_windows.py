"""Windows: what lies outside of an input is 0, and is divided by nothing."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.calling import by_target, called, cotangent
from tests.targets.emission import module_of

RULES = """
rule wnorm(x[n], w[k]: nograd, m: static int) -> y[m]:
    y[i] = sqrt(sum(x[i + j]**2 * w[j] for j))

rule wmax(x[n], w[k], m: static int) -> y[m]:
    y[i] = max(x[i + j] + w[j] for j)

rule wlog(x[n], w[k], m: static int) -> y[m]:
    y[i] = sum(w[j] * log(x[i + j]) for j)
"""
VALUES = {
    "wnorm": lambda part, w: np.sqrt((part**2 * w).sum()),
    "wmax": lambda part, w: (part + w).max(),
    "wlog": lambda part, w: (w * np.log(part)).sum(),
}


@by_target
@pytest.mark.parametrize("name", VALUES)
def test_gradients_of_windows_are_differences(name: str, target: str) -> None:
    x, w = np.array([0.7, 1.9, 0.4, 2.5, 1.1]), np.array([0.3, 0.8, 0.5])

    def rule(x: np.ndarray) -> np.ndarray:
        return np.array([VALUES[name](x[i : i + 3], w) for i in range(3)])

    module = module_of(RULES, target)
    names = [name, f"{name}_vjp"] if target == "numpy" else [name]
    sized = SimpleNamespace(**{n: partial(getattr(module, n), m=3) for n in names})
    (y,), (dx, *_) = called(target, sized, name, (x, w))
    np.testing.assert_allclose(y, rule(x), rtol=1e-12)
    assert dx is not None
    steps = 1e-6 * np.eye(5)
    slopes = [(rule(x + s) - rule(x - s)) @ cotangent(y) / 2e-6 for s in steps]
    np.testing.assert_allclose(dx, slopes, atol=1e-8)
