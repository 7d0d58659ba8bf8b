"""Conformance of TensorFlow modules: saved, learned, on several devices."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from conforming import require
from conforming_tf_setting import Setting, feature

_RELOADED = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
floats = [tf.constant(v, shape=s) for s, v in json.loads(sys.argv[2])]
with tf.GradientTape() as tape:
    tape.watch(floats)
    total = model.total(*floats)
gradients = tape.gradient(total, floats)
print(json.dumps([[g.shape.as_list(), tf.reshape(g, [-1]).numpy().tolist()]
                  for g in gradients]))
"""


@feature("SavedModel, in a fresh process")
def saved_model(s: Setting) -> Any:
    model = tf.Module()
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in s.floats]
    model.total = tf.function(s.total, input_signature=specs)
    with tempfile.TemporaryDirectory() as folder:
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
        tf.saved_model.save(model, folder, options=options)
        child = subprocess.run(
            [sys.executable, "-c", _RELOADED, folder, json.dumps(s.listed(s.floats))],
            capture_output=True,
            text=True,
            check=False,
        )
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    require(child.returncode == 0, last)
    return json.loads(child.stdout.splitlines()[-1])


class Layer(tf.keras.layers.Layer):
    """Its weights are the floating inputs; its output is their total, for every row."""

    def __init__(self, setting: Setting, **options: Any) -> None:
        super().__init__(**options)
        self.setting = setting
        self.parts = [
            self.add_weight(
                shape=x.shape.as_list(),
                name=f"part_{k}",
                initializer=tf.keras.initializers.Constant(x.numpy()),
            )
            for k, x in enumerate(setting.floats)
        ]

    def call(self, rows: Any) -> Any:
        parts = [tf.convert_to_tensor(part) for part in self.parts]
        return tf.zeros_like(rows) + self.setting.total(*parts)


@feature("Keras layer, fitted")
def fitted(s: Setting) -> None:
    layer = Layer(s)
    model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    model.fit(tf.ones([4, 1]), tf.zeros([4, 1]), epochs=2, verbose=0)
    finite = [bool(tf.reduce_all(tf.math.is_finite(p))) for p in layer.parts]
    require(all(finite), "weights are not finite")


@feature("Keras layer, saved and loaded")
def saved_layer(s: Setting) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((1,)), Layer(s)])
    again = Layer(s)
    other = tf.keras.Sequential([tf.keras.Input((1,)), again])
    again.set_weights([0 * weight for weight in again.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.weights.h5")
        model.save_weights(path)
        other.load_weights(path)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(other(tf.ones([1, 1])))
    return s.listed(tape.gradient(total, again.trainable_variables))


@feature("MirroredStrategy, two devices")
def mirrored(s: Setting) -> Any:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = [tf.Variable(x) for x in s.floats]

    @tf.function
    def step() -> Any:
        def each() -> Any:
            with tf.GradientTape() as tape:
                total = s.total(*map(tf.convert_to_tensor, weights))
            found = tape.gradient(total, weights, unconnected_gradients="zero")
            context = tf.distribute.get_replica_context()
            return [context.all_reduce("MEAN", g) for g in found]

        return strategy.run(each)

    return s.listed([strategy.experimental_local_results(g)[0] for g in step()])
