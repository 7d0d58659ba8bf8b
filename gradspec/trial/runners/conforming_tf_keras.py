"""Conformance of TensorFlow modules: in layers of Keras, and on several devices."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from setting_tf import Setting, feature

_CURRENT: list[Setting] = []
"""The rule at hand, for layers that are made anew when a model is loaded."""


class Layer(tf.keras.layers.Layer):
    """Its weights are the floating inputs; its output is their total, for every row."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.setting = _CURRENT[-1]
        self.parts = [
            self.add_weight(
                shape=x.shape.as_list(),
                name=f"part_{k}",
                initializer=tf.keras.initializers.Constant(x.numpy()),
            )
            for k, x in enumerate(self.setting.floats)
        ]

    def call(self, rows: Any) -> Any:
        parts = [tf.convert_to_tensor(part) for part in self.parts]
        return tf.zeros_like(rows) + tf.cast(self.setting.total(*parts), rows.dtype)


def _model(s: Setting, **options: Any) -> Any:
    _CURRENT.append(s)
    return tf.keras.Sequential([tf.keras.Input((1,)), Layer(**options)])


def _gradients(s: Setting, model: Any) -> Any:
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(tf.ones([1, 1])))
    weights = [p.value for p in model.layers[-1].parts]
    return tape.gradient(total, weights)


class Recording(tf.keras.optimizers.SGD):
    """Keeps the gradients; weights stay as they are. A step in place would not do for a
    comparison: under Keras one weight may have moved before the gradient of another has
    been computed, with plain code too.
    """

    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.seen = {p.value.ref(): tf.Variable(tf.zeros(p.shape)) for p in parts}

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        self.seen[variable.ref()].assign(gradient)


def _fitted(s: Setting, model: Any, **options: Any) -> Any:
    """One step on the mean of the output."""
    parts = model.layers[-1].parts
    recording = Recording(parts)
    model.compile(
        optimizer=recording, loss=lambda true, made: tf.reduce_mean(made), **options
    )
    model.fit(tf.ones([4, 1]), tf.zeros([4, 1]), batch_size=4, epochs=1, verbose=0)
    return [recording.seen[p.value.ref()] for p in parts]


@feature("Keras layer, fitted")
def fitted(s: Setting) -> Any:
    return _fitted(s, _model(s), jit_compile=False)


@feature("Keras layer, fitted eagerly")
def fitted_eagerly(s: Setting) -> Any:
    return _fitted(s, _model(s), run_eagerly=True)


@feature("Keras layer, fitted with XLA")
def fitted_with_xla(s: Setting) -> Any:
    return _fitted(s, _model(s), jit_compile=True)


@feature("Keras layer, weights saved and loaded")
def saved_layer(s: Setting) -> Any:
    model, other = _model(s), _model(s)
    again = other.layers[-1]
    again.set_weights([0 * weight for weight in again.get_weights()])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.weights.h5")
        model.save_weights(path)
        other.load_weights(path)
    return _gradients(s, other)


@feature("Keras model, saved and loaded")
def saved_keras_model(s: Setting) -> Any:
    model = _model(s)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.keras")
        model.save(path)
        again = tf.keras.models.load_model(path, {"Layer": Layer})
    return _gradients(s, again)


@feature("Keras model, exported")
def exported_model(s: Setting) -> Any:
    """Its weights are variables of the model that is loaded."""
    model = _model(s)
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        again = tf.saved_model.load(folder)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(again.serve(tf.ones([1, 1])))
    return tape.gradient(total, again.trainable_variables)


@feature("Keras, mixed bfloat16")
def mixed(s: Setting) -> Any:
    model = _model(s, dtype="mixed_bfloat16")
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(tf.ones([1, 1])))
    weights = [p.value for p in model.layers[-1].parts]
    return tape.gradient(total, weights)


# --- two devices -----------------------------------------------------------------------


@functools.cache
def _strategy() -> Any:
    """One for the process: collective operations of several would take turns."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@feature("MirroredStrategy, two devices")
def mirrored(s: Setting) -> Any:
    """Each replica has every other element of the upstream gradients."""
    strategy = _strategy()
    with strategy.scope():
        weights = [tf.Variable(x) for x in s.floats]
    whole = s.upstream

    @tf.function
    def step() -> Any:
        def each() -> Any:
            context = tf.distribute.get_replica_context()
            here = context.replica_id_in_sync_group
            s.upstream = [u * _shared(u, here) for u in whole]
            with tf.GradientTape() as tape:
                total = s.total(*map(tf.convert_to_tensor, weights))
            found = tape.gradient(total, weights, unconnected_gradients="zero")
            return context.all_reduce("SUM", found)

        return strategy.run(each)

    found = step()
    s.upstream = whole
    return [strategy.experimental_local_results(g)[0] for g in found]


def _shared(u: Any, here: Any) -> Any:
    """1 at the elements of replica ``here``."""
    places = tf.reshape(tf.range(tf.size(u)), u.shape)
    return tf.cast(places % 2 == here, u.dtype)
