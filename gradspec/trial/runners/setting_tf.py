"""A rule at one point, in TensorFlow's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from conforming import Register
from setting import Setting as Shared

feature = Register()
"""All features of TensorFlow, over several files."""

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# Two devices for `MirroredStrategy`; they must be asked for before anything runs.

ZERO = {"unconnected_gradients": "zero"}


class Setting(Shared):
    """A rule at one point; gradients are those of tapes."""

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        tensor = tf.reshape(tf.constant(flat, tf.float64, [len(flat)]), shape)
        return tf.cast(tensor, {"int": "int64", "bool": "bool"}.get(kind, self.dtype))

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        wide = tf.cast(tf.convert_to_tensor(x), tf.float64)
        return wide.shape.as_list(), tf.reshape(wide, [-1]).numpy().tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return tf.reduce_sum(x * tf.cast(y, x.dtype))

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        return tf.stack(tensors, axis)

    def dots(self, x: Any, matrix: Any) -> Any:
        return tf.tensordot(x, matrix, x.shape.rank)

    def units(self, x: Any) -> Sequence[Any]:
        size = int(tf.size(x))
        return [tf.reshape(row, x.shape) for row in tf.eye(size, dtype=x.dtype)]

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        floats = list(floats)
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            made = function(*floats)
        return recorded.gradient(made, floats, **ZERO)

    def of(self, function: Callable[..., Any]) -> Any:
        """The gradients of a function here."""
        return self.gradient(function, self.floats)
