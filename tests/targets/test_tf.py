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


LABELS = np.array([0.0, 1.0, 0.3, 0.9])
COUNTS = np.array([[1], [2], [3]])
ON = np.array([True, False, True, True])

EXACT: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]] = {
    "log1pexp": (lambda m, x: m.log1pexp(x), tf.math.softplus, ((5,),)),
    "complex_op": (
        lambda m, x, y: m.complex_op(x, y),
        lambda x, y: (x * y + tf.sin(x), y * y),
        ((3, 4), (4,)),
    ),
    "complex_op, ones": (
        lambda m, x, y: m.complex_op(x, y),
        lambda x, y: (x * y + tf.sin(x), y * y),
        ((3, 1), (1, 4)),
    ),
    "complex_op, rank 0": (
        lambda m, x, y: m.complex_op(x, y),
        lambda x, y: (x * y + tf.sin(x), y * y),
        ((), (2, 3)),
    ),
    "swish": (
        lambda m, x: m.swish(x, beta=1.7),
        lambda x: x * tf.sigmoid(1.7 * x),
        ((5,),),
    ),
    "bce": (
        lambda m, p: m.bce(p, LABELS),
        lambda p: -(LABELS * tf.math.log(p) + (1 - LABELS) * tf.math.log(1 - p)),
        ((3, 4),),
    ),
    "power": (
        lambda m, x: m.power(x, COUNTS, ON),
        lambda x: tf.where(ON, x ** COUNTS.astype(float), 0),
        ((4,),),
    ),
    "power_of": (lambda m, x: m.power_of(x, n=2), tf.square, ((4,),)),
    "power_of 0": (lambda m, x: m.power_of(x, n=0), lambda x: x**0, ((4,),)),
    "square": (lambda m, x: m.square(x), tf.square, ((),)),
    "product": (lambda m, x, y: m.product(x, y), lambda x, y: x * y, ((), ())),
    "scaled": (lambda m, x, a: m.scaled(x, a), lambda x, a: a * x, ((2, 3), ())),
    "parts": (lambda m, x: m.parts(x)[0], tf.square, ((5,),)),
    "sums": (
        lambda m, x, y: m.sums(x, y),
        lambda x, y: (x + y, x - y),
        ((2, 3), (3,)),
    ),
    "tanh_of": (lambda m, x: m.tanh_of(x), tf.tanh, ((5,),)),
    "guarded": (lambda m, x: m.guarded(x), tf.sqrt, ((5,),)),
    "shared": (
        lambda m, x, y: m.shared(x, y),
        lambda x, y: (tf.exp(x * y), tf.sin(x * y) * tf.exp(x * y)),
        ((3, 4), (4,)),
    ),
    "saver": (lambda m, x: m.saver(x), tf.sigmoid, ((3,),)),
    "copy2": (
        lambda m, x: m.copy2(x),
        lambda x: (tf.identity(x), tf.identity(x)),
        ((3,),),
    ),
    "same": (lambda m, x: m.same(x), lambda x: (tf.exp(x), tf.exp(x)), ((3,),)),
    "branch 0": (lambda m, x: m.branch(x, k=0), lambda x: 0 * x + 2, ((3,),)),
    "branches 1": (
        lambda m, x, y: m.branches(x, y),
        lambda x, y: (tf.sin(x) * y, 1 + 0 * x),
        ((3, 4), (4,)),
    ),
    "branches 0": (
        lambda m, x, y: m.branches(x, y, k=0),
        lambda x, y: (0 * x * y, tf.identity(x)),
        ((3, 4), (4,)),
    ),
    "branches -2": (
        lambda m, x, y: m.branches(x, y, k=-2),
        lambda x, y: (x + 0 * y, tf.identity(x)),
        ((4,), (3, 4)),
    ),
    "step2": (
        lambda m, x, y: m.step2(x, y),
        lambda x, y: tf.cast(x > y, x.dtype) + 0 * x + 0 * y,
        ((3, 4), (4,)),
    ),
    "boolout": (lambda m, x, y: m.boolout(x, y)[0], tf.add, ((3, 4), (4,))),
    "maskf": (
        lambda m, x: m.maskf(ON, COUNTS, x),
        lambda x: tf.where(ON, x, 0) + COUNTS * x,
        ((4,),),
    ),
    "edges": (
        lambda m, x, y: m.edges(x, y),
        lambda x, y: tf.maximum(x, 0) + tf.atan2(tf.ones_like(y), y) + 0.1,
        ((3, 1), (4,)),
    ),
}


