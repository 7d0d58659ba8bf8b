"""The `keras.layers.Layer` of a rule with params, and functions of rules in Keras models: the
shapes they tell of, fitted, saved, and loaded in another process."""

from __future__ import annotations

import copy
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.targets.emission import own_rules

pytestmark = [
    pytest.mark.tf,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
tf = pytest.importorskip("tensorflow")

RULES = own_rules("keras")
"""`mish` has the name of an activation that Keras has itself."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the rules are compiled, below a package."""
    folder = tmp_path_factory.mktemp("keras")
    (folder / "rules" / "waves").mkdir(parents=True)
    (folder / "rules" / "waves" / "functions.grad").write_text(RULES)
    gradspec.compile_paths(folder / "rules", "tf", folder / "emitted_for_keras")
    return folder


@pytest.fixture(scope="module")
def rules(folder: Path) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        return importlib.import_module("emitted_for_keras.tf.waves.functions")


def data(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def shapes(results: Any) -> Any:
    if isinstance(results, tuple):
        return tuple(tuple(result.shape) for result in results)
    return tuple(results.shape)


# --- shapes, types, names ------------------------------------------------------------------

CASES = [
    ("Slope", {}, [(4, 3)]),
    ("Slope", {}, [()]),
    ("Slope", {"shape": (5, 1, 3)}, [(4, 3)]),
    ("Pair", {}, [(4, 1), (3,)]),
    ("Pair", {"shape": (2, 1, 1)}, [(4, 1), (3,)]),
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
def test_what_is_said_is_what_comes(
    rules: ModuleType, name: str, made: Any, given: Any
) -> None:
    layer = getattr(rules, name)(**made)
    said = layer.compute_output_shape(*given)
    assert said == shapes(layer(*(data(*shape) for shape in given)))
    assert layer.compute_output_shape(*map(list, given)) == said


def test_sizes_that_are_not_known_yet(rules: ModuleType) -> None:
    x, z = tf.keras.Input((None, 3)), tf.keras.Input((None, 3))
    assert shapes(rules.Pair()(x, z)) == ((None, None, 3), (None, None, 3))
    assert shapes(rules.Apart()(x, z)) == (None, None, 3)
    assert shapes(rules.Distance()(x, z)) == (None, None)
    assert shapes(rules.Turned()(x)) == ((None, 3, None), (None, 3))
    assert shapes(rules.Slope(shape=(4, 1))(x)) == (None, 4, 3)
    layer = rules.Apart()  # what one input does not show another does
    y = layer(tf.keras.Input((None, None)), tf.keras.Input((4, 3)))
    assert (y.shape, layer.g.shape) == ((None, 4, 3), (3,))
    with pytest.raises(ValueError, match="Incompatible shapes"):
        rules.Pair().compute_output_shape((4, 2), (3,))


def test_types(rules: ModuleType) -> None:
    """Positions are not cast, a boolean is said to be one, a policy is kept to."""
    table = rules.Table(10, 4)
    assert table(tf.keras.Input((3,), dtype="int32")).shape == (None, 3, 4)
    assert table(tf.constant([[1, 2, 9]])).shape == (1, 3, 4)
    y, up = rules.Flagged()(tf.keras.Input((3,)))
    assert (y.dtype, up.dtype) == ("float32", "bool")
    for policy in ("mixed_bfloat16", "mixed_float16", "float64"):
        layer = rules.Rows(4, dtype=policy)
        said, came = layer(tf.keras.Input((3,))), layer(data(2, 3))
        assert said.dtype == layer.compute_dtype == came.dtype.name
        assert layer.w.dtype == ("float64" if policy == "float64" else "float32")
    other = copy.deepcopy(layer)
    np.testing.assert_array_equal(other(data(3, 3)), layer(data(3, 3)))


def test_its_configuration_makes_it_again(rules: ModuleType) -> None:
    layer = rules.Mixture(3, device=2, s=0.5, shape=4, name="mine")
    config = layer.get_config()
    assert rules.Mixture.from_config(config).get_config() == config
    assert [config[key] for key in ("m", "s", "name")] == [3, 0.5, "mine"]
    layer = rules.Mixture(3, device=2)
    u, v = layer(tf.ones(2), tf.ones((2, 4)))
    made = {w.name: tuple(w.shape) for w in layer.weights}
    assert made == {"w": (3, 4), "s": (), "to": ()}
    np.testing.assert_allclose(u, [2.0, 2.0])
    np.testing.assert_allclose(v, np.full((2, 3), -4 / 3), rtol=1e-6)


def test_a_layer_at_each_step_of_time(rules: ModuleType) -> None:
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


def test_a_model_in_a_row_knows_its_shapes(rules: ModuleType) -> None:
    layers = [rules.Rows(4), rules.Slope(shape=4), tf.keras.layers.Dense(2)]
    model = tf.keras.Sequential(layers)
    model.build((None, 7, 3))
    lines: list[str] = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert "\n".join(lines).count("(None, 7, 4)") == 2
    assert model.output_shape == (None, 7, 2)


def test_functions_of_one_tensor_are_registered(rules: ModuleType) -> None:
    registered = tf.keras.utils.get_registered_name
    for name in ("mish", "wave", "across"):
        assert registered(getattr(rules, name)) == f"waves.functions>{name}"
    for name in ("squares", "needing", "summed", "split"):
        assert registered(getattr(rules, name)) == name


# --- fitted, saved, loaded -----------------------------------------------------------------

READER = """
import numpy as np
import tensorflow as tf
from other_name.tf.waves import functions as anything

given = np.load("given.npz")

def made(name, **options):
    model = tf.keras.models.load_model(f"{name}.keras", **options)
    return model.predict(given["x"], verbose=0).ravel()

own = {"squares": anything.squares}
found = [made("layers"), made("functions"), made("loss", custom_objects=own)]
np.save("made.npy", np.concatenate(found))
"""
"""What a process that imports the module under another name makes of the models: a loss
that is no activation is given by name, as the documentation says.
"""


def _layers(rules: ModuleType, start: Any) -> Any:
    x = tf.keras.layers.TimeDistributed(rules.Rows(4, s=0.5))(start)
    dense = tf.keras.layers.Dense(4)(start)
    return tf.keras.layers.Add()(list(rules.Pair()(rules.Slope(shape=4)(x), dense)))


def _functions(rules: ModuleType, x: Any) -> Any:
    for function in (rules.mish, rules.wave, rules.across):
        x = tf.keras.layers.Dense(4, activation=function)(x)
    return x


def test_models_are_fitted_cloned_saved_and_loaded_elsewhere(
    rules: ModuleType, folder: Path, tmp_path: Path
) -> None:
    tf.keras.utils.set_random_seed(0)
    x, models, expected = data(6, 5, 3), {}, []
    for name, body, loss in (
        ("layers", _layers, "mse"),
        ("functions", _functions, "mse"),
        ("loss", lambda _, x: tf.keras.layers.Dense(4)(x), rules.squares),
    ):
        start = tf.keras.Input((5, 3))
        model = models[name] = tf.keras.Model(start, body(rules, start))
        before = [w.numpy() for w in model.trainable_weights]
        model.compile(tf.keras.optimizers.SGD(0.01), loss)
        fitted = model.fit(data(64, 5, 3), data(64, 5, 4), epochs=4, verbose=0)
        losses = fitted.history["loss"]
        assert losses[-1] < losses[0]
        for weight, first in zip(model.trainable_weights, before, strict=True):
            assert not np.allclose(weight.numpy(), first), weight.path
        expected.append(model.predict(x, verbose=0).ravel())
        model.save(tmp_path / f"{name}.keras")
    twin = tf.keras.models.clone_model(models["layers"])
    twin.set_weights(models["layers"].get_weights())
    np.testing.assert_array_equal(twin.predict(x, verbose=0).ravel(), expected[0])
    np.savez(tmp_path / "given.npz", x=x)
    gradspec.compile_paths(folder / "rules", "tf", tmp_path / "other_name")
    (tmp_path / "reader.py").write_text(READER, encoding="utf-8")
    run = [sys.executable, "reader.py"]
    subprocess.run(run, check=True, capture_output=True, cwd=tmp_path)
    made = np.load(tmp_path / "made.npy")
    np.testing.assert_allclose(made, np.concatenate(expected), rtol=1e-6)
