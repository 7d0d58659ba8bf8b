"""TensorFlow modules where TensorFlow is unlike the others: upstream gradients that are None,
statics that are tensors, tensors that are not dense, graphs of both versions, XLA, what a
tape keeps."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.targets.emission import ELEMENTWISE, INDEXED, module_of, own_rules

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

OWN = own_rules("tf")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(ELEMENTWISE, "tf")


@pytest.fixture(scope="module")
def indexed() -> ModuleType:
    return module_of(INDEXED, "tf")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return module_of(OWN, "tf")


X, Y = (0.5, -0.3), (1.0, 2.0)
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "graph": lambda f: tf.function(f, autograph=False),
    "XLA": lambda f: tf.function(f, autograph=False, jit_compile=True),
}
by_way = pytest.mark.parametrize("way", ["eager", "graph"])


def _both(rule: Any, *inputs: Any) -> Any:
    """The value, and its derivative by the first input."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = rule(*inputs)
    return value, tape.gradient(value, inputs[0])


def _nested(function: Callable[[Any], Any], x: Any, count: int) -> list[Any]:
    """Derivatives of so many orders, one tape within another."""
    if not count:
        return [function(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        *lower, last = _nested(function, x, count - 1)
    return [*lower, last, tape.gradient(last, x, unconnected_gradients="zero")]


# --- upstream gradients that are None ------------------------------------------------------


@by_way
@pytest.mark.parametrize("given", [(1, 0), (0, 1), (0, 0)])
def test_no_upstream_gradient_is_zeros(
    own: ModuleType, way: str, given: tuple[int, int]
) -> None:
    x, y = tf.constant(X, tf.float64), tf.constant(Y, tf.float64)
    upstream = [tf.ones_like(x) if k else None for k in given]

    def both() -> Any:
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, y])
            with tf.GradientTape() as tape:
                tape.watch([x, y])
                outputs = own.pair(x, y)
            first = tape.gradient(outputs, [x, y], output_gradients=upstream)
        return first, outer.gradient(first, [x, y])

    (dx, dy), (second_x, second_y) = WAYS[way](both)()
    a, b = given
    u, v = np.array(X), np.array(Y)
    assert np.allclose(dx, 3 * a * (v + np.cos(u)) + 3 * b * v**2)
    assert np.allclose(dy, 3 * a * u + 6 * b * v * u)
    assert np.allclose(second_x, a * (3 - 3 * np.sin(u)) + 6 * b * v)
    assert np.allclose(second_y, 3 * a + 6 * b * (v + u))


