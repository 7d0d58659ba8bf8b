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


READER = """
import numpy as np
import tensorflow as tf
from other.waves import functions as anything

given = np.load("given.npz")

def made(name, **options):
    model = tf.keras.models.load_model(f"{name}.keras", **options)
    loss = model.evaluate(given["x"], given["y"], verbose=0)
    return [loss, *model.predict(given["x"], verbose=0).ravel()]

found = [made("activations"), made("given", custom_objects={"squares": anything.squares})]
tf.keras.utils.register_keras_serializable("mine")(anything.squares)
np.save("made.npy", [*found, made("registered")])
"""
"""What a process that imports the module under another name makes of the models: a loss
that is no activation is given by name, or registered, as the documentation says.
"""


def compiled(loss: object, *activations: object) -> tf.keras.Model:
    layers = [tf.keras.layers.Dense(4, activation=f) for f in activations or (None,)]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    model.compile("sgd", loss)
    return model


def test_functions_are_loaded_in_another_process(rules, tmp_path: Path):
    registered = imported(emitted()).squares
    tf.keras.utils.register_keras_serializable("mine")(registered)
    models = {
        "activations": compiled("mse", rules.mish, rules.wave, rules.across),
        "given": compiled(rules.squares),
        "registered": compiled(registered),
    }
    np.savez(tmp_path / "given.npz", x=data(5, 3), y=data(5, 4))
    expected = []
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")
        loss = model.evaluate(data(5, 3), data(5, 4), verbose=0)
        expected.append([loss, *model.predict(data(5, 3), verbose=0).ravel()])
    put(tmp_path / "other", emitted())
    (tmp_path / "reader.py").write_text(READER, encoding="utf-8")
    run = [sys.executable, "reader.py"]
    subprocess.run(
        run, check=True, capture_output=True, env={**os.environ}, cwd=tmp_path
    )
    np.testing.assert_allclose(np.load(tmp_path / "made.npy"), expected, rtol=1e-6)
