"""Private functions of a sum or a product whose rounding they make good.

What rounding takes off a sum is exact in the format (Knuth, The Art of Computer
Programming 2, 4.2.2), and of a product too (Dekker, "A floating-point technique for
extending the available precision", 1971); to first order it is put back afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.primitives.row import Spelling
from gradspec.primitives.spelling import everywhere
from gradspec.primitives.texts_elementary import NUMPY_SOFTPLUS, TF_SIGMOID, TF_SOFTPLUS
from gradspec.primitives.texts_torch import EXPM1 as TORCH_EXPM1

_NARROW = """\
    if s.itemsize < 8:
        s = np.{operation}(x, y, dtype=np.float64)
        return {result}.astype(np.float32)
"""
"""NumPy has float64 for float32 at no more than a conversion: nothing need be put back."""

_IN_DOUBLE = {
    "exp": "np.exp(s)",
    "expm1": "np.expm1(s)",
    "sigmoid": "(1.0 / (1.0 + np.exp(-s.clip(-700.0, np.inf))))",
    "softplus": "_softplus(s)",
}

_VALUES = {
    "    EXPONENTIAL\n": {
        "numpy": (
            "    bound = np.minimum(s, 88.0) if s.size < 1024 else s.clip(-np.inf, 88.0)\n"
            "    t = np.exp(bound)\n"
        ),
        "torch": "",
        "tf": "",
        "jax": "",
    },
    "POWER": {
        "numpy": "np.exp(s)",
        "torch": "torch.exp(s)",
        "tf": "tf.exp(s)",
        "jax": "jnp.exp(s)",
    },
    "GROWTH": {
        "numpy": "np.expm1(s)",
        "torch": "_expm1(s)",
        "tf": "tf.math.expm1(s)",
        "jax": "jnp.expm1(s)",
    },
    "SIGMOID": {
        "numpy": "t / (1.0 + t)",
        "torch": "torch.sigmoid(s)",
        "tf": "_sigmoid(s)",
        "jax": "jax.nn.sigmoid(s)",
    },
    "FINITE": {
        "numpy": "xp.where(xp.abs(s) < 1e4, e, xp.zeros_like(s))",
        "torch": "torch.nan_to_num(e, 0.0, 0.0, 0.0)",  # a choice costs twelve of it
        "tf": "xp.where(xp.abs(s) < 1e4, e, xp.zeros_like(s))",
        "jax": "xp.where(xp.abs(s) < 1e4, e, xp.zeros_like(s))",
    },
    "SOFTPLUS": {
        "numpy": "_softplus(s)",
        "torch": "torch.nn.functional.softplus(s, threshold=40.0)",
        "tf": "_softplus(s)",
        "jax": "jax.nn.softplus(s)",
    },
}

_OWN = {
    "SIGMOID": {"tf": TF_SIGMOID},
    "SOFTPLUS": {"tf": TF_SOFTPLUS, "numpy": NUMPY_SOFTPLUS},
    "GROWTH": {"torch": TORCH_EXPM1},
}
"""What TensorFlow's own are 5 ULP off in, and what `np.logaddexp` is slow in."""

_SUM = """\
    s = x + y
    NARROW
    b = s - x
    e = (x - (s - b)) + (y - b)
"""
_NEAR = "    e = xp.where(xp.abs(s) < 1e4, e, xp.zeros_like(s))\n"
_FINITE = "    e = FINITE\n"
"""For what multiplies it by a slope that is 0 at all large arguments."""

_PRODUCT = """\
    s = x * y
    NARROW
    near = (xp.abs(s) < 1e4) & (xp.abs(x) < 1e30) & (xp.abs(y) < 1e30)
    x = xp.where(near, x, xp.zeros_like(s))
    y = xp.where(near, y, xp.zeros_like(s))
    c = 4097.0 if s.dtype == xp.float32 else 134217729.0
    a = c * x - (c * x - x)
    b = c * y - (c * y - y)
    e = (x - a) * (y - b) + ((x - a) * b + (a * (y - b) + (a * b - x * y)))
"""


def _both(
    name: str, result: str, says: str, kept: str = _NEAR
) -> tuple[Mapping[str, Spelling], Mapping[str, Spelling]]:
    """The function of a sum and of a product: ``s`` is rounded, ``e`` what that took."""
    wide = _IN_DOUBLE[name]
    sums = _narrow("add", wide), _SUM + kept, result, says.replace("#", "x + y")
    products = _narrow("multiply", wide), _PRODUCT, result, says.replace("#", "x * y")
    return _written(f"_{name}_sum", *sums), _written(f"_{name}_product", *products)


def _narrow(operation: str, result: str) -> dict[str, str]:
    """What a line ``NARROW`` stands for."""
    line = _NARROW.format(operation=operation, result=result)
    return dict.fromkeys(("torch", "tf", "jax"), "") | {"numpy": line}


def _written(
    name: str, narrow: dict[str, str], steps: str, result: str, says: str
) -> Mapping[str, Spelling]:
    text = f'''\
def {name}(x: Array, y: Array) -> Array:
    """{says}; what rounding takes off the argument is put back."""
{steps}{result}'''
    needs = tuple(own for word, own in _OWN.items() if word in result)
    return everywhere(name, text, (), needs, **{"    NARROW\n": narrow}, **_VALUES)


EXP_SUM, EXP_PRODUCT = _both(
    "exp",
    """\
    return POWER * (1.0 + e)
""",
    "exp(#)",
)

EXPM1_SUM, EXPM1_PRODUCT = _both(
    "expm1",
    """\
    return GROWTH * (1.0 + e) + e
""",
    "exp(#) - 1",
)

SIGMOID_SUM, SIGMOID_PRODUCT = _both(
    "sigmoid",
    """\
    EXPONENTIAL
    p = SIGMOID
    return p * (1.0 + (1.0 - p) * e)
""",
    "1 / (1 + exp(-(#)))",
    _FINITE,
)

# Far down p * e would be subnormal, which XLA and TensorFlow flush to 0.
SOFTPLUS_SUM, SOFTPLUS_PRODUCT = _both(
    "softplus",
    """\
    EXPONENTIAL
    p = SIGMOID
    tail = xp.where(s < -20.0, e, xp.zeros_like(s))
    y = SOFTPLUS
    return y * (1.0 + tail) + p * (e - tail)
""",
    "log(1 + exp(#))",
    _FINITE,
)

_LESS_ONE = """\
def _power_less_one(x: Array, y: Array) -> Array:
    \"\"\"x**(y - 1); what rounding takes off y - 1 is put back.\"\"\"
    s = y - 1.0
    b = s - y
    e = (y - (s - b)) - (1.0 + b)
    zero = (e == 0.0) | (x == 0.0)
    t = e * LOG(xp.where(zero, xp.ones_like(x), x))
    return x**s * (1.0 + xp.where(xp.abs(t) < 0.01, t, xp.zeros_like(t)))
"""

POWER_LESS_ONE = everywhere(
    "_power_less_one",
    _LESS_ONE,
    (),
    (),
    LOG={
        "numpy": "np.log",
        "torch": "torch.log",
        "tf": "tf.math.log",
        "jax": "jnp.log",
    },
)
