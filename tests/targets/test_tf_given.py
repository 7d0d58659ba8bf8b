"""What TensorFlow modules make of what they are given: upstream gradients that are None,
static parameters that are tensors, tensors that are not dense, and static exponents.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = """
rule pair(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2 * x
    override dx = 3 * dz * (y + cos(x)) + 3 * dw * y**2 because "a marker"
    override dy = 3 * dz * x + 6 * dw * y * x because "a marker"

rule both(x) -> (s, c):
    s = exp(x)
    c = exp(-x)

rule swish(x, beta: static = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule power(x, n: static int = 2) -> y:
    y = x**n

rule raised(x, p: static = 2.0) -> y:
    y = x**p

rule rows(x[..., n], p: static int = 2) -> y[..., n]:
    y[i] = x[i]**p / (1 + sum(x[j]**p for j))

rule chosen(x, n: int, on: bool) -> y:
    y = n * x if on else x
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


X, Y = (0.5, -0.3), (1.0, 2.0)
WAYS = {"eager": lambda f: f, "graph": lambda f: tf.function(f, autograph=False)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", [(1, 0), (0, 1), (0, 0)])
def test_no_upstream_gradient_is_zeros(
    rules: ModuleType, way: str, given: tuple[int, int]
) -> None:
    x, y = tf.constant(X, tf.float64), tf.constant(Y, tf.float64)
    upstream = [tf.ones_like(x) if k else None for k in given]

    def both() -> Any:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, y])
            with tf.GradientTape() as tape:
                tape.watch([x, y])
                outputs = rules.pair(x, y)
            first = tape.gradient(outputs, [x, y], output_gradients=upstream)
        return first, outer.gradient(first, [x, y])

    (dx, dy), (second_x, second_y) = WAYS[way](both)()
    a, b = given
    u, v = np.array(X), np.array(Y)
    assert np.allclose(dx, 3 * a * (v + np.cos(u)) + 3 * b * v**2)
    assert np.allclose(dy, 3 * a * u + 6 * b * v * u)
    assert np.allclose(second_x, a * (3 - 3 * np.sin(u)) + 6 * b * v)
    assert np.allclose(second_y, 3 * a + 6 * b * (v + u))


@pytest.mark.parametrize("way", WAYS)
def test_no_upstream_gradient_of_results(rules: ModuleType, way: str) -> None:
    x = tf.constant(X, tf.float64)

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = rules.both(x)
        return tape.gradient(outputs, x, output_gradients=[None, tf.ones_like(x)])

    assert np.allclose(WAYS[way](gradient)(), -np.exp(-np.array(X)))


def test_no_upstream_gradient_without_the_record(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `tf.custom_gradient` is all there is."""
    runtime = sys.modules[f"{rules.__package__}._gradspec"]
    monkeypatch.setattr(runtime, "record", None)
    test_no_upstream_gradient_is_zeros(rules, "eager", (0, 1))


@pytest.mark.parametrize("way", WAYS)
def test_a_static_tensor_that_is_known(rules: ModuleType, way: str) -> None:
    x = tf.constant(X)
    numbers = rules.swish(x, beta=2.0), rules.power(x, n=3)
    tensors = WAYS[way](
        lambda: (
            rules.swish(x, beta=tf.constant(2.0)),
            rules.power(x, n=tf.constant(3, tf.int64)),
        )
    )()
    arrays = rules.swish(x, beta=np.array(2.0)), rules.power(x, n=np.array(3))
    for number, tensor, array in zip(numbers, tensors, arrays, strict=True):
        assert np.allclose(number, tensor)
        assert np.allclose(number, array)


def test_a_static_tensor_that_is_unknown(rules: ModuleType) -> None:
    x = tf.constant(X)
    said = r"{}: {} is static, .* give a Python number, or declare {} without `static`"
    with pytest.raises(TypeError, match=said.format("swish", "beta", "beta")):
        tf.function(lambda b: rules.swish(x, beta=b))(tf.constant(2.0))
    with pytest.raises(TypeError, match=said.format("power", "n", "n")):
        tf.function(lambda n: rules.power(x, n=n))(tf.constant(2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: tf.Variable(2.0), r"swish: beta is static and gets no gradient; .*"),
        (lambda: "2.0", "swish: beta must be a number, not a string"),
        (lambda: None, "swish: beta must be a number: .*NoneType"),
        (lambda: tf.constant([2.0, 1.0]), "swish: beta must be a number: "),
    ],
)
def test_what_is_no_static_number(
    rules: ModuleType, given: Callable[[], Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        rules.swish(tf.constant(X), beta=given())


def _ragged() -> Any:
    return tf.ragged.constant([[1.0, 2.0], [3.0]])


RAGGED = {
    "swish: x": lambda m: m.swish(_ragged()),
    "pair: y": lambda m: m.pair(1.0, _ragged()),
    "rows: x": lambda m: m.rows(_ragged()),
    "chosen: n": lambda m: m.chosen(1.0, tf.cast(_ragged(), tf.int32), True),
    "chosen: on": lambda m: m.chosen(1.0, 1, _ragged() > 1.0),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_tensors(rules: ModuleType, name: str) -> None:
    rule, argument = name.split(": ")
    cure = rf"tf\.ragged\.map_flat_values\({rule}, {argument}\)"
    with pytest.raises(TypeError, match=f"^{name} must be a dense tensor.* {cure}"):
        RAGGED[name](rules)


def test_sparse_tensors(rules: ModuleType) -> None:
    sparse = tf.sparse.from_dense(tf.constant(X))
    for rule, args in ((rules.swish, (sparse,)), (rules.pair, (sparse, 1.0))):
        with pytest.raises(TypeError, match=r"x must be .* tf\.sparse\.to_dense\(x\)"):
            rule(*args)


def _three(function: Callable[[Any], Any], x: Any) -> list[Any]:
    """The first three derivatives, by tapes around tapes."""
    found = []
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = function(x)
            found.append(first.gradient(y, x))
        found.append(second.gradient(found[0], x, unconnected_gradients="zero"))
    found.append(third.gradient(found[1], x, unconnected_gradients="zero"))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", ["power", "raised"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_derivatives_of_a_static_power_at_0(
    rules: ModuleType, way: str, rule: str, n: int
) -> None:
    keyword = {"n": n} if rule == "power" else {"p": float(n)}
    x = np.array([0.0, 1.5, -2.0])
    got = WAYS[way](
        lambda: _three(
            lambda v: getattr(rules, rule)(v, **keyword), tf.constant(x, tf.float64)
        )
    )()
    polynomial = np.polynomial.Polynomial([*[0] * n, 1])
    for order, derivative in enumerate(got, 1):
        assert np.allclose(derivative, polynomial.deriv(order)(x)), order


@pytest.mark.parametrize("n", [-1, -2])
def test_derivatives_of_a_negative_power(rules: ModuleType, n: int) -> None:
    x, factor = np.array([1.5, -2.0]), 1
    found = _three(lambda v: rules.power(v, n=n), tf.constant(x, tf.float64))
    for order, derivative in enumerate(found, 1):
        factor *= n - order + 1
        assert np.allclose(derivative, factor * x ** (n - order))


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_derivatives_of_static_powers_in_rows(rules: ModuleType, p: int) -> None:
    x = tf.constant([0.0, 1.5, 0.7], tf.float64)

    def plain(v: Any) -> Any:
        powers = tf.ones_like(v)
        for _ in range(p):
            powers = powers * v
        return powers / (1 + tf.reduce_sum(powers, -1, keepdims=True))

    want = _three(plain, x) if p else [tf.zeros_like(x)] * 3
    got = _three(lambda v: rules.rows(v, p=p), x)
    for found, expected in zip(got, want, strict=True):
        assert np.allclose(found, expected)
