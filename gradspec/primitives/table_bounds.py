"""What is done about infinities: they are made finite, or give way to a 0.

``times`` is for upstream gradients, which `gradspec.targets.unasked` tells of.

Users have no names for these; the stabiliser puts them where infinity times 0, or infinity
over infinity, has a limit. At finite numbers they are the number itself and the product,
with the slopes of these.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Helper, Primitive, Template
from gradspec.primitives.spelling import everywhere, infix

FINITE = "finite"
VANISHING = "vanishing"
TIMES = "times"
GATED = "gated"

_FINITE_TEXT = '''\
def _finite(x: Array) -> Array:
    """x, or the largest numbers of its type in place of infinities."""
    return BOUNDED
'''

_BOUNDED = {
    # of one element the question takes a tenth of what the method does, of many a half
    "numpy": """(
        x
        if (
            0.0 * x.item() == 0.0
            if x.size == 1
            else x.size > 1024 and -np.inf < x.min() and x.max() < np.inf
        )
        else x.clip(np.finfo(x.dtype).min, np.finfo(x.dtype).max)
    )""",
    # compiled, torch.nan_to_num costs as much as two sines
    "torch": "torch.clamp(x, torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)",
    # tf.clip_by_value takes as long as ten operations
    "tf": """tf.raw_ops.ClipByValue(
        t=x, clip_value_min=-_largest(x.dtype), clip_value_max=_largest(x.dtype)
    )""",
    "jax": "jnp.clip(x, jnp.finfo(x.dtype).min, jnp.finfo(x.dtype).max)",
}

# Each takes NumPy to answer 10 µs, half of what the operation does.
_LARGEST = Helper(
    "_largest",
    '''\
@cache
def _largest(dtype: tf.DType) -> float:
    """The largest number of a type, for which the type asks NumPy at each call."""
    return float(dtype.max)
''',
    ("from functools import cache",),
)

_VANISHING_TEXT = '''\
def _vanishing(x: Array, y: Array) -> Array:
    """x * y; where y has vanished, as an exponential does, an infinite x counts as 0."""
    return WHERE * y
'''

_WHERE = {
    "numpy": "np.where(np.isinf(x) & (y == 0.0), 0.0, x)",
    "torch": "torch.where(torch.isinf(x) & (y == 0.0), 0.0, x)",
    "tf": "tf.where(tf.math.is_inf(x) & tf.equal(y, 0.0), tf.zeros_like(x), x)",
    "jax": "jnp.where(jnp.isinf(x) & (y == 0.0), 0.0, x)",
}

_GATED_TEXT = '''\
def _gated(x: Array, y: Array) -> Array:
    """x * max(y, 0); where nothing passes, an infinite x counts as 0."""
    return PRODUCT
'''

_PRODUCT = {
    "numpy": "_where(np.isinf(x) & (y <= 0.0), 0.0, x) * np.maximum(y, 0.0)",
    # `torch.where` takes ten times as long; what is added is 0, or NaN as x is
    "torch": "torch.ops.aten.threshold_backward(x * y, y + x.clamp(0.0, 0.0), 0.0)",
    "tf": "tf.math.multiply_no_nan(x, tf.nn.relu(y) + tf.clip_by_value(x, 0.0, 0.0))",
    "jax": "jnp.where(jnp.isinf(x) & (y <= 0.0), 0.0, x) * jnp.maximum(y, 0.0)",
}

_TIMES_TEXT = '''\
def _times(x: np.ndarray, d: np.ndarray) -> np.ndarray:
    """x * d; 0 if d is 0 throughout: then nothing is asked, whatever x may be."""
    if (d.size and d.item(0)) or d.any():
        return x * d
    return np.zeros(np.broadcast_shapes(x.shape, d.shape), d.dtype)
'''


def _model(np: Any, x: Any) -> Any:
    """In the type that the machine computes in, as on a target."""
    limits = np.finfo(np.asarray(x).dtype)
    return np.clip(x, limits.min, limits.max)


def _passed(np: Any, x: Any, y: Any) -> Any:
    return np.where(np.isinf(x) & (y <= 0), np.zeros_like(x), x) * np.maximum(y, 0)


def _product(np: Any, x: Any, y: Any) -> Any:
    return np.where(np.isinf(x) & (y == 0), np.zeros_like(x), x) * y


ROWS = (
    Primitive(
        FINITE,
        ("x",),
        meaning="x",
        partials=("1",),
        ball=lambda x: x,
        sympy=lambda sp, x: x,
        model=_model,
        cost=2.0,
        source="IEEE 754: an infinity is more than every number",
        spellings=everywhere(
            "_finite", _FINITE_TEXT, needs=({"tf": _LARGEST},), BOUNDED=_BOUNDED
        ),
    ),
    Primitive(
        VANISHING,
        ("x", "y"),
        meaning="x * y",
        partials=("y", "x"),
        ball=lambda x, y: x * y,
        sympy=lambda sp, x, y: x * y,
        model=_product,
        cost=5.0,
        source="the limit of x * exp(-x) at infinity",
        spellings=everywhere("_vanishing", _VANISHING_TEXT, WHERE=_WHERE),
    ),
    Primitive(
        GATED,
        ("x", "y"),
        meaning="x * max(y, 0)",
        partials=("max(y, 0)", "x * (1 if y > 0 else 0.5 if y == 0 else 0)"),
        kinks=(("y == 0", "half of x, as of the maximum"),),
        ball=lambda x, y: x * balls.maximum(y, 0 * y),
        sympy=lambda sp, x, y: x * sp.Max(y, 0),
        model=_passed,
        cost=4.0,
        source="the limit of x * max(y, 0) at infinity, where y is negative",
        spellings=everywhere("_gated", _GATED_TEXT, PRODUCT=_PRODUCT),
    ),
    Primitive(
        TIMES,
        ("x", "y"),
        meaning="x * y",
        partials=("y", "x"),
        ball=lambda x, y: x * y,
        sympy=lambda sp, x, y: x * y,
        model=lambda np, x, y: np.where(y == 0, np.zeros_like(x), x) * y,
        source="the chain rule: what is not asked for adds nothing",
        spellings=infix(
            "*",
            10,
            numpy=Helper("_times", _TIMES_TEXT),
            tf=Template("tf.raw_ops.MulNoNan(x={x}, y={y})"),
        ),
    ),
)
NAMES = frozenset(row.name for row in ROWS)
