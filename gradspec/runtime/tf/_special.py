"""Special functions that TensorFlow lacks or computes less accurately."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from .._formulas import Formulas

_MATH = "abs cos erfc exp expm1 floor log log1p minimum round sign sin sqrt square tan"
_formulas = Formulas(
    SimpleNamespace(
        **{name: getattr(tf.math, name) for name in _MATH.split()},
        isfinite=tf.math.is_finite,
        isinf=tf.math.is_inf,
        ones_like=tf.ones_like,
        where=tf.where,
        zeros_like=tf.zeros_like,
    )
)


def __getattr__(name: str) -> Callable[..., Any]:
    """A function that is not written below: one of the formulas."""
    return getattr(_formulas, name)  # type: ignore[no-any-return]


def logaddexp(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """log(exp(x) + exp(y)), from the larger, which is chosen, so that both have half of
    the derivative where they are equal.
    """
    s = x - y
    left = s < 0.0
    return tf.where(left, y, x) + tf.math.softplus(tf.where(left, s, -s))


def hypot(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """sqrt(x**2 + y**2), scaled by the larger so that no square leaves the range."""
    s = tf.stop_gradient(tf.maximum(tf.abs(x), tf.abs(y)))
    s = tf.where((s > 0.0) & (s < math.inf), s, tf.ones_like(s))
    q = tf.square(x / s) + tf.square(y / s)
    zero = tf.equal(q, 0.0)
    r = s * tf.sqrt(tf.where(zero, tf.ones_like(q), q))
    return tf.where(zero, q, r)


def trunc(x: tf.Tensor) -> tf.Tensor:
    """The integer part, towards zero."""
    return tf.where(x < 0.0, tf.math.ceil(x), tf.floor(x))
