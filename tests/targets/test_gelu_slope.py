"""gelu under JAX's jit: one exponential and no kept quotient but the tail's for both passes,
digits about the zero of its slope, second derivatives at the seam."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from gradspec.primitives.coefficients_gelu import ZERO
from tests.targets.emission import imported

GELU = """
def normal_density(t) = exp(-t**2 / 2) / sqrt(2 * pi)

rule gelu(x) -> y:
    y = x * (1 + erf(x / sqrt(2))) / 2
    dx = dy * (ndtr(x) + x * normal_density(x))
"""

POINTS = 4_000


def _bell(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _slope(x: float) -> float:
    """About its zero by the slope there, which cancels nowhere: it is 2 - x**2 bells."""
    u = x + sum(ZERO)
    if abs(u) > 1e-5:
        return math.erfc(-x / math.sqrt(2)) / 2 + x * _bell(x)
    middle = x - u / 2
    return u * (2 - middle * middle) * _bell(middle)


def _places() -> Any:
    random = np.random.default_rng(7)
    wide = random.uniform(-12.0, 9.0, POINTS)
    near = -sum(ZERO) + random.choice([-1, 1], POINTS) * 2.0 ** random.uniform(
        -20.0, -1.0, POINTS
    )
    return np.concatenate([wide, near]).astype(np.float32)


@pytest.mark.jax
def test_gelu_in_jax() -> None:
    jax = pytest.importorskip("jax")
    rule = imported(compile_text(GELU, "jax"), "slope_of_gelu").gelu
    slope = jax.vmap(jax.grad(rule))
    x = _places()
    true = np.array([_slope(float(v)) for v in x])
    got = np.asarray(jax.jit(slope)(x), np.float64)
    steps = np.spacing(np.abs(true).astype(np.float32))
    assert np.max(np.abs(got - true) / steps) <= 5.5
    ends = np.array([-np.inf, np.inf], np.float32)
    assert list(slope(ends)) == [0.0, 1.0]
    program = jax.jit(lambda x: (rule(x), slope(x))).lower(x).compile().as_text()
    assert program.count(" exponential(") == 1
    second = jax.grad(jax.grad(rule))
    for at in (-3.0, -0.75, 0.0, 0.5, 2.0):
        curved = (2 - at * at) * _bell(at)
        assert second(np.float32(at)) == pytest.approx(curved, rel=2e-6)
