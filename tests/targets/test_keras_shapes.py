"""What a Keras layer says of the shapes of its results, before it has data and after."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gradspec.driver.imported import put
from gradspec.targets import emit
from gradspec.targets.target import Emitted
from tests.targets.emission import imported, planned

pytestmark = [
    pytest.mark.tf,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
tf = pytest.importorskip("tensorflow")
np = pytest.importorskip("numpy")

RULES = """
rule slope(x, a: param = 1.0) -> y:
    y = a * sin(x)
    override dx = 3 * dy * a * cos(x) because "a marker: thrice the derivative"

rule pair(x, z, a: param = 0.5) -> (u, v):
    u = x * z
    v = a * z**2

rule rows(x[..., k], w[m, k]: param = 1 / 2, s: static = 2.0) -> y[..., m]:
    y[i] = s * sum(w[i, j] * x[j] for j)

rule distance(x[..., k], z[..., k], g[k]: param = 1) -> y[...]:
    y = sum(g[j] * (x[j] - z[j])**2 for j)

rule apart(x[..., k], z[..., k], g[k]: param = 1) -> y[..., k]:
    y[j] = g[j] * (x[j] - z[j])**2

rule total(x[n], g[n]: param = 1) -> y[]:
    y = sum(g[j] * x[j] for j)

rule turned(x[..., m, n], g[n]: param = 1, b[3]: param = 1) -> (y[..., n, m], c[..., 3]):
    y[j, i] = g[j] * x[i, j]
    c[l] = b[l] * sum(x[i, j] for i, j)

rule table(t[...]: int, w[v, k]: param = 1) -> y[..., k]:
    y[j] = w[t, j]

rule sized(x[..., k], n: static int, w[n, k]: param = 1) -> y[..., n]:
    y[i] = sum(w[i, j] * x[j] for j)

rule flagged(x, a: param = 1.0) -> (y, up: bool):
    y = a * x
    up = x > 0

rule constant(x, a: param = 1.0) -> (y, c: nograd):
    y = a * sin(x)
    c = 0.5

rule matrix(x[m, n], y[], g[n]: param = 1) -> z[m, n]:
    z[i, j] = g[j] * x[i, j] * y

rule both(x, z[..., k], a: param = 1.0) -> y[..., k]:
    y[i] = a * x * z[i]
