"""Rules as gradspec emits them, written by hand, for the tests of the runtime."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from gradspec.runtime.tf._gradspec import Result, custom_gradient, size, sum_to


@custom_gradient
def square(x: tf.Tensor) -> Result[tf.Tensor]:
    def backward(dy: Any) -> Any:
        return 2.0 * dy * x

    return x * x, backward


@custom_gradient
def exponential(x: tf.Tensor) -> Result[tf.Tensor]:
    y = tf.exp(x)

    def backward(dy: Any) -> Any:
        return dy * y

    return y, backward


@custom_gradient
def step(v: tf.Tensor, *, k: float = 2.0) -> Result[tf.Tensor]:
    def backward(ds: Any) -> Any:
        return ds * k / tf.square(tf.cosh(k * v))

    return tf.cast(v > 0.0, v.dtype), backward


@custom_gradient(is_linear=False)
def squared_gradient(x: tf.Tensor) -> Result[tf.Tensor]:
    def backward(dy: Any) -> Any:
        return dy * dy * x

    return tf.sin(x), backward


@custom_gradient(nograd=[2])
def pair(
    x: tf.Tensor, y: tf.Tensor
) -> Result[tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]]:
    def backward(dz: Any, dw: Any, _s: Any, _up: Any) -> Any:
        return 3.0 * dz * y, sum_to(3.0 * dz * x, y) + 6.0 * dw * y

    return (x * y, y * y, tf.sign(x), x > 0.0), backward


@custom_gradient(kinds={"n": "integer", "on": "boolean"})
def powers(
    x: tf.Tensor, n: tf.Tensor, on: tf.Tensor, *, count: int = 1
) -> Result[tf.Tensor]:
    n = count * tf.cast(n, x.dtype)

    def backward(dy: Any) -> Any:
        return tf.where(on, 2.0 * n * dy * x, dy), None, None

    return tf.where(on, n * x * x, x), backward


@custom_gradient(axes={"x": "... n", "g": "n", "s": ""})
def scaled(x: tf.Tensor, g: tf.Tensor, s: tf.Tensor) -> Result[tf.Tensor]:
    n = size(x, -1)

    def backward(dy: Any) -> Any:
        rest = tf.cast(n, x.dtype) * dy
        return rest * g * s, rest * x * s, rest * x * g

    return tf.cast(n, x.dtype) * x * g * s, backward


@custom_gradient(precision=tf.float64)
def difference(x: tf.Tensor) -> Result[tf.Tensor]:
    def backward(dy: Any) -> Any:
        return dy * ((x + 1.0) - x)

    return (x + 1.0) - x, backward
