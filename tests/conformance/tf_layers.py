"""Features of the runtime for TensorFlow: in layers of Keras."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from gradspec.measure.frameworks.on_tf import feature

_CURRENT: list[Any] = []
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


def _model(s: Any, **options: Any) -> Any:
    _CURRENT.append(s)
    return tf.keras.Sequential([tf.keras.Input((1,)), Layer(**options)])


def _gradients(model: Any) -> Any:
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(tf.ones([1, 1])))
    return tape.gradient(total, [p.value for p in model.layers[-1].parts])


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


def _fitted(**options: Any) -> Any:
    """One step on the mean of the output."""

    def run(s: Any) -> Any:
        model = _model(s)
        parts = model.layers[-1].parts
        recording = Recording(parts)
        model.compile(
            optimizer=recording, loss=lambda true, made: tf.reduce_mean(made), **options
        )
        model.fit(tf.ones([4, 1]), tf.zeros([4, 1]), batch_size=4, epochs=1, verbose=0)
        return [recording.seen[p.value.ref()] for p in parts]

    return run


def _saved(s: Any) -> Any:
    model = _model(s)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.keras")
        model.save(path)
        return _gradients(tf.keras.models.load_model(path, {"Layer": Layer}))


feature |= {
    "Keras layer, fitted": _fitted(jit_compile=False),
    "Keras layer, fitted with XLA": _fitted(jit_compile=True),
    "Keras model, saved and loaded": _saved,
    "Keras, mixed bfloat16": lambda s: _gradients(_model(s, dtype="mixed_bfloat16")),
}
