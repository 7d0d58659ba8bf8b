"""Private functions for roots and steps that a target lacks."""

from __future__ import annotations

from gradspec.primitives.row import Helper

TORCH_CBRT = Helper(
    "_cbrt",
    '''\
def _cbrt(x: torch.Tensor) -> torch.Tensor:
    """The real cube root: a power, then one step of Newton's method."""
    zero = x == 0.0
    a = torch.abs(torch.where(zero, 1.0, x))
    r = a ** (1.0 / 3.0)
    r = r - (r - a / (r * r)) / 3.0
    return torch.where(zero, x, torch.sign(x) * r)
''',
)

TF_CBRT = Helper(
    "_cbrt",
    '''\
def _cbrt(x: tf.Tensor) -> tf.Tensor:
    """The real cube root: a power, then one step of Newton's method."""
    zero = x == 0.0
    a = tf.abs(tf.where(zero, tf.ones_like(x), x))
    r = a ** (1.0 / 3.0)
    r = r - (r - a / (r * r)) / 3.0
    return tf.where(zero, x, tf.sign(x) * r)
''',
)

TF_HYPOT = Helper(
    "_hypot",
    '''\
def _hypot(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """sqrt(x**2 + y**2), scaled by the larger so that no square leaves the range."""
    s = tf.stop_gradient(tf.maximum(tf.abs(x), tf.abs(y)))
    s = tf.where((s > 0.0) & (s < math.inf), s, tf.ones_like(s))
    q = tf.square(x / s) + tf.square(y / s)
    zero = q == 0.0
    r = s * tf.sqrt(tf.where(zero, tf.ones_like(q), q))
    return tf.where(zero, q, r)
''',
    ("import math",),
)

TF_HEAVISIDE = Helper(
    "_heaviside",
    '''\
def _heaviside(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """1 where x > 0, 0 where x < 0, y where x is 0; NaN stays."""
    step = 0.5 * (1.0 + tf.sign(x))
    return tf.where(x == 0.0, y, step)
''',
)

TF_TRUNC = Helper(
    "_trunc",
    '''\
def _trunc(x: tf.Tensor) -> tf.Tensor:
    """The integer part, towards zero."""
    return tf.where(x < 0.0, tf.math.ceil(x), tf.floor(x))
''',
)
