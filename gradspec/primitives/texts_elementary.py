"""Private functions for elementary built-ins that a target lacks or does badly."""

from __future__ import annotations

from gradspec.primitives import texts_fused
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import TARGETS, everywhere
from gradspec.primitives.texts_choice import NUMPY_WHERE
from gradspec.primitives.texts_jax import LOG1P

# A number beside an array of few elements takes NumPy as long to convert as to compute with.
NUMBER = Helper(
    "_number",
    '''\
@cache
def _number(value: float, dtype: np.dtype) -> np.ndarray:
    """The number as an array: a Python number is converted at each call."""
    return np.array(value, dtype)
''',
    ("from functools import cache",),
)

NUMPY_SIGMOID = Helper(
    "_sigmoid",
    '''\
def _sigmoid(x: np.ndarray) -> np.ndarray:
    """exp(x) / (1 + exp(x)); where exp(x) could overflow the quotient is 1."""
    if x.size >= 1024:
        t = np.exp(x if x.max() < 88.0 else x.clip(-np.inf, 88.0))
        return t / (1.0 + t)
    t = np.exp(np.minimum(x, _number(88.0, x.dtype)))
    return t / (_number(1.0, x.dtype) + t)
''',
    needs=(NUMBER,),
)

# In float32 `expm1` takes 0.5 ns where `exp` takes 0.8, and loses no digits beside a 2: at most
# 2.8 ULP, where x * _sigmoid(x) has 4.0 (eleven million numbers). In float64 it takes twice as
# long as `exp`.
NUMPY_LOGISTIC_SHARE = Helper(
    "_logistic_share",
    '''\
def _logistic_share(
    x: np.ndarray, z: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """x / (1 + exp(-z)); where exp(-z) could overflow it is x * exp(z)."""
    if z.size < 1024:
        t = np.exp(np.minimum(z, _number(88.0, z.dtype)))
        return np.multiply(x, t / (_number(1.0, z.dtype) + t), out)
    is_single = z.itemsize < 8
    if not z.min() > (-87.0 if is_single else -700.0):
        return np.multiply(x, _sigmoid(z), out)
    t = -z
    t = np.expm1(t, out=t) if is_single else np.exp(t, out=t)
    t += 2.0 if is_single else 1.0
    return np.divide(x, t, out)
''',
    needs=(NUMBER, NUMPY_SIGMOID),
)

NUMPY_LOGISTIC_KNOWN = Helper(
    "_logistic_known",
    '''\
def _logistic_known(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(x)), where t is exp(x) as long as x is at most 88.5."""
    if x.size < 1024 or not x.max() <= 88.5:
        return _sigmoid(-x)
    return 1.0 / (1.0 + t)
''',
    needs=(NUMPY_SIGMOID,),
)

NUMPY_POWER = Helper(
    "_power",
    '''\
def _power(x: np.ndarray, n: float) -> np.ndarray:
    """x**n; a square is one product, which NumPy sees of an integer alone."""
    return np.square(x) if n == 2.0 else x**n
''',
)

TF_POWER = Helper(
    "_power_of",
    '''\
def _power_of(x: tf.Tensor, n: float) -> tf.Tensor:
    """x**n, whose derivatives are numbers at 0: TensorFlow's own of x**0 is NaN there."""
    if n == 0:
        return tf.ones_like(x)
    if n == 1:
        return x
    return tf.square(x) if n == 2 else x**n
''',
)

# `np.logaddexp` takes 60 ns for each element, these 1.3 (and 1.6 with the exponential of
# -abs(x), which is no more exact).
NUMPY_SOFTPLUS = Helper(
    "_softplus",
    '''\
def _softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)); where exp(x) could overflow it is x."""
    if x.size >= 1024:
        t = np.exp(x if x.max() < 88.0 else x.clip(-np.inf, 88.0))
        return np.maximum(np.log1p(t, out=t), x, out=t)
    t = np.exp(np.minimum(x, _number(88.0, x.dtype)))
    return np.maximum(np.log1p(t), x)
''',
    needs=(NUMBER,),
)

NUMPY_TANH_SOFTPLUS = Helper(
    "_tanh_softplus",
    '''\
def _tanh_softplus(x: np.ndarray) -> np.ndarray:
    """tanh(log(1 + exp(x))), as a quotient of polynomials in exp(x); it is 1 at 40."""
    if x.size < 1024:
        x = np.minimum(x, 40.0)
    elif not x.max() < 40.0:
        x = x.clip(-np.inf, 40.0)
    t = np.exp(x)
    t = t * (2.0 + t)
    return t / (2.0 + t)
''',
)

