"""The `keras.layers.Layer` of a rule with params: fitted, saved, and loaded elsewhere."""

from __future__ import annotations

import copy
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
from tests.targets.layer_rules import LEARNED

pytestmark = [
    pytest.mark.tf,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
tf = pytest.importorskip("tensorflow")
np = pytest.importorskip("numpy")


def emitted() -> Emitted:
    found = emit(planned(LEARNED, "norms/learned.grad"), "tf").value
    assert found is not None
    return found


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(emitted())


def data(*shape: int):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def fitted(rules: ModuleType):
    tf.keras.utils.set_random_seed(0)
    start = tf.keras.Input((6,))
    x = tf.keras.layers.Dense(8)(start)
    x = rules.Prelu(shape=8)(rules.LayerNorm()(x))
    model = tf.keras.Model(start, x)
    model.compile("sgd", "mse")
    history = model.fit(data(64, 6), data(64, 8), epochs=4, verbose=0)
    return model, history.history["loss"]


def test_fitting_lowers_the_loss_and_moves_every_weight(rules):
    model, losses = fitted(rules)
    assert losses[-1] < losses[0]
    layers = model.layers[2:]
    assert [w.path for layer in layers for w in layer.trainable_weights] == [
        "layer_norm/gain",
        "layer_norm/bias",
        "prelu/a",
    ]
    for layer in layers:
        for weight, initial in zip(layer.weights, layer._initial.values(), strict=True):
            assert not np.allclose(weight.numpy(), initial)


_READER = """
import sys
import numpy as np
import tensorflow as tf
from other.norms import learned  # noqa: F401: its classes are registered, under any name

model = tf.keras.models.load_model(sys.argv[1])
np.save(sys.argv[2], model.predict(np.load(sys.argv[3]), verbose=0))
"""


def test_a_saved_model_is_loaded_in_another_process(rules, tmp_path: Path):
    model, _ = fitted(rules)
    model.save(tmp_path / "model.keras")
    x = data(5, 6)
    np.save(tmp_path / "x.npy", x)
    put(tmp_path / "other", emitted())
    (tmp_path / "reader.py").write_text(_READER, encoding="utf-8")
    names = ["reader.py", "model.keras", "y.npy", "x.npy"]
    run = [sys.executable, *(str(tmp_path / name) for name in names)]
    subprocess.run(run, check=True, capture_output=True, env={**os.environ})
    expected = model.predict(x, verbose=0)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


def test_it_is_keras_own_layer(rules):
    x = data(3, 5)
    ours, theirs = rules.LayerNorm(eps=1e-3), tf.keras.layers.LayerNormalization()
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-5)
    slope = rules.Prelu()
    np.testing.assert_allclose(slope(x), np.where(x > 0, x, 0.25 * x))


def test_its_configuration_makes_it_again(rules):
    layer = rules.Mixture(3, device=2, s=0.5, shape=4, name="mine")
    config = layer.get_config()
    other = rules.Mixture.from_config(config)
    assert other.get_config() == config
    assert config["m"] == 3
    assert config["s"] == 0.5
    assert config["name"] == "mine"


def test_several_inputs_and_sizes(rules):
    layer = rules.Mixture(3, device=2)
    u, v = layer(tf.ones((2,)), tf.ones((2, 4)))
    assert {w.name: tuple(w.shape) for w in layer.weights} == {
        "w": (3, 4),
        "s": (),
        "to": (),
    }
    np.testing.assert_allclose(u, [2.0, 2.0])
    np.testing.assert_allclose(v, np.full((2, 3), -4 / 3), rtol=1e-6)


def test_it_is_copied_and_keeps_to_a_policy(rules):
    layer = rules.LayerNorm(dtype="mixed_float16")
    y = layer(data(3, 5))
    assert y.dtype == tf.float16
    assert layer.gain.dtype == "float32"
    other = copy.deepcopy(layer)
    np.testing.assert_array_equal(other(data(3, 5)), y)


def test_no_name_of_the_class_is_forgotten():
    from gradspec.targets.tf.layer import OWN

    public = {n for n in dir(tf.keras.layers.Layer()) if not n.startswith("_")}
    assert public <= OWN
