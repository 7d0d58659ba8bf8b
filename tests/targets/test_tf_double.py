"""Narrow eager tensors on a CPU take float64 where that is cheaper: right to the last
place, and with all derivatives of the other way. Nothing else takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.double_rules import GATED, GELU
from tests.targets.emission import tf_module, tf_text

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = f"""{GATED}{GELU}
rule silu_double(x) -> y:
    y = 2 * x
"""
NAMES = ("silu", "swish", "mish", "gelu")
ZEROS = {
    "silu": -1.2784645,
    "swish": -1.2784645,
    "mish": -1.1924312,
    "gelu": -0.7517916,
}
LIMITS = {
    "float32": (2**-23, 2**-126),
    "bfloat16": (2**-7, 2**-126),
    "float16": (2**-10, 2**-14),
}
"""What is between 1 and the next number, and the least normal number."""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


@pytest.fixture
def conversions(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types that tensors of the short evaluation are given, one after another."""
    made: list[str] = []
    cast = rules._cast

    def spy(x: Any, dtype: Any) -> Any:
        made.append(dtype.name)
        return cast(x, dtype)

    monkeypatch.setattr(rules, "_cast", spy)
    return made


def _passes(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """The output and its gradients."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return [y, *tape.gradient(y, inputs)]


def _points(name: str) -> Any:
    near = ZEROS[name] + np.linspace(-1e-3, 1e-3, 201)
    return np.concatenate([np.linspace(-12, 12, 481), np.linspace(-87, 90, 178), near])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_one_rounding_of_what_float64_gives(
    rules: ModuleType, name: str, dtype: str
) -> None:
    """About the zero of the gradient too, and at -87, where float32 loses the
    exponential of what is no small number yet."""
    function, x = getattr(rules, name), tf.cast(_points(name), dtype)
    true = _passes(function, tf.cast(x, tf.float64))
    unit, least = LIMITS[dtype]
    for got, exact in zip(_passes(function, x), true, strict=True):
        assert got.dtype == x.dtype
        normal = np.abs(exact) >= least
        error = np.abs(tf.cast(got, tf.float64) - exact)
        assert np.sum(normal) > 500
        assert np.all((error <= 0.51 * unit * np.abs(exact))[normal])


def test_at_88_below_zero_nothing_is_lost(rules: ModuleType) -> None:
    x = np.float32([-88.5, -88.0, -87.4])
    exact = np.float64(x) * np.exp(np.float64(x))
    np.testing.assert_allclose(rules.silu(tf.constant(x)), exact, rtol=1e-6)
    np.testing.assert_allclose(rules.mish(tf.constant(x)), exact, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_at_infinities_the_limits(rules: ModuleType, name: str) -> None:
    x = tf.constant([-np.inf, np.inf, np.nan])
    y, dx = _passes(getattr(rules, name), x)
    np.testing.assert_array_equal(y, [0, np.inf, np.nan])
    np.testing.assert_array_equal(dx, [0, 1, np.nan])


@pytest.mark.parametrize("name", NAMES)
def test_narrow_eager_tensors_alone_take_it(
    rules: ModuleType, conversions: list[str], name: str
) -> None:
    function = getattr(rules, name)
    _passes(function, tf.ones(3))
    assert conversions == ["float64", "float32", "float64", "float64", "float32"]
    del conversions[:]
    _passes(function, tf.ones(3, tf.float64))
    assert not conversions


def _slope(function: Callable[..., Any], x: Any) -> Any:
    return _passes(function, x)[1]


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}], ids=["graph", "xla"])
def test_graphs_take_the_other_form(
    rules: ModuleType, conversions: list[str], options: dict[str, bool]
) -> None:
    x = tf.linspace(-3.0, 3.0, 9)
    eager = _slope(rules.silu, x)
    del conversions[:]
    traced = tf.function(lambda v: _slope(rules.silu, v), **options)(x)
    assert not conversions
    np.testing.assert_allclose(traced, eager, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recorded_is_differentiated_as_in_float64(
    rules: ModuleType, conversions: list[str], name: str
) -> None:
    function = getattr(rules, name)

    def second(x: Any) -> Any:
        return _slope(lambda v: _slope(function, v), x)

    x = tf.linspace(-3.0, 3.0, 25)
    np.testing.assert_allclose(second(x), second(tf.cast(x, tf.float64)), atol=2e-5)
    assert conversions == ["float64", "float32"]  # the value alone


@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_and_batches_go_on_working(rules: ModuleType, name: str) -> None:
    function, x = getattr(rules, name), tf.linspace(-3.0, 3.0, 9)
    slope = _slope(function, x)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = function(x)
    np.testing.assert_allclose(accumulator.jvp(y), slope, atol=1e-6)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    np.testing.assert_allclose(np.diag(tape.jacobian(y, x)), slope, atol=1e-6)
    mapped = tf.vectorized_map(lambda v: _slope(function, v), x)
    np.testing.assert_allclose(mapped, slope, atol=1e-6)
    again = tf.recompute_grad(function)
    np.testing.assert_allclose(_slope(again, x), slope, atol=1e-6)


def test_rows_of_a_gradient(rules: ModuleType) -> None:
    """`tf.gather` hands back slices and no tensor."""
    x = tf.linspace(-3.0, 3.0, 9)
    dx = _slope(lambda v: tf.gather(rules.silu(v), [2, 4]), x)
    slope = _slope(rules.silu, x)
    np.testing.assert_allclose(dx[2], slope[2], atol=1e-6)
    np.testing.assert_array_equal(tf.gather(dx, [0, 1, 3, 8]), np.zeros(4))


def test_several_inputs_that_broadcast(
    rules: ModuleType, conversions: list[str]
) -> None:
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(3, 4)), generator.normal(size=4)
    narrow = _passes(rules.both, tf.constant(a, tf.float32), tf.constant(b, tf.float32))
    assert conversions
    true = _passes(rules.both, tf.constant(a), tf.constant(b))
    for got, exact in zip(narrow, true, strict=True):
        assert got.shape == exact.shape
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)
    ends = tf.constant([np.inf, -np.inf, np.inf])
    others = tf.constant([np.inf, -np.inf, 3.0])
    np.testing.assert_array_equal(rules.both(ends, others), [np.inf, -np.inf, np.inf])


def test_an_operation_for_a_derivative_takes_one_shape_alone() -> None:
    """`SoftplusGrad` refuses a column beside a row."""
    text = """
rule gated(x, z, beta: static = 1.0) -> y:
    y = z * softplus(beta * x) * sigmoid(x) * tanh(x)
"""
    assert "_or_double" in tf_text(text)
    gated = tf_module(text).gated
    x = np.linspace(-3.0, 3.0, 5)
    z = np.float64([[0.5], [-2.0]])
    for rate in (1.0, 2.5):

        def function(x: Any, z: Any, beta: float = rate) -> Any:
            return gated(x, z, beta=beta)

        narrow = _passes(
            function, tf.constant(x, tf.float32), tf.constant(z, tf.float32)
        )
        true = _passes(function, tf.constant(x), tf.constant(z))
        for got, exact in zip(narrow, true, strict=True):
            assert got.shape == exact.shape
            np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)


def test_a_rule_of_the_same_name_has_its_own(rules: ModuleType) -> None:
    np.testing.assert_array_equal(rules.silu_double(tf.ones(2)), [2.0, 2.0])


def test_what_is_cheap_in_float32_stays_there() -> None:
    assert "_or_double" not in tf_text("rule cube(x) -> y:\n    y = x**3 + sin(x)\n")