NUMPY_LOGADDEXP = Helper(
    "_logaddexp",
    '''\
@np.errstate(invalid="ignore")
def _logaddexp(
    x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """log(exp(x) + exp(y)), from the larger; equal infinities, whose difference is NaN,
    count as equal.
    """
    top = np.maximum(x, y)
    if top.size < 1024:
        distance = np.fmin(-np.abs(x - y), 0.0)
        return np.add(top, np.log1p(np.exp(distance)), out)
    t = np.minimum(x, y)
    t -= top
    if np.isnan(t.min()):
        t = np.fmin(t, 0.0)
    np.log1p(np.exp(t, out=t), out=t)
    return np.add(top, t, t if out is None else out)
''',
)

# tf.sigmoid is 5 ULP off in float32. The exponent is -abs(x), by a choice: that has at 0
# the slope of one of its sides, tf.abs has slope 0 there. Of what is expensive XLA keeps in
# memory what two passes have: one exponential here and for a softplus, and one quotient.
TF_SIGMOID = Helper(
    "_sigmoid",
    '''\
def _sigmoid(x: tf.Tensor) -> tf.Tensor:
    """1 / (1 + exp(-x)); the exponential is at most 1, so nothing overflows."""
    t = tf.exp(tf.where(x >= 0, -x, x))
    r = t / (1.0 + t)
    return tf.where(x >= 0, 1.0 - r, r)
''',
)

TF_SIGMOID_OPPOSITE = Helper(
    "_sigmoid_opposite",
    '''\
def _sigmoid_opposite(x: tf.Tensor) -> tf.Tensor:
    """1 / (1 + exp(x)), with the exponential and the quotient of _sigmoid(x)."""
    t = tf.exp(tf.where(x >= 0, -x, x))
    r = t / (1.0 + t)
    return tf.where(x >= 0, r, 1.0 - r)
''',
)

# tf.math.softplus is 6 ULP off in float32, tf.math.log1p is 3. tf.maximum(x, 0.0) has at 0
# slope 1, which goes with -x in the exponent; tf.nn.relu(-x) has slope 0. A graph makes
# log1p(t) of log(1.0 + t), to which the rounding error is put back in vain: hence the bound.
TF_SOFTPLUS = Helper(
    "_softplus",
    '''\
def _softplus(x: tf.Tensor) -> tf.Tensor:
    """log(1 + exp(x)); of 1 + t the rounding error is put back (Higham, Accuracy and
    Stability of Numerical Algorithms, 2002, section 1.14.1)."""
    t = tf.exp(tf.where(x >= 0, -x, x))
    u = tf.minimum(1.0 + t, 2.0)
    return tf.maximum(x, 0.0) + (tf.math.log(u) + (t - (u - 1.0)) / u)
''',
)

TF_SOFTPLUS_OPPOSITE = Helper(
    "_softplus_opposite",
    '''\
def _softplus_opposite(x: tf.Tensor) -> tf.Tensor:
    """log(1 + exp(-x)), with the exponential and the logarithm of _softplus(x)."""
    t = tf.exp(tf.where(x >= 0, -x, x))
    u = tf.minimum(1.0 + t, 2.0)
    return tf.nn.relu(-x) + (tf.math.log(u) + (t - (u - 1.0)) / u)
''',
)

