"""What is done about infinities: they are made finite, or give way to a 0.

Users have no names for these; the stabiliser puts them where infinity times 0, or infinity
over infinity, has a limit. At finite numbers they are the number itself and the product,
with the slopes of these.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import everywhere

FINITE = "finite"
VANISHING = "vanishing"

_FINITE_TEXT = '''\
def _finite(x: Array) -> Array:
    """x, or the largest numbers of its type in place of infinities."""
    return BOUNDED
'''

_BOUNDED = {
    # `np.clip` takes nine times as long as these two for one element
    "numpy": "x.clip(np.finfo(x.dtype).min, np.finfo(x.dtype).max)",
    "torch": "torch.clamp(x, torch.finfo(x.dtype).min, torch.finfo(x.dtype).max)",
    "tf": "tf.clip_by_value(x, x.dtype.min, x.dtype.max)",
    "jax": "jnp.clip(x, jnp.finfo(x.dtype).min, jnp.finfo(x.dtype).max)",
}

_VANISHING_TEXT = '''\
def _vanishing(x: Array, y: Array) -> Array:
    """x * y; where y has vanished, as an exponential does, an infinite x counts as 0."""
    return WHERE * y
'''

_WHERE = {
    "numpy": "np.where(np.isinf(x) & (y == 0.0), 0.0, x)",
    "torch": "torch.where(torch.isinf(x) & (y == 0.0), 0.0, x)",
    "tf": "tf.where(tf.math.is_inf(x) & (y == 0.0), tf.zeros_like(x), x)",
    "jax": "jnp.where(jnp.isinf(x) & (y == 0.0), 0.0, x)",
}


def _model(np: Any, x: Any) -> Any:
    """In the type that the machine computes in, as on a target."""
    limits = np.finfo(np.asarray(x).dtype)
    return np.clip(x, limits.min, limits.max)


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
        spellings=everywhere("_finite", _FINITE_TEXT, BOUNDED=_BOUNDED),
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
)
NAMES = frozenset(row.name for row in ROWS)