"""


def emitted() -> Emitted:
    found = emit(planned(RULES, "shapes.grad"), "tf").value
    assert found is not None
    return found


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(emitted())


def data(*shape: int):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def shapes(results: object) -> object:
    if isinstance(results, tuple):
        return tuple(tuple(result.shape) for result in results)
    return tuple(results.shape)


CASES = [
    ("Slope", {}, [(4, 3)]),
    ("Slope", {}, [()]),
    ("Slope", {"shape": 3}, [(4, 3)]),
    ("Slope", {"shape": (5, 1, 3)}, [(4, 3)]),
    ("Pair", {}, [(4, 1), (3,)]),
    ("Pair", {"shape": (2, 1, 1)}, [(4, 1), (3,)]),
    ("Rows", {"m": 5}, [(4, 3)]),
    ("Rows", {"m": 5}, [(2, 4, 3)]),
    ("Rows", {"m": 5}, [(3,)]),
    ("Distance", {}, [(4, 1, 3), (6, 3)]),
    ("Apart", {}, [(4, 1, 3), (6, 3)]),
    ("Total", {}, [(3,)]),
    ("Turned", {}, [(2, 4, 5)]),
    ("Sized", {"n": 6}, [(2, 3)]),
    ("Constant", {"shape": (4, 1, 1)}, [(2, 3)]),
    ("Matrix", {}, [(2, 3), ()]),
    ("Both", {"shape": (7, 1, 1)}, [(2, 1), (3, 4)]),
]


@pytest.mark.parametrize(("name", "made", "given"), CASES)
def test_what_is_said_is_what_comes(rules, name, made, given):
    layer = getattr(rules, name)(**made)
    said = layer.compute_output_shape(*given)
    assert said == shapes(layer(*(data(*shape) for shape in given)))
    lists = (list(shape) for shape in given)
    assert layer.compute_output_shape(*lists) == said


def test_positions_are_not_cast(rules):
    layer = rules.Table(10, 4)
    assert layer.compute_output_shape((None, 3)) == (None, 3, 4)
    assert layer(tf.keras.Input((3,), dtype="int32")).shape == (None, 3, 4)
    assert layer(tf.constant([[1, 2, 9]])).shape == (1, 3, 4)


def test_sizes_that_are_not_known_yet(rules):
    x, z = tf.keras.Input((None, 3)), tf.keras.Input((None, 3))
    assert shapes(rules.Pair()(x, z)) == ((None, None, 3), (None, None, 3))
    assert shapes(rules.Apart()(x, z)) == (None, None, 3)
    assert shapes(rules.Distance()(x, z)) == (None, None)
    assert shapes(rules.Turned()(x)) == ((None, 3, None), (None, 3))
    assert shapes(rules.Slope(shape=(4, 1))(x)) == (None, 4, 3)


def test_what_one_input_does_not_show_another_does(rules):
    layer = rules.Apart()
    y = layer(tf.keras.Input((None, None)), tf.keras.Input((4, 3)))
    assert y.shape == (None, 4, 3)
    assert layer.g.shape == (3,)


def test_shapes_that_do_not_broadcast_are_refused(rules):
    with pytest.raises(ValueError, match="Incompatible shapes"):
        rules.Pair().compute_output_shape((4, 2), (3,))


def test_a_boolean_is_said_to_be_one(rules):
    y, up = rules.Flagged()(tf.keras.Input((3,)))
    assert (y.dtype, up.dtype) == ("float32", "bool")
    assert "compute_output_shape" not in vars(rules.Flagged)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_what_is_said_keeps_to_a_policy(rules, policy):
    layer = rules.Rows(4, dtype=policy)
    said, came = layer(tf.keras.Input((3,))), layer(data(2, 3))
    assert said.dtype == layer.compute_dtype == came.dtype.name


def test_a_layer_at_each_step_of_time(rules):
    x = tf.constant(data(2, 5, 3))
    start = tf.keras.Input((5, 3))
    layer = rules.Rows(4)
    steps = tf.keras.layers.TimeDistributed(layer)
    assert steps(start).shape == (None, 5, 4)
    np.testing.assert_allclose(steps(x), layer(x), rtol=1e-5)
    slope = tf.keras.layers.TimeDistributed(rules.Slope())
    model = tf.function(tf.keras.Model(start, slope(start)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    np.testing.assert_allclose(tape.gradient(y, x), 3 * np.cos(x), rtol=1e-4)


def test_a_model_in_a_row_knows_its_shapes(rules):
    layers = [rules.Rows(4), rules.Slope(shape=4), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.build((None, 7, 3))
    lines: list[str] = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert "\n".join(lines).count("(None, 7, 4)") == 2
    assert model.output_shape == (None, 7, 2)


def fitted(rules: ModuleType):
    tf.keras.utils.set_random_seed(0)
    start = tf.keras.Input((5, 3))
    x = tf.keras.layers.TimeDistributed(rules.Rows(4, s=0.5))(start)
    u, v = rules.Pair()(rules.Slope(shape=4)(x), tf.keras.layers.Dense(4)(start))
    model = tf.keras.Model(start, tf.keras.layers.Add()([u, v]))
    model.compile(tf.keras.optimizers.SGD(0.01), "mse")
    history = model.fit(data(64, 5, 3), data(64, 5, 4), epochs=4, verbose=0)
    return model, history.history["loss"]


_READER = """
import sys
import numpy as np
import tensorflow as tf
from other import shapes as anything

model = tf.keras.models.load_model(sys.argv[1])
np.save(sys.argv[2], model.predict(np.load(sys.argv[3]), verbose=0))
"""


def test_it_is_fitted_cloned_saved_and_loaded_elsewhere(rules, tmp_path: Path):
    model, losses = fitted(rules)
    assert losses[-1] < losses[0]
    x = data(6, 5, 3)
    expected = model.predict(x, verbose=0)
    twin = tf.keras.models.clone_model(model)
    twin.set_weights(model.get_weights())
    np.testing.assert_array_equal(twin.predict(x, verbose=0), expected)
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "x.npy", x)
    put(tmp_path / "other", emitted())
    (tmp_path / "reader.py").write_text(_READER, encoding="utf-8")
    names = ["reader.py", "model.keras", "y.npy", "x.npy"]
    run = [sys.executable, *(str(tmp_path / name) for name in names)]
    subprocess.run(run, check=True, capture_output=True, env={**os.environ})
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
