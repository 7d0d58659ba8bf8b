"""What once went wrong in TensorFlow modules."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = """
rule halves(x[..., n]) -> y[..., n]:
    h = floor(n / 2)
    y[i] = x[i + h] if i < h else x[i - h]

rule clipped(x, lo, hi) -> y:
    y = clip(x, lo, hi)

rule between(x) -> y:
    y = clip(x, -1, 1)

rule smooth(x, beta: static = 1.0) -> y:
    y = x**2 / (2*beta) if abs(x) < beta else abs(x) - beta / 2

rule focused(x, t: bool, g: static = 2.0) -> y:
    y = (1 / (1 + exp(x if t else -x)))**g
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


def _both(function: Any, *inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return y, tape.gradient(y, inputs)


@pytest.mark.parametrize("shape", [(None,), None, (5,)])
def test_positions_made_of_a_rounded_size(rules: ModuleType, shape: Any) -> None:
    spec = [tf.TensorSpec(shape, tf.float32)]
    for way in (rules.halves, tf.function(rules.halves, input_signature=spec)):
        y, (dx,) = _both(way, tf.constant([0.0, 1.0, 2.0, 3.0, 4.0]))
        assert y.numpy().tolist() == [2.0, 3.0, 0.0, 1.0, 2.0]
        assert dx.numpy().tolist() == [1.0, 1.0, 2.0, 1.0, 0.0]


def test_bounds_that_are_larger_than_what_they_bound(rules: ModuleType) -> None:
    x, lo, hi = tf.ones((3, 1)), tf.zeros((3, 2)), tf.constant([0.5, 2.0])
    for way in (rules.clipped, tf.function(rules.clipped, jit_compile=True)):
        y, (dx, dlo, dhi) = _both(way, x, lo, hi)
        assert y.numpy().tolist() == [[0.5, 1.0]] * 3
        assert dx.numpy().tolist() == [[1.0]] * 3
        assert not dlo.numpy().any() and dhi.numpy().tolist() == [3.0, 0.0]
    nan = tf.constant([np.nan, 3.0])
    assert np.isnan(rules.clipped(nan, 0.0, 1.0)[0]) and np.isnan(rules.between(nan)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quotient_by_a_static_in_a_branch_not_taken(
    rules: ModuleType, dtype: str
) -> None:
    x = tf.constant([-2.0, 1.0], dtype)
    y, (dx,) = _both(lambda x: rules.smooth(x, beta=0.0), x)
    assert y.numpy().tolist() == [2.0, 1.0] and dx.numpy().tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("g", [0.0, 1.0, 2.0])
def test_a_truth_value_chooses_in_the_gradient(rules: ModuleType, g: float) -> None:
    x, t = tf.constant([0.3, -0.7], tf.float64), tf.constant([True, False])
    _, (dx,) = _both(lambda x: rules.focused(x, t, g=g), x)
    sign = np.array([1.0, -1.0])
    p = 1 / (1 + np.exp(sign * x.numpy()))
    np.testing.assert_allclose(dx, -g * p**g * (1 - p) * sign, atol=1e-15)
