"""Softplus of a number and of its opposite keeps its digits in graphs of TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tf

SOFTPLUS = """
rule below(x) -> y:
    y = softplus(x)

rule above(x) -> y:
    y = softplus(-x)
"""


def _both(rule: Any, *inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs[0])
        value = rule(*inputs)
    return value, tape.gradient(value, inputs[0])


@pytest.mark.parametrize("jit", [None, True])
@pytest.mark.parametrize("name", ["below", "above"])
def test_softplus_has_its_digits_in_graphs(name: str, jit: bool | None) -> None:
    rule = getattr(tf_module(SOFTPLUS), name)
    x = np.linspace(-80, 80, 4001, dtype=np.float32)
    sign = 1.0 if name == "below" else -1.0
    run = tf.function(lambda v: _both(rule, v), jit_compile=jit)
    value, slope = (found.numpy() for found in run(tf.constant(x)))
    exact = np.logaddexp(0.0, sign * x.astype(np.float64))
    np.testing.assert_allclose(value, exact, rtol=8e-7)
    np.testing.assert_allclose(
        slope, sign / (1.0 + np.exp(-sign * x.astype(np.float64))), rtol=8e-7
    )


def test_slopes_at_zero_and_ends() -> None:
    module = tf_module(SOFTPLUS)
    ends = tf.constant([math.inf, -math.inf, math.nan])
    for rule, sign in ((module.below, 1.0), (module.above, -1.0)):
        value, slope = _both(rule, tf.constant([0.0, -0.0]))
        np.testing.assert_allclose(value, [math.log(2.0)] * 2, rtol=1e-6)
        np.testing.assert_allclose(slope, [0.5 * sign] * 2, rtol=1e-6)
        with np.errstate(invalid="ignore"):
            expected = np.logaddexp(0.0, sign * ends.numpy())
        np.testing.assert_array_equal(tf.function(rule)(ends), expected)
