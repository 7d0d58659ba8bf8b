"""TensorFlow modules in graphs, under XLA, mapped, and differentiated forward."""

from __future__ import annotations

import sys
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


def _normal(*shape: int, dtype: str = "float32") -> Any:
    return tf.constant(np.random.default_rng(7).normal(size=shape).astype(dtype))


def test_a_graph_runs_what_is_written(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AutoGraph would run a copy of its own, from a file of its own."""
    runtime = sys.modules[f"{rules.__package__}._gradspec"]
    applied, ran = runtime._applied, []

    def noted(core: Any, *args: Any) -> Any:
        ran.append(
            (sys._getframe(1).f_code.co_filename, core.func.__code__.co_filename)
        )
        return applied(core, *args)

    monkeypatch.setattr(runtime, "_applied", noted)
    tf.function(lambda x, y: rules.complex_op(x, y))(_normal(3), _normal(3))
    assert ran == [(runtime.__file__, rules.__file__)]


def test_a_static_value_is_no_reason_to_trace_again(rules: ModuleType) -> None:
    graph = tf.function(lambda v: rules.spike(v, k=3.5), reduce_retracing=True)
    for length in (2, 3, 4, 5):
        graph(_normal(length))
    assert graph.experimental_get_tracing_count() <= 2


@pytest.mark.parametrize("text", ["dy * y * (1 - y)", "dy * m"])
def test_a_second_derivative_sees_through_what_was_kept(text: str) -> None:
    """The output, and a local: both are functions of the input."""
    module = tf_module(
        "rule logistic(x) -> y:\n"
        "    y = 1 / (1 + exp(-x))\n"
        "    m = y * (1 - y)\n"
        "    save y, m\n"
        f"    dx = {text}\n"
    )
    x = _normal(5)

    def second(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = module.logistic(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    s = tf.sigmoid(x)
    for run in (second, tf.function(second)):
        np.testing.assert_allclose(run(x), s * (1 - s) * (1 - 2 * s), 1e-5, 1e-6)


def test_the_second_derivative_of_an_override_with_a_part_of_its_own() -> None:
    """Which does not depend on the upstream gradient."""
    module = tf_module(
        "rule decay(x, lam: static = 0.25) -> y:\n"
        "    y = x\n"
        '    override dx = dy + 2 * lam * x because "weight decay"\n'
    )
    x = tf.constant([1.0, -2.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = module.decay(x)
        first = inner.gradient(y, x)
    assert first.numpy().tolist() == [1.5, 0.0]
    assert outer.gradient(first, x).numpy().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_what_is_gathered_from_a_result_goes_back(rules: ModuleType, way: str) -> None:
    """The gradient of `tf.gather` is a `tf.IndexedSlices`, which has no products."""

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            picked = tf.gather(rules.reverse_gradient(x, scale=2.0), [0, 2, 2])
        return tape.gradient(picked, x)

    x = _normal(4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        whole = rules.reverse_gradient(x, scale=2.0)
    expected = tape.gradient(whole, x, output_gradients=tf.constant([1.0, 0, 2, 0]))
    found = (step if way == "eager" else tf.function(step))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("known", [(None, None), None], ids=["sizes", "rank"])
def test_an_accumulator_within_another_where_no_size_is_known(known):
    text = """
rule cubed(x[..., n]) -> y[..., n]:
    y[i] = x[i] * sum(x[j]**2 for j)
    override dx[i] = 3 * dy[i] * sum(x[j]**2 for j) because "a marker"
"""
    cubed, x = tf_module(text).cubed, _normal(2, 3)

    @tf.function(input_signature=[tf.TensorSpec(known)])
    def twice(x):
        v = tf.ones_like(x)
        with tf.autodiff.ForwardAccumulator(x, v) as outer:
            with tf.autodiff.ForwardAccumulator(x, v) as inner:
                y = cubed(x)
            y_dot = inner.jvp(y)
        return y_dot, outer.jvp(y_dot)

    first, second = twice(x)
    squares = tf.reduce_sum(x * x, -1, keepdims=True)
    rises = 2 * tf.reduce_sum(x, -1, keepdims=True)
    np.testing.assert_allclose(first, 3 * squares + 0 * x, rtol=1e-5)
    np.testing.assert_allclose(second, 3 * rises + 0 * x, rtol=1e-5)