def _close(got: Any, want: Any) -> None:
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-13)


def _second(function: Callable[..., Any], *inputs: Any) -> Any:
    """The gradient of the squared norm of the gradient."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        first = _grads(function, *inputs)
        norm = sum(tf.reduce_sum(g**2) for g in first)
    return tape.gradient(norm, inputs, unconnected_gradients="zero")


@pytest.mark.parametrize("name", EXACT)
def test_exact_values_and_gradients(rules: ModuleType, name: str) -> None:
    function, native, shapes = EXACT[name]
    inputs = tuple(_uniform(*shape) for shape in shapes)

    def bound(*args: Any) -> Any:
        return function(rules, *args)

    _close(bound(*inputs), native(*inputs))
    _close(_grads(bound, *inputs), _grads(native, *inputs))
    _close(_second(bound, *inputs), _second(native, *inputs))


def test_third_and_fourth_derivatives(rules: ModuleType) -> None:
    def derivative(function: Callable[..., Any], order: int, x: Any) -> Any:
        if order == 0:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = derivative(function, order - 1, x)
        return tape.gradient(value, x)

    x = tf.constant(0.5, tf.float64)
    for order in range(5):
        got = derivative(rules.log1pexp, order, x)
        np.testing.assert_allclose(got, derivative(tf.math.softplus, order, x))


# --- surrogates and overrides ------------------------------------------------------------


def test_a_surrogate_decides_the_gradient_to_all_orders(rules: ModuleType) -> None:
    v = tf.constant([-0.3, 0.1], tf.float64)
    assert rules.spike(v, k=10.0).numpy().tolist() == [0.0, 1.0]
    with tf.GradientTape() as tape:
        tape.watch(v)
        (first,) = _grads(lambda v: rules.spike(v, k=10.0), v)
    np.testing.assert_allclose(first, 1 / (1 + 10 * np.abs(v)) ** 2)
    second = tape.gradient(first, v)
    np.testing.assert_allclose(second, -20 * np.sign(v) / (1 + 10 * np.abs(v)) ** 3)


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


def test_outputs_without_gradient(rules: ModuleType) -> None:
    x = tf.constant([-1.0, 2.0])
    _, sgn, up, side = rules.parts(x)
    assert [t.dtype for t in (sgn, up, side)] == [tf.float32, tf.bool, tf.int64]
    assert side.numpy().tolist() == [2, 1] and up.numpy().tolist() == [False, True]
    assert _grads(lambda x: rules.parts(x)[1], x) == (None,)


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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["log1pexp", "swish", "tanh_of"])
def test_half_precision_is_rounded_once(
    rules: ModuleType, name: str, dtype: str
) -> None:
    function = getattr(rules, name)
    x = tf.cast(tf.linspace(-6.0, 6.0, 301), dtype)
    wide = tf.cast(x, tf.float64)
    for got, exact in (
        (function(x), function(wide)),
        (_grads(function, x)[0], _grads(function, wide)[0]),
    ):
        assert got.dtype == dtype
        assert _units(got, exact) <= 0.6


def _units(got: Any, truth: Any) -> float:
    """The largest error in units in the last place of ``got``'s type."""
    bits, least = (10, -14) if got.dtype == tf.float16 else (7, -126)
    truth = truth.numpy()
    exponent = np.floor(np.log2(np.maximum(np.abs(truth), 2.0**least)))
    error = np.abs(tf.cast(got, tf.float64).numpy() - truth)
    return float(np.max(error / 2.0 ** (exponent - bits)))


