"""Private functions for elementary built-ins that a target lacks or does badly."""

from __future__ import annotations

from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere

NUMPY_SIGMOID = Helper(
    "_sigmoid",
    '''\
def _sigmoid(x: np.ndarray) -> np.ndarray:
    """exp(x) / (1 + exp(x)); where exp(x) could overflow, the quotient is 1 long since."""
    t = np.exp(np.minimum(x, 88.0))
    return t / (1.0 + t)
''',
)

# `np.logaddexp` takes 60 ns for each element, these 2.
NUMPY_SOFTPLUS = Helper(
    "_softplus",
    '''\
def _softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)), from the larger of 0 and x."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
''',
)

NUMPY_LOGADDEXP = Helper(
    "_logaddexp",
    '''\
@np.errstate(invalid="ignore")
def _logaddexp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(exp(x) + exp(y)), from the larger; equal infinities, whose difference is NaN,
    count as equal.
    """
    distance = np.fmin(-np.abs(x - y), 0.0)
    return np.maximum(x, y) + np.log1p(np.exp(distance))
''',
)

NUMPY_LOGIT = Helper(
    "_logit",
    '''\
def _logit(x: np.ndarray) -> np.ndarray:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    near = np.abs(x - 0.5) < 0.25
    inner = np.where(near, x, 0.5)
    outer = np.where(near, 0.25, x)
    middle = np.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return np.where(near, middle, np.log(outer / (1.0 - outer)))
''',
)

TORCH_LOGIT = Helper(
    "_logit",
    '''\
def _logit(x: torch.Tensor) -> torch.Tensor:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    near = torch.abs(x - 0.5) < 0.25
    inner = torch.where(near, x, 0.5)
    outer = torch.where(near, 0.25, x)
    middle = torch.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return torch.where(near, middle, torch.log(outer / (1.0 - outer)))
''',
)

JAX_LOGIT = Helper(
    "_logit",
    '''\
def _logit(x: jax.Array) -> jax.Array:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    near = jnp.abs(x - 0.5) < 0.25
    inner = jnp.where(near, x, 0.5)
    outer = jnp.where(near, 0.25, x)
    middle = jnp.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return jnp.where(near, middle, jnp.log(outer / (1.0 - outer)))
''',
)

TF_LOGIT = Helper(
    "_logit",
    '''\
def _logit(x: tf.Tensor) -> tf.Tensor:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    half = tf.fill(tf.shape(x), tf.constant(0.5, x.dtype))
    near = tf.abs(x - 0.5) < 0.25
    inner = tf.where(near, x, half)
    outer = tf.where(near, 0.5 * half, x)
    middle = tf.math.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return tf.where(near, middle, tf.math.log(outer / (1.0 - outer)))
''',
)

TF_LOGADDEXP = Helper(
    "_logaddexp",
    '''\
def _logaddexp(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """log(exp(x) + exp(y)), from the larger; equal infinities stay."""
    equal = x == y
    d = tf.where(equal, tf.zeros_like(x - y), x - y)
    larger = tf.where(d > 0.0, x + tf.math.softplus(-d), y + tf.math.softplus(d))
    return tf.where(equal, 0.5 * (x + y) + 0.6931471805599453, larger)
''',
)

NUMPY_XLOGY = Helper(
    "_xlogy",
    '''\
def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * log(y), and 0 where x is 0 (also at y = 0)."""
    return x * np.log(np.where((x == 0) & (y >= 0), 1.0, y))
''',
)

NUMPY_XLOG1PY = Helper(
    "_xlog1py",
    '''\
def _xlog1py(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * np.log1p(np.where((x == 0) & (y >= -1), 0.0, y))
''',
)

# Of x the first bits, so few that their square is exact; the rest is below 1/64.
EXP_NEG_SQUARE = everywhere(
    "_exp_neg_square",
    '''\
def _exp_neg_square(x: Array) -> Array:
    """exp(-x**2), the square split: its rounding error would be magnified by x**2."""
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(64.0 * xp.abs(c)) / 64.0
    return xp.exp(-h * h) * xp.exp((h - c) * (h + c))
''',
)

EXP_NEG_HALF_SQUARE = everywhere(
    "_exp_neg_half_square",
    '''\
def _exp_neg_half_square(x: Array) -> Array:
    """exp(-x**2 / 2), the square split: its rounding error would be magnified."""
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(64.0 * xp.abs(c)) / 64.0
    return xp.exp(-0.5 * h * h) * xp.exp(0.5 * (h - c) * (h + c))
''',
)
