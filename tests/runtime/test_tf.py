"""What the rules of a TensorFlow module share: arguments, types, shapes, derivatives."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import module_of

pytestmark = [pytest.mark.tf, pytest.mark.shared_cache]
tf = pytest.importorskip("tensorflow")
runtime = pytest.importorskip("gradspec.runtime.tf._gradspec")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(Path(__file__).with_name("rules.grad"), "tf")


@runtime.custom_gradient(precision=tf.float64)
def difference(x: Any) -> Any:
    def backward(dy: Any) -> Any:
        return dy * ((x + 1.0) - x)

    return (x + 1.0) - x, backward


def _gradients(function: Callable[..., Any], *inputs: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
    return tape.gradient(outputs, inputs)


def _along(function: Callable[..., Any], x: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as along:
        y = function(x)
    return along.jvp(y)


def _compiled(function: Callable[..., Any]) -> Any:
    return tf.function(function, jit_compile=True)


def _without_shapes(function: Callable[..., Any]) -> Any:
    def call(*inputs: Any) -> Any:
        specs = [tf.TensorSpec(None, x.dtype) for x in inputs]
        return tf.function(function, input_signature=specs)(*inputs)

    return call


WAYS = {"eager": lambda f: f, "graph": _without_shapes, "XLA": _compiled}
POINTS = np.array([-0.7, 0.4, 1.3])
ORDERS: dict[str, tuple[Any, Any]] = {
    "square": (2 * POINTS, 2 + 0 * POINTS),
    "exponential": (np.exp(POINTS), np.exp(POINTS)),
    "step": (
        2 / np.cosh(2 * POINTS) ** 2,
        -8 * np.tanh(2 * POINTS) / np.cosh(2 * POINTS) ** 2,
    ),
}


def _by_tape(function: Any) -> Any:
    return lambda x: _gradients(function, x)[0]


def _forward(function: Any) -> Any:
    return lambda x: _along(function, x)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ORDERS)
def test_both_modes_in_every_nesting(rules: ModuleType, name: str, way: str) -> None:
    function, (first, second) = getattr(rules, name), ORDERS[name]
    x, run = tf.constant(POINTS), WAYS[way]
    for outer in (_by_tape, _forward):
        np.testing.assert_allclose(run(outer(function))(x), first, rtol=1e-12)
        for inner in (_by_tape, _forward):
            found = run(outer(inner(function)))(x)
            np.testing.assert_allclose(found, second, rtol=1e-12)


def test_a_gradient_that_is_not_linear_has_no_forward_mode(rules: ModuleType) -> None:
    x = tf.constant(POINTS)
    (dx,) = _gradients(lambda x: 3.0 * rules.squared_gradient(x), x)
    np.testing.assert_allclose(dx, 9.0 * POINTS)
    with pytest.raises(NotImplementedError, match="not linear"):
        _along(rules.squared_gradient, x)


@pytest.mark.parametrize("way", WAYS)
def test_several_outputs_of_different_shapes(rules: ModuleType, way: str) -> None:
    x, y = tf.ones((3, 1)), tf.constant([1.0, 2.0])
    dx, dy = WAYS[way](lambda x, y: _gradients(lambda *v: rules.pair(*v)[:2], x, y))(
        x, y
    )
    np.testing.assert_allclose(dx, np.full((3, 1), 9.0))
    np.testing.assert_allclose(dy, [9.0 + 6.0, 9.0 + 12.0])


def test_outputs_without_a_gradient(rules: ModuleType) -> None:
    x, y = tf.ones(2), tf.ones(2)
    assert _gradients(lambda *v: rules.pair(*v)[2], x, y) == (None, None)
    assert rules.pair(x, y)[3].dtype == tf.bool


def test_numbers_integers_and_truth_values(rules: ModuleType) -> None:
    x, on = tf.constant([1.0, 2.0]), [True, False]
    for n in (3, np.array([3, 3], np.int8), tf.constant(3)):
        y = rules.powers(x, n, on, count=2)
        assert y.numpy().tolist() == [6.0, 2.0]
    (dx,) = _gradients(lambda x: rules.powers(x=x, on=on, n=3), x)
    assert dx.numpy().tolist() == [6.0, 1.0]
    assert rules.step(tf.constant(1.0), k=tf.constant(3)).numpy() == 1.0


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_named_axes(rules: ModuleType, way: str) -> None:
    x, g, s = tf.ones((4, 2)), tf.constant([1.0, 2.0]), tf.constant(3.0)
    dx, dg, ds = WAYS[way](lambda *v: _gradients(rules.scaled, *v))(x, g, s)
    np.testing.assert_allclose(dx, np.tile([6.0, 12.0], (4, 1)))
    np.testing.assert_allclose(dg, [24.0, 24.0])
    np.testing.assert_allclose(ds, 24.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_types_are_computed_in_a_wider_one_and_rounded_once(
    rules: ModuleType, dtype: str
) -> None:
    x = tf.constant([3000.0, 0.1], dtype)  # x + 1 - x is 0 in the narrow type
    y, (dx,) = difference(x), _gradients(difference, x)
    assert y.dtype == dx.dtype == x.dtype
    assert y.numpy().tolist() == dx.numpy().tolist() == [1.0, 1.0]
    assert rules.square(x).dtype == x.dtype


def test_types_are_promoted_and_gradients_go_back(rules: ModuleType) -> None:
    x, y = tf.ones((3, 1), tf.float16), tf.ones(4, tf.float64)
    assert rules.pair(x, y)[0].dtype == tf.float64
    dx, dy = _gradients(lambda *v: rules.pair(*v)[:2], x, y)
    assert (dx.dtype, dx.shape, dy.dtype, dy.shape) == (
        tf.float16,
        (3, 1),
        tf.float64,
        (4,),
    )
    assert rules.pair(x, 2.0)[0].dtype == tf.float16
    assert rules.pair(tf.ones(1, tf.bfloat16), x)[0].dtype == tf.float32
    assert rules.square(3).dtype == tf.float32


X = tf.ones((4, 2))
FAULTS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "integers": (
        lambda m: m.square(tf.constant(1)),
        TypeError,
        r"square: x must be a floating tensor, not int32; .* tf\.cast\(x, tf\.float32\)",
    ),
    "no integers": (
        lambda m: m.powers(X, X, True),
        TypeError,
        "powers: n must be an integer tensor, not float32; convert it first",
    ),
    "no truth value": (
        lambda m: m.powers(X, 1, 1),
        TypeError,
        "powers: on must be a boolean tensor, not int32; convert it first",
    ),
    "too many": (lambda m: m.square(X, X), TypeError, "square: too many positional"),
    "too few": (lambda m: m.square(), TypeError, "square: missing .* 'x'"),
    "unknown": (lambda m: m.step(X, m=2.0), TypeError, "step: .*keyword.* 'm'"),
    "no number": (
        lambda m: m.step(X, k="2"),
        TypeError,
        "step: k must be a number, not a string",
    ),
    "no whole number": (
        lambda m: m.powers(X, 1, True, count=1.5),
        TypeError,
        "powers: count must be a number: .*float.*integer",
    ),
    "size": (
        lambda m: m.scaled(X, tf.ones(3), 1.0),
        ValueError,
        r"scaled: g must have the shape \[n\] with n = 2, not \(3,\)",
    ),
    "rank": (
        lambda m: m.scaled(X, tf.ones(2), X),
        ValueError,
        r"scaled: s must have the shape \[\], not \(4, 2\)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_say_what_to_do(rules: ModuleType, name: str) -> None:
    call, kind, message = FAULTS[name]
    with pytest.raises(kind, match=message):
        call(rules)


def test_shapes_that_a_graph_learns_late(rules: ModuleType) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="scaled: g must have"):
        _without_shapes(rules.scaled)(X, tf.ones(3), tf.constant(1.0))


@pytest.mark.parametrize(
    ("given", "like"),
    [((3, 4), (4,)), ((3, 4), (3, 1)), ((), (2, 3)), ((3,), (2, 1)), ((2, 3), ())],
)
def test_sums_over_what_was_broadcast(
    given: tuple[int, ...], like: tuple[int, ...]
) -> None:
    value, x = np.random.default_rng(0).normal(size=given), np.zeros(like)
    whole = np.broadcast_to(value, np.broadcast_shapes(given, like))
    axes = range(whole.ndim - x.ndim)
    sizes = zip(whole.shape[len(axes) :], like, strict=True)
    ones = [k for k, (size, own) in enumerate(sizes, len(axes)) if own == 1 != size]
    wanted = whole.sum((*axes, *ones), keepdims=True).reshape(like)
    for run in (runtime.sum_to, _without_shapes(runtime.sum_to)):
        np.testing.assert_allclose(run(tf.constant(value), tf.constant(x)), wanted)


@pytest.mark.parametrize("n", [0, 1, 2, 3, -1])
def test_powers_with_derivatives_at_0(n: int) -> None:
    x = tf.constant([0.0, 2.0] if n >= 0 else [1.0, 2.0])
    (first,) = _gradients(lambda x: runtime.power(x, n) + 0.0 * x, x)
    np.testing.assert_allclose(first, n * x.numpy() ** max(n - 1, -2) if n else [0, 0])


def test_rules_are_pickled_and_given_to_functions(rules: ModuleType) -> None:
    assert pickle.loads(pickle.dumps(rules.square)) is rules.square
    applied = tf.function(lambda x, function: function(x))
    assert applied(tf.constant(3.0), rules.square).numpy() == 9.0


def test_without_the_record_tapes_see_the_rules(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = sys.modules[f"{rules.__package__}._gradspec"]
    monkeypatch.setattr(own, "record", None)
    for name, (first, _) in ORDERS.items():
        function = getattr(rules, name)
        for way in WAYS.values():
            found = way(lambda x, f=function: _gradients(f, x)[0])(tf.constant(POINTS))
            np.testing.assert_allclose(found, first, rtol=1e-12, err_msg=name)


def test_a_tensorflow_without_the_record_is_told_of() -> None:
    code = (
        "import sys, warnings, tensorflow\n"
        "import tensorflow.python.eager as eager; del eager.record\n"
        "sys.modules['tensorflow.python.eager.record'] = None\n"
        "warnings.simplefilter('error')\n"
        "import gradspec.runtime.tf._gradspec\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert "ForwardAccumulator finds no derivative" in ran.stderr
