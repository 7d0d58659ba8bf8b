"""TensorFlow modules in TensorFlow: values, gradients, types, shapes, arguments."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import RULES, tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


def _uniform(*shape: int) -> Any:
    values = np.random.default_rng(len(shape)).uniform(0.2, 0.8, shape)
    return tf.constant(values)


def _grads(function: Callable[..., Any], *inputs: Any, upstream: Any = None) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
    return tape.gradient(outputs, inputs, output_gradients=upstream)


# --- surrogates and overrides ------------------------------------------------------------


def test_overrides(rules: ModuleType) -> None:
    x, upstream = tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, -3.0, 2.0])
    function = lambda x: rules.reverse_gradient(x, scale=2.0)  # noqa: E731
    (reversed_,) = _grads(function, x, upstream=upstream)
    assert reversed_.numpy().tolist() == [-1.0, 6.0, -4.0]
    (clipped,) = _grads(rules.clip_gradient, x, upstream=upstream)
    assert clipped.numpy().tolist() == [0.5, -1.0, 1.0]
    (squared,) = _grads(rules.keep_positive, x, upstream=upstream)
    assert squared.numpy().tolist() == [0.25, 18.0, 12.0]


def test_an_override_may_mix_upstream_gradients(rules: ModuleType) -> None:
    x, y = _uniform(3, 4), _uniform(4)
    upstream = (tf.fill((3, 4), tf.constant(2.0, x.dtype)), 3 + y)
    dx, dy = _grads(rules.mixed, x, y, upstream=upstream)
    np.testing.assert_allclose(dx, np.broadcast_to(2 * (3 + y), (3, 4)))
    np.testing.assert_allclose(dy, np.sum(2 * x, 0) + 3 + y)


def test_constants_have_shape_and_type(rules: ModuleType) -> None:
    x, y = tf.ones((3, 1), tf.float16), tf.ones(4, tf.float16)
    c = rules.constants(x, y)[1]
    assert (c.shape, c.dtype) == ((3, 4), tf.float16)
    dx, dy = _grads(rules.constants, x, y)
    assert (dx.shape, dx.dtype) == ((3, 1), tf.float16)
    assert dx.numpy().tolist() == [[8.0], [8.0], [8.0]]  # two, in each of four places
    assert dy.numpy().tolist() == [3.0, 3.0, 3.0, 3.0]
    (zero,) = _grads(rules.levels, tf.constant([-1.0, 1.0], tf.float64))
    assert zero.numpy().tolist() == [0.0, 0.0]
    assert rules.levels(tf.constant([-1.0, 1.0], tf.float64)).numpy().tolist() == [
        0.2,
        0.1,
    ]


# --- without gradient ------------------------------------------------------------------------


def test_rules_without_gradients_and_constant_outputs(rules: ModuleType) -> None:
    assert rules.counts(4).numpy() == 2.5
    t = tf.constant([1.0, 2.0], tf.float64)
    assert rules.labels(t, [True, False]).numpy().tolist() == [2.0, 0.1]
    _, on, k = rules.boolout(tf.ones((3, 1)), tf.zeros(2))
    assert k.numpy().tolist() == [[3, 3]] * 3 and k.dtype == tf.int64
    assert on.numpy().tolist() == [[True, True]] * 3


def test_inputs_without_gradient_get_none(rules: ModuleType) -> None:
    p, t = tf.constant([0.3]), tf.constant([1.0])
    dp, dt = _grads(rules.bce, p, t)
    assert dt is None and dp.numpy().tolist() == pytest.approx([-1 / 0.3])


def test_an_output_may_stay_unused(rules: ModuleType) -> None:
    x, y = _uniform(3, 4), _uniform(4)
    dx, dy = _grads(lambda x, y: rules.complex_op(x, y)[1], x, y)
    assert dx is None or not np.any(dx)
    np.testing.assert_allclose(dy, 2 * y)


# --- types -------------------------------------------------------------------------------


# --- arguments -----------------------------------------------------------------------------


def test_variables_get_gradients_and_are_trained(rules: ModuleType) -> None:
    weight = tf.Variable([0.5, -0.5])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(rules.swish(weight) + rules.reverse_gradient(weight))
    gradient = tape.gradient(loss, weight)
    tf.keras.optimizers.SGD(0.1).apply_gradients([(gradient, weight)])
    np.testing.assert_allclose(weight, [0.5, -0.5] - 0.1 * gradient, rtol=1e-6)


def test_inputs_of_a_surrogate_without_gradient_get_none() -> None:
    rules = tf_module(
        "rule gated(v, t: nograd) -> s:\n"
        "    s = t if v > 0 else 0\n"
        "    surrogate s = t * sigmoid(v)\n"
    )
    v, t = tf.constant([0.5, -0.5]), tf.constant([2.0, 2.0])
    dv, dt = _grads(rules.gated, v, t)
    assert dt is None
    np.testing.assert_allclose(dv, 2 * tf.sigmoid(v) * tf.sigmoid(-v), 1e-6)


def test_a_gradient_made_of_another_sees_it_before_it_is_summed() -> None:
    rules = tf_module(
        "rule sine(x, y) -> z:\n"
        "    z = sin(x - y)\n"
        "    dx = dz * cos(x - y)\n"
        "    dy = -dx\n"
    )
    x, y = _uniform(3, 1), _uniform(4)
    dx, dy = _grads(rules.sine, x, y)
    slope = np.cos(x - y)
    np.testing.assert_allclose(dx, slope.sum(1, keepdims=True))
    np.testing.assert_allclose(dy, -slope.sum(0))
