"""TensorFlow modules in graphs, under XLA, mapped, and differentiated forward."""

from __future__ import annotations

import sys
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


def _normal(*shape: int, dtype: str = "float32") -> Any:
    return tf.constant(np.random.default_rng(7).normal(size=shape).astype(dtype))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "exact": (lambda m, x: m.log1pexp(x), (_normal(5),)),
    "half": (lambda m, x: m.log1pexp(x), (_normal(5, dtype="float16"),)),
    "several": (lambda m, x, y: m.complex_op(x, y), (_normal(3, 4), _normal(4))),
    "mixed types": (
        lambda m, x, y: m.complex_op(x, y),
        (_normal(3, 4), _normal(4, dtype="float64")),
    ),
    "number": (lambda m, x: m.complex_op(2.0, x), (_normal(3, dtype="float64"),)),
    "static": (lambda m, x: m.swish(x, beta=1.7), (_normal(5),)),
    "surrogate": (lambda m, v: m.spike(v, k=4.0), (_normal(5),)),
    "override": (lambda m, x: m.clip_gradient(3 * x), (_normal(5),)),
    "shapes": (lambda m, x, y: m.sums(x, y), (_normal(3, 1), _normal(4))),
    "discrete": (
        lambda m, x: m.power(tf.abs(x), [1, 2, 3], [True, False, True]),
        (_normal(3),),
    ),
    "no gradient": (lambda m, x: m.parts(x), (_normal(3),)),
    "constants": (lambda m, x, y: m.constants(x, y), (_normal(3, 1), _normal(4))),
    "rank 0": (lambda m, x: m.square(x), (tf.constant(3.0),)),
    "edges": (
        lambda m, x, y: m.edges(x, y),
        (_normal(3, 1, dtype="float64"), _normal(4, dtype="float64")),
    ),
}


def _step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Outputs and gradients, with different upstream gradients in every place."""

    def step(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = tf.nest.flatten(function(*inputs))
            loss = tf.add_n(
                [
                    tf.reduce_sum(tf.cast(y, tf.float64) * _ramp(y))
                    for y in outputs
                    if y.dtype.is_floating
                ]
            )
        return outputs, tape.gradient(loss, inputs)

    return step


def _ramp(y: Any) -> Any:
    count = tf.cast(tf.range(tf.size(y)), tf.float64)
    return tf.reshape(0.7 * count - 2.0, tf.shape(y))


def _assert_same(got: Any, want: Any) -> None:
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        tolerance = {"float16": 2e-3, "float64": 1e-12}.get(g.dtype.name, 1e-5)
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def _specs(inputs: tuple[Any, ...], name: str) -> list[Any]:
    shape = {
        "none": lambda x: [None] * x.shape.rank,
        "unknown": lambda x: None,
    }[name]
    return [tf.TensorSpec(shape(x), x.dtype) for x in inputs]


@pytest.mark.parametrize("shapes", ["static", "none", "unknown"])
@pytest.mark.parametrize("name", CASES)
def test_a_graph_is_eager(rules: ModuleType, name: str, shapes: str) -> None:
    function, inputs = CASES[name]
    step = _step(lambda *args: function(rules, *args))
    signature = None if shapes == "static" else _specs(inputs, shapes)
    graph = tf.function(step, input_signature=signature)
    _assert_same(graph(*inputs), step(*inputs))


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


@pytest.mark.parametrize("name", CASES)
def test_compiled_by_xla_is_eager(rules: ModuleType, name: str) -> None:
    function, inputs = CASES[name]
    step = _step(lambda *args: function(rules, *args))
    compiled = tf.function(step, jit_compile=True)
    _assert_same(compiled(*inputs), step(*inputs))


def test_forward_mode_keeps_surrogates(rules: ModuleType) -> None:
    """`custom_gradient` alone would be ignored here, without an error."""
    v = tf.constant([-0.3, 0.1])
    with tf.autodiff.ForwardAccumulator(v, tf.ones_like(v)) as forward:
        spikes = rules.spike(v)
        reversed_ = rules.reverse_gradient(v, scale=3.0)
    np.testing.assert_allclose(forward.jvp(spikes), 1 / (1 + 25 * np.abs(v)) ** 2, 1e-5)
    np.testing.assert_allclose(forward.jvp(reversed_), [-3.0, -3.0])


def test_jacobians_and_persistent_tapes(rules: ModuleType) -> None:
    x, y = _normal(3, 4), _normal(4)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z, w = rules.complex_op(x, y)
        s = rules.spike(y, k=2.0)
    np.testing.assert_allclose(tape.gradient(z, y), tf.reduce_sum(x, 0), 1e-5)
    np.testing.assert_allclose(tape.gradient(w, y), 2 * y, 1e-6)
    assert tape.jacobian(z, y).shape == (3, 4, 4)
    slope = np.diag(1 / (1 + 2 * np.abs(y)) ** 2)
    np.testing.assert_allclose(tape.jacobian(s, y), slope, 1e-5)


def test_vectorized_map(rules: ModuleType) -> None:
    x, y = _normal(3, 4), _normal(4)

    def slopes(row: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(row)
            value = rules.complex_op(row, y)[0] + rules.spike(row)
        return tape.gradient(value, row)

    want = y + tf.cos(x) + 1 / (1 + 25 * tf.abs(x)) ** 2
    np.testing.assert_allclose(tf.vectorized_map(slopes, x), want, 1e-5, 1e-6)


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


def test_a_gradient_that_is_not_linear_has_no_forward_mode() -> None:
    module = tf_module(
        "rule clipped(x) -> y:\n    y = 2 * x\n"
        '    override dx = clip(dy, -1, 1) because "a limit"\n'
    )
    x = _normal(3)
    with (
        tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)),
        pytest.raises(NotImplementedError, match="no forward mode"),
    ):
        module.clipped(x)


def test_a_branch_within_a_loop(rules: ModuleType) -> None:
    """`tf.custom_gradient` alone fails where a gradient uses an argument."""

    @tf.function
    def gradient(count: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            whole = 0.0
            for k in tf.range(count):
                if k == 1:
                    whole += tf.reduce_sum(rules.spike(x, k=1.0))
        return tape.gradient(whole, x)

    x = _normal(4)
    np.testing.assert_allclose(gradient(3, x), 1 / (1 + np.abs(x)) ** 2, 1e-5)


def test_saved_models_keep_the_rule(rules: ModuleType, tmp_path: Any) -> None:
    class Layer(tf.Module):  # type: ignore[misc, name-defined]
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, v: Any) -> Any:
            return rules.spike(v, k=4.0)

    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(Layer(), str(tmp_path), options=options)
    loaded = tf.saved_model.load(str(tmp_path))
    v = tf.constant([-0.3, 0.1])
    with tf.GradientTape() as tape:
        tape.watch(v)
        spikes = loaded(v)
    np.testing.assert_allclose(
        tape.gradient(spikes, v), 1 / (1 + 4 * np.abs(v)) ** 2, 1e-5
    )


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