def test_mixed_types_promote_and_gradients_go_back(rules: ModuleType) -> None:
    x, y = tf.ones((3, 4), tf.float16), tf.ones(4, tf.float64)
    assert [t.dtype for t in rules.complex_op(x, y)] == [tf.float64] * 2
    dx, dy = _grads(rules.complex_op, x, y)
    assert (dx.dtype, dx.shape) == (tf.float16, (3, 4))
    assert (dy.dtype, dy.shape) == (tf.float64, (4,))
    halves = rules.complex_op(tf.ones(2, tf.float16), tf.ones(2, tf.bfloat16))
    assert halves[0].dtype == tf.float32


def test_python_numbers_take_the_type_of_tensors(rules: ModuleType) -> None:
    assert rules.complex_op(tf.ones(3, tf.float16), 2.0)[0].dtype == tf.float16
    assert rules.complex_op(2, tf.ones(3, tf.float64))[0].dtype == tf.float64
    assert rules.complex_op(1.0, 2)[0].dtype == tf.float32
    assert rules.complex_op(np.ones(3), 2)[0].dtype == tf.float64
    assert rules.power(2.0, 3, True).numpy() == 8.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.log1pexp(tf.constant([1, 2])), "log1pexp: x .*int32"),
        (lambda m: m.log1pexp(tf.constant([1j])), "log1pexp: x .*complex128"),
        (lambda m: m.complex_op(tf.ones(2), tf.ones(2, tf.int8)), "y .*int8"),
        (lambda m: m.power(tf.ones(2), tf.ones(2), ON), "power: n .*float32"),
        (lambda m: m.power(tf.ones(4), COUNTS, COUNTS), "power: on .*int64"),
    ],
)
def test_wrong_types_are_refused(
    rules: ModuleType, call: Callable[[ModuleType], Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message + ".*convert it first"):
        call(rules)


def test_ranks_are_enforced(rules: ModuleType) -> None:
    with pytest.raises(
        ValueError, match=r"square: x must have the shape \[\], not \(3, 1\)"
    ):
        rules.square(tf.ones((3, 1)))
    unknown = tf.function(
        rules.square, input_signature=[tf.TensorSpec(None, tf.float32)]
    )
    assert unknown(tf.constant(3.0)).numpy() == 9.0
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        unknown(tf.ones(3))


# --- arguments -----------------------------------------------------------------------------


def test_keyword_calls_keep_the_rule(rules: ModuleType) -> None:
    (dv,) = _grads(lambda v: rules.spike(v=v, k=4.0), tf.constant(0.3))
    assert dv.numpy() == pytest.approx(1 / (1 + 4 * 0.3) ** 2)
    dx, dy = _grads(
        lambda x, y: rules.complex_op(y=y, x=x), *map(tf.constant, (2.0, 3.0))
    )
    assert (float(dx), float(dy)) == pytest.approx((3 + np.cos(2), 8.0))
    with pytest.raises(TypeError):
        rules.spike(tf.constant(0.3), 4.0)


def test_variables_get_gradients_and_are_trained(rules: ModuleType) -> None:
    weight = tf.Variable([0.5, -0.5])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(rules.swish(weight) + rules.reverse_gradient(weight))
    gradient = tape.gradient(loss, weight)
    tf.keras.optimizers.SGD(0.1).apply_gradients([(gradient, weight)])
    np.testing.assert_allclose(weight, [0.5, -0.5] - 0.1 * gradient, rtol=1e-6)


def test_the_branch_not_taken_leaks_nothing(rules: ModuleType) -> None:
    (dx,) = _grads(rules.guarded, tf.constant([-1.0, 0.0, 4.0]))
    assert dx.numpy().tolist() == [0.0, 0.0, 0.25]


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
