"""Private functions for roots and steps that a target lacks."""

from __future__ import annotations

from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere

CBRT = everywhere(
    "_cbrt",
    '''\
def _cbrt(x: Array) -> Array:
    """The real cube root: a power, then one step of Newton's method."""
    fixed = x + x == x  # 0 and the infinities
    a = xp.abs(xp.where(fixed, xp.ones_like(x), x))
    r = a ** (1.0 / 3.0)
    r = r - (r - a / (r * r)) / 3.0
    return xp.where(fixed, x, xp.sign(x) * r)
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
    zero = tf.equal(q, 0.0)
    r = s * tf.sqrt(tf.where(zero, tf.ones_like(q), q))
    return tf.where(zero, q, r)
''',
    ("import math",),
)

# torch.heaviside has no derivative, not even for the second argument.
HEAVISIDE = everywhere(
    "_heaviside",
    '''\
def _heaviside(x: Array, y: Array) -> Array:
    """1 where x > 0, 0 where x < 0, y where x is 0; NaN stays."""
    step = xp.where(x > 0.0, xp.ones_like(x), xp.zeros_like(x))
    return xp.where(x == 0.0, y, xp.where(x == x, step, x))
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