NUMPY_LOGIT = Helper(
    "_logit",
    '''\
def _logit(x: np.ndarray) -> np.ndarray:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    near = np.abs(x - 0.5) < 0.25
    inner = _where(near, x, 0.5)
    outer = _where(near, 0.25, x)
    middle = np.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return _where(near, middle, np.log(outer / (1.0 - outer)))
''',
    needs=(NUMPY_WHERE,),
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
    middle = _log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return jnp.where(near, middle, jnp.log(outer / (1.0 - outer)))
''',
    needs=(LOG1P,),
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

# The exponential is, step by step, that of `_sigmoid_parts(x, -y)`, which gradients have:
# XLA computes it once for both passes. TensorFlow's `log1p` loses digits: of 1 + t the
# rounding error is put back (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
# section 1.14.1).
_LOGADDEXP_TEXT = '''\
def _logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), from the larger; equal infinities stay."""
    s = x + -y
    left = s < 0.0
    t = xp.exp(xp.where(left, s, -s))
    ONE_MORE
    larger = xp.where(left, y, x) + LOG1P
    return xp.where((x == y) & (s != 0.0), x, larger)
'''
_LOG1P = {
    "    ONE_MORE\n": {
        **dict.fromkeys(TARGETS, ""),
        "tf": "    u = tf.minimum(1.0 + t, 2.0)\n",
    },
    "LOG1P": {
        **dict.fromkeys(TARGETS, "xp.log1p(t)"),
        "tf": "(tf.math.log(u) + (t - (u - 1.0)) / u)",
    },
}
FUSED_LOGADDEXP = everywhere("_logaddexp", _LOGADDEXP_TEXT, (), (), **_LOG1P)

NUMPY_XLOGY = Helper(
    "_xlogy",
    '''\
def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * log(y), and 0 where x is 0 (also at y = 0)."""
    return x * np.log(_where((x == 0) & (y >= 0), 1.0, y))
''',
    needs=(NUMPY_WHERE,),
)

NUMPY_XLOG1PY = Helper(
    "_xlog1py",
    '''\
def _xlog1py(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * np.log1p(_where((x == 0) & (y >= -1), 0.0, y))
''',
    needs=(NUMPY_WHERE,),
)

# Of x the first bits, so few that their square is exact (until the result is 0); what the
# rest changes is small, and so is what expm1 adds to the error of the exponential.
EXPM1 = {
    "numpy": "np.expm1",
    "torch": "torch.expm1",
    "tf": "tf.math.expm1",
    "jax": "jnp.expm1",
}


def _narrow(exponent: str) -> dict[str, dict[str, str]]:
    """What a line ``NARROW`` stands for: NumPy has float64 for float32."""
    line = f"""\
    if x.itemsize < 8:
        return np.exp({exponent}).astype(np.float32)
"""
    return {"    NARROW\n": dict.fromkeys(TARGETS, "") | {"numpy": line}}


EXP_NEG_SQUARE = everywhere(
    "_exp_neg_square",
    '''\
def _exp_neg_square(x: Array) -> Array:
    """exp(-x**2), the square split: its rounding error would be magnified by x**2."""
    NARROW
    WIDEN
    SINGLE
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(256.0 * xp.abs(c)) / 256.0
    e = xp.exp(-h * h)
    y = e * (1.0 + EXPM1((h - c) * (h + c)))
    return ROUNDED(y)
''',
    (),
    texts_fused.EXP_NEG_SQUARE,
    EXPM1=EXPM1,
    **texts_fused.quick("_exp_neg_square"),
    **_narrow("-np.square(x, dtype=np.float64)"),
)

EXP_NEG_HALF_SQUARE = everywhere(
    "_exp_neg_half_square",
    '''\
def _exp_neg_half_square(x: Array) -> Array:
    """exp(-x**2 / 2), the square split: its rounding error would be magnified."""
    NARROW
    WIDEN
    SINGLE
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(256.0 * xp.abs(c)) / 256.0
    e = xp.exp(-0.5 * h * h)
    y = e * (1.0 + EXPM1(0.5 * (h - c) * (h + c)))
    return ROUNDED(y)
''',
    (),
    texts_fused.EXP_NEG_HALF_SQUARE,
    EXPM1=EXPM1,
    **texts_fused.quick("_exp_neg_half_square"),
    **_narrow("-0.5 * np.square(x, dtype=np.float64)"),
)

BELL_RAISED = everywhere(
    "_bell_raised",
    '''\
def _bell_raised(x: Array, y: Array) -> Array:
    """exp(y - x**2 / 2), the square split: its rounding error would be magnified."""
    NARROW
    WIDEN
    SINGLE
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(256.0 * xp.abs(c)) / 256.0
    e = xp.exp(y - 0.5 * h * h)
    y = e * (1.0 + EXPM1(0.5 * (h - c) * (h + c)))
    return ROUNDED(y)
''',
    (),
    texts_fused.BELL_RAISED,
    EXPM1=EXPM1,
    **texts_fused.quick("_bell_raised", "x, y"),
    **_narrow("y - 0.5 * np.square(x, dtype=np.float64)"),
)
