"""Emitted functions in Keras models that are saved, and loaded in another process."""

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
rule mish(x) -> y:
    y = sin(x)

rule wave(x, k: static = 2.0) -> y:
    y = sin(k * x)

rule across(x[..., n]) -> y[..., n]:
    y[i] = x[i] - mean(x[j] for j)

rule squares(t: nograd, p) -> loss:
    loss = 3 * (p - t)**2

rule needing(x, k: static) -> y:
    y = k * x

rule summed(x[..., n]) -> y[...]:
    y = sum(x[j] for j)

rule counted(n: int) -> y:
    y = sqrt(n)

rule split(x) -> (a, b):
    a = sin(x)
    b = cos(x)
"""
"""The first has the name of an activation that Keras has itself."""


def emitted() -> Emitted:
    found = emit(planned(RULES, "waves/functions.grad"), "tf").value
    assert found is not None
    return found


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(emitted())


def data(*shape: int):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_functions_of_one_tensor_are_registered(rules):
    registered = tf.keras.utils.get_registered_name
    names = {name: registered(getattr(rules, name)) for name in rules.__all__}
    activations = ("mish", "wave", "across")
    expected = {name: f"waves.functions>{name}" for name in activations}
    others = ("squares", "needing", "summed", "counted", "split")
    assert names == {**expected, **{name: name for name in others}}


def loaded(
    tmp_path: Path, model: tf.keras.Model, with_loss: str = "", options: str = ""
) -> list[float]:
    """What a process that imports the module under another name makes of the model: its
    loss, and what it predicts. ``with_loss`` is run before it is loaded."""
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "given.npz", x=data(5, 3), y=data(5, 4))
    put(tmp_path / "other", emitted())
    reader = f"""
import numpy as np
import tensorflow as tf
from other.waves import functions as anything

given = np.load("given.npz")
{with_loss}
model = tf.keras.models.load_model("model.keras"{options})
made = [model.evaluate(given["x"], given["y"], verbose=0)]
np.save("made.npy", [*made, *model.predict(given["x"], verbose=0).ravel()])
"""
    (tmp_path / "reader.py").write_text(reader, encoding="utf-8")
    run = [sys.executable, "reader.py"]
    subprocess.run(
        run, check=True, capture_output=True, env={**os.environ}, cwd=tmp_path
    )
    return np.load(tmp_path / "made.npy").tolist()


def made(model: tf.keras.Model) -> list[float]:
    loss = model.evaluate(data(5, 3), data(5, 4), verbose=0)
    return [loss, *model.predict(data(5, 3), verbose=0).ravel()]


def test_an_activation_is_loaded_as_the_rule(rules, tmp_path: Path):
    layers = [
        tf.keras.layers.Dense(4, activation=function)
        for function in (rules.mish, rules.wave, rules.across)
    ]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    model.compile("sgd", "mse")
    np.testing.assert_allclose(loaded(tmp_path, model), made(model), rtol=1e-6)


@pytest.mark.parametrize(
    ("with_loss", "options"),
    [
        ("", ', custom_objects={"squares": anything.squares}'),
        (
            'tf.keras.utils.register_keras_serializable("mine")(anything.squares)',
            "",
        ),
    ],
    ids=["given", "registered"],
)
def test_another_function_is_loaded_as_documented(rules, tmp_path, with_loss, options):
    function = rules.squares
    if with_loss:
        function = imported(emitted()).squares
        tf.keras.utils.register_keras_serializable("mine")(function)
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4)])
    model.compile("sgd", function)
    expected = made(model)
    np.testing.assert_allclose(
        loaded(tmp_path, model, with_loss, options), expected, rtol=1e-6
    )
