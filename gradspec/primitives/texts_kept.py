"""Quotients in words that the optimiser of TensorFlow's graphs does not change."""

from __future__ import annotations

from gradspec.primitives.row import Helper

TF_RECIPROCAL = Helper(
    "_reciprocal",
    '''\
def _reciprocal(x: tf.Tensor) -> tf.Tensor:
    """1 / x, rounded once: of a quotient of 1 a graph makes tf.math.reciprocal, which is
    2.5 ULP off, and thousands where the result is small."""
    return -(-1.0 / x)
''',
)

TF_OVER_ROOT = Helper(
    "_over_root",
    '''\
def _over_root(x: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    """x / root, for a square root: a graph would multiply by tf.math.rsqrt, which rounds
    once more."""
    return -(x / -root)
''',
)
