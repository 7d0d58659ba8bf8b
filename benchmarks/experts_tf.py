"""The same rules as experts write them for TensorFlow: `tf.custom_gradient` as its manual
shows it, inputs or outputs by closure, formulas as in `experts.py`.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

Tensor = Any


@tf.custom_gradient  # type: ignore[untyped-decorator]
def softplus(x: Tensor) -> Any:
    return tf.math.softplus(x), lambda dy: dy * tf.sigmoid(x)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def silu(x: Tensor) -> Any:
    """As `tf.nn.silu` itself is written."""

    def gradient(dy: Tensor) -> Tensor:
        s = tf.sigmoid(x)
        return dy * (s * (1.0 + x * (1.0 - s)))

    return x * tf.sigmoid(x), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def mish(x: Tensor) -> Any:
    def gradient(dy: Tensor) -> Tensor:
        t = tf.tanh(tf.math.softplus(x))
        return dy * (t + x * tf.sigmoid(x) * (1.0 - t * t))

    return x * tf.tanh(tf.math.softplus(x)), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def gelu(x: Tensor) -> Any:
    def gradient(dy: Tensor) -> Tensor:
        cdf = 0.5 * (1.0 + tf.math.erf(x * 0.7071067811865476))
        return dy * (cdf + x * tf.exp(-0.5 * x * x) * 0.3989422804014327)

    return 0.5 * x * (1.0 + tf.math.erf(x * 0.7071067811865476)), gradient


def focal_loss(x: Tensor, t: Tensor) -> Tensor:
    """As Keras composes it, from logits, with the labels -1 and +1 made 0 and 1."""
    targets = (t + 1.0) / 2.0
    p = tf.sigmoid(x)
    ce = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=x)
    p_t = p * targets + (1.0 - p) * (1.0 - targets)
    alpha_t = 0.25 * targets + 0.75 * (1.0 - targets)
    return alpha_t * ((1.0 - p_t) ** 2.0 * ce)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def spike_fast_sigmoid(v: Tensor) -> Any:
    def gradient(ds: Tensor) -> Tensor:
        return ds / (25.0 * tf.abs(v) + 1.0) ** 2

    return tf.cast(v > 0.0, v.dtype), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def spike_arctan(v: Tensor) -> Any:
    def gradient(ds: Tensor) -> Tensor:
        return ds / (1.0 + (math.pi * v) ** 2)

    return tf.cast(v >= 0.0, v.dtype), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def complex_op(x: Tensor, y: Tensor) -> Any:
    """The example of TensorFlow's manual."""

    def gradient(dz: Tensor, dw: Tensor) -> tuple[Tensor, Tensor]:
        return dz * (y + tf.cos(x)), dz * x + dw * 2.0 * y

    return (x * y + tf.sin(x), y**2), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def logaddexp(a: Tensor, b: Tensor) -> Any:
    def gradient(dy: Tensor) -> tuple[Tensor, Tensor]:
        s = tf.sigmoid(a - b)
        return dy * s, dy * (1.0 - s)

    return tf.maximum(a, b) + tf.math.log1p(tf.exp(-tf.abs(a - b))), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def softmax(x: Tensor) -> Any:
    y = tf.nn.softmax(x)

    def gradient(dy: Tensor) -> Tensor:
        return y * (dy - tf.reduce_sum(dy * y, -1, keepdims=True))

    return y, gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def log_sum_exp(x: Tensor) -> Any:
    y = tf.reduce_logsumexp(x, -1)

    def gradient(dy: Tensor) -> Tensor:
        return dy[..., None] * tf.exp(x - y[..., None])

    return y, gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Any:
    mean = tf.reduce_mean(x, -1, keepdims=True)
    centred = x - mean
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    rstd = tf.math.rsqrt(variance + 1e-5)

    def gradient(dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = (x - mean) * rstd
        h = dy * g
        inner = tf.reduce_mean(h * n, -1, keepdims=True)
        dx = rstd * (h - tf.reduce_mean(h, -1, keepdims=True) - n * inner)
        rows = tuple(range(len(dy.shape) - 1))
        return dx, tf.reduce_sum(dy * n, rows), tf.reduce_sum(dy, rows)

    return centred * rstd * g + b, gradient