def test_no_upstream_gradient_without_the_record(
    own: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `tf.custom_gradient` is all there is."""
    runtime = sys.modules[f"{own.__package__}._gradspec"]
    monkeypatch.setattr(runtime, "record", None)
    test_no_upstream_gradient_is_zeros(own, "eager", (0, 1))


# --- statics and numbers -------------------------------------------------------------------


@by_way
def test_a_static_tensor_that_is_known(rules: ModuleType, way: str) -> None:
    x = tf.constant(X)
    numbers = rules.swish(x, beta=2.0), rules.power_of(x, n=3)
    tensors = WAYS[way](
        lambda: (
            rules.swish(x, beta=tf.constant(2.0)),
            rules.power_of(x, n=tf.constant(3, tf.int64)),
        )
    )()
    arrays = rules.swish(x, beta=np.array(2.0)), rules.power_of(x, n=np.array(3))
    for number, tensor, array in zip(numbers, tensors, arrays, strict=True):
        assert np.allclose(number, tensor) and np.allclose(number, array)


def test_a_static_tensor_that_is_unknown(rules: ModuleType) -> None:
    x = tf.constant(X)
    said = r"{}: {} is static, .* give a Python number, or declare {} without `static`"
    with pytest.raises(TypeError, match=said.format("swish", "beta", "beta")):
        tf.function(lambda b: rules.swish(x, beta=b))(tf.constant(2.0))
    with pytest.raises(TypeError, match=said.format("power_of", "n", "n")):
        tf.function(lambda n: rules.power_of(x, n=n))(tf.constant(2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: tf.Variable(2.0), r"swish: beta is static and gets no gradient; .*"),
        (lambda: None, "swish: beta must be a number, not None"),
        (lambda: tf.constant([2.0, 1.0]), "swish: beta must be a number, not an array"),
    ],
)
def test_what_is_no_static_number(
    rules: ModuleType, given: Callable[[], Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        rules.swish(tf.constant(X), beta=given())


def test_a_static_value_is_no_reason_to_trace_again(rules: ModuleType) -> None:
    graph = tf.function(lambda v: rules.spike(v, k=3.5), reduce_retracing=True)
    for length in (2, 3, 4, 5):
        graph(tf.ones(length))
    assert graph.experimental_get_tracing_count() <= 2


@by_way
@pytest.mark.parametrize(
    ("rule", "n"),
    [("power", -1), *((r, n) for r in ("power", "raised", "rows") for n in range(4))],
)
def test_derivatives_of_static_powers(
    own: ModuleType, way: str, rule: str, n: int
) -> None:
    """At 0 too, up to the third order."""
    keyword = {"p": n if rule == "rows" else float(n)} if rule != "power" else {"n": n}
    x = tf.constant([1.5, -2.0] if n < 0 else [0.0, 1.5, 0.7], tf.float64)

    def plain(v: Any) -> Any:
        powers = tf.ones_like(v)
        for _ in range(abs(n)):
            powers = powers * v
        if rule == "rows":
            return powers / (1 + tf.reduce_sum(powers, -1, keepdims=True))
        return powers if n >= 0 else 1 / powers

    got = WAYS[way](lambda: _nested(lambda v: getattr(own, rule)(v, **keyword), x, 3))
    for found, wanted in zip(got(), _nested(plain, x, 3), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


# --- tensors that are not dense, labels, half precision ------------------------------------


def _ragged() -> Any:
    return tf.ragged.constant([[1.0, 2.0], [3.0]])


RAGGED = {
    "swish: x": lambda m, *_: m.swish(_ragged()),
    "product: y": lambda *m: m[2].product(1.0, _ragged()),
    "softmax: x": lambda _, m, __: m.softmax(_ragged()),
    "maskf: n": lambda m, *_: m.maskf(True, tf.cast(_ragged(), tf.int32), 1.0),
    "maskf: b": lambda m, *_: m.maskf(_ragged() > 1.0, 1, 1.0),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_tensors_are_refused(
    rules: ModuleType, indexed: ModuleType, own: ModuleType, name: str
) -> None:
    rule, argument = name.split(": ")
    cure = rf"tf\.ragged\.map_flat_values\({rule}, {argument}\)"
    with pytest.raises(TypeError, match=f"^{name} must be a dense tensor.* {cure}"):
        RAGGED[name](rules, indexed, own)


def test_sparse_tensors_are_refused(rules: ModuleType, own: ModuleType) -> None:
    sparse = tf.sparse.from_dense(tf.constant(X))
    for rule, args in ((rules.swish, (sparse,)), (own.product, (sparse, 1.0))):
        with pytest.raises(TypeError, match=r"x must be .* tf\.sparse\.to_dense\(x\)"):
            rule(*args)


def test_half_precision_is_rounded_once(indexed: ModuleType) -> None:
    x = tf.constant(np.random.default_rng(5).normal(size=(2, 3)), tf.bfloat16)
    exact = indexed.softmax(tf.cast(x, tf.float64)).numpy()
    found = indexed.softmax(x)
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float64).numpy(), exact, rtol=2**-8)


def test_shapes_that_a_graph_learns_late_are_refused_then(indexed: ModuleType) -> None:
    signature = [tf.TensorSpec(None, tf.float32)] * 2
    graph = tf.function(indexed.two, input_signature=signature)
    assert graph(tf.ones((2, 3)), tf.ones(3))[0].shape == (2,)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"two: w must have"):
        graph(tf.ones((2, 1)), tf.ones(3))
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph(tf.ones((2, 3)), tf.ones((2, 3)))


@by_way
def test_what_is_gathered_from_a_result_goes_back(rules: ModuleType, way: str) -> None:
    """The gradient of `tf.gather` is a `tf.IndexedSlices`, which has no products."""
    x = tf.constant([0.5, -1.0, 2.0, 3.0])
    run = WAYS[way](
        lambda x: _both(lambda x: tf.gather(rules.reverse_gradient(x), [0, 2, 2]), x)
    )
    assert run(x)[1].numpy().tolist() == [-1.0, 0.0, -2.0, 0.0]


# --- graphs of both versions, and XLA ------------------------------------------------------


def test_a_graph_runs_what_is_written(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AutoGraph would run a copy of its own, from a file of its own."""
    runtime = sys.modules[f"{rules.__package__}._gradspec"]
    applied, ran = runtime._apply, []

    def noted(core: Any, *args: Any) -> Any:
        ran.append(
            (sys._getframe(1).f_code.co_filename, core.func.__code__.co_filename)
        )
        return applied(core, *args)

    monkeypatch.setattr(runtime, "_apply", noted)
    tf.function(lambda x, y: rules.complex_op(x, y))(tf.ones(3), tf.ones(3))
    assert ran == [(runtime.__file__, rules.__file__)]


def test_equality_in_graphs_of_tensorflow_1(own: ModuleType) -> None:
    """There the operator asks whether tensors are the same object."""

    def made() -> list[Any]:
        x = tf.constant([0.5, 0.0, -2.0], tf.float64)
        t = tf.constant([0.0, 1.0, 2.0], tf.float64)
        picked, jumping = own.picked(x, tf.constant(2)), own.jumping(x, t)
        others = [own.apart(x, tf.zeros_like(x)), own.root(x)]
        slopes = [tf.gradients(y, x)[0] for y in (picked, jumping)]
        return [picked, jumping, *others, *slopes]

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        first = session.run(made())
    wanted = [
        *(4.0, [0.5, 0.0, -6.0], [0.5, 0.0, 2.0], np.cbrt([0.5, 0.0, -2.0])),
        *([0.0, 0.0, -4.0], [1.0, 3.0, 3.0]),
    ]
    for found, other, want in zip(first, tf.function(made)(), wanted, strict=True):
        assert np.allclose(found, want) and np.allclose(other, want)


_OF_TENSORFLOW_1 = """
import json, sys
import tensorflow as tf
tf.compat.v1.disable_v2_behavior()
from emitted.tf import rules as rows
x = tf.compat.v1.placeholder(tf.float32, [None, None])
g = tf.compat.v1.placeholder(tf.float32, [None])
found = tf.compat.v1.gradients(rows.scaled(x, g), [x, g])
with tf.compat.v1.Session() as session:
    found = session.run(found, {x: [[1, 2], [3, 4]], g: [5, 6]})
print(json.dumps([d.tolist() for d in found]))
"""


def test_sizes_that_tensorflow_1_does_not_know(tmp_path: Path) -> None:
    """There the size of an axis is an object, also where it is unknown."""
    (tmp_path / "rules.grad").write_text(
        "rule scaled(x[..., n], g[n]) -> y[..., n]:\n"
        "    m = sum(x[j] for j) / n\n"
        "    y[i] = (x[i] - m) * g[i]\n"
    )
    gradspec.compile_paths(tmp_path / "rules.grad", "tf", tmp_path / "emitted")
    made = subprocess.run(
        [sys.executable, "-c", _OF_TENSORFLOW_1],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    dx, dg = json.loads(made.stdout)
    np.testing.assert_allclose(dx, [[-0.5, 0.5], [-0.5, 0.5]])
    np.testing.assert_allclose(dg, [-1, 1])


def test_a_broadcast_in_a_loop_under_xla_twice_differentiated(own: ModuleType) -> None:
    """A sum over axes that only the graph knows has a derivative whose shape XLA cannot
    find in a loop, unless the axes are kept.
    """

    def second(x: Any, y: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch([x, y])
                _, total = tf.while_loop(
                    lambda k, _: k < 2,
                    lambda k, total: (k + 1, total + tf.reduce_sum(own.product(x, y))),
                    (0, 0.0),
                    maximum_iterations=2,
                )
            dx, dy = inner.gradient(total, [x, y])
            whole = tf.reduce_sum(dx**2) + tf.reduce_sum(dy**2)
        return outer.gradient(whole, [x, y])

    draw = np.random.default_rng(3).normal
    x, y = (tf.constant(draw(size=s), tf.float32) for s in ((2, 1), (1, 3)))
    for got, want in zip(WAYS["XLA"](second)(x, y), second(x, y), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


@pytest.mark.parametrize("way", ["graph", "XLA"])
@pytest.mark.parametrize(("name", "sign"), [("softplus_of", 1), ("softplus_below", -1)])
def test_softplus_has_its_digits_in_graphs(
    own: ModuleType, name: str, sign: int, way: str
) -> None:
    """Of a number and of its opposite."""
    rule, x = getattr(own, name), np.linspace(-80, 80, 401, dtype=np.float32)
    value, slope = WAYS[way](lambda v: _both(rule, v))(tf.constant(x))
    wide = sign * x.astype(np.float64)
    np.testing.assert_allclose(value, np.logaddexp(0.0, wide), rtol=8e-7)
    np.testing.assert_allclose(slope, sign / (1.0 + np.exp(-wide)), rtol=8e-7)
    ends = np.array([np.inf, -np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(0.0, sign * ends)
    np.testing.assert_array_equal(WAYS[way](rule)(tf.constant(ends)), expected)


# --- what a tape keeps, and what differentiates it once more -------------------------------


def _alive() -> int:
    gc.collect()
    return sum(isinstance(o, tf.Tensor) for o in gc.get_objects())


def test_a_tape_keeps_what_the_gradient_uses(own: ModuleType) -> None:
    x, g = tf.ones((2, 3)), tf.ones(3)
    # a result as it is returned and as it is kept; then means and deviations
    for rule, given, count in ((own.logistic, [x], 2), (own.standard, [x, g], 4)):
        with tf.GradientTape() as tape:
            tape.watch(given)
            before = _alive()
            y = rule(*given)
            assert _alive() <= before + count
        assert tape.gradient(y, x).shape == x.shape


@pytest.mark.parametrize("way", WAYS)
def test_a_second_derivative_is_that_of_the_gradient_as_computed(
    own: ModuleType, way: str
) -> None:
    """Where it is declared, a result has another derivative than its values: the gradient
    does not see it through the declaration.
    """
    x = tf.constant(X, tf.float64)
    e = np.exp(X)
    _, *found = WAYS[way](lambda x: _nested(own.tripled, x, 2))(x)
    assert np.allclose(found, (3 * e, 3 * e))


def _along(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(x, v) as along:
        y = f(x)
    return along.jvp(y)


@pytest.mark.parametrize("way", WAYS)
def test_accumulators_within_another_of_a_rule_that_compares(
    own: ModuleType, way: str
) -> None:
    """A graph has no tangent of a tangent of a comparison: none may be recorded."""
    x, v = tf.constant(X, tf.float64), tf.constant(Y, tf.float64)
    twice = WAYS[way](lambda: _along(lambda x: _along(own.gated, x, v), x, v))
    s = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(twice(), 3 * s * (1 - s) * v.numpy() ** 2, rtol=1e-9)


@pytest.mark.parametrize("known", [(None, None), None], ids=["sizes", "rank"])
def test_an_accumulator_within_another_where_no_size_is_known(
    own: ModuleType, known: Any
) -> None:
    @tf.function(input_signature=[tf.TensorSpec(known)])
    def twice(x: Any) -> Any:
        v = tf.ones_like(x)
        return _along(lambda x: _along(own.cubed, x, v), x, v)

    x = tf.constant(np.random.default_rng(7).normal(size=(2, 3)), tf.float32)
    rises = 6 * tf.reduce_sum(x, -1, keepdims=True)
    np.testing.assert_allclose(twice(x), rises + 0 * x, rtol=1e-5)
