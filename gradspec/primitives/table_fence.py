"""The number itself, in words that compilers do not look through (`stabilise/fenced.py`).

Users have no name for it.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.primitives import table_algebraic, table_operators
from gradspec.primitives.row import Expand, Helper, Primitive, Spelling
from gradspec.primitives.spelling import TARGETS
from gradspec.primitives.texts_kept import TF_OVER_ROOT, TF_RECIPROCAL

FENCE = "fence"
RECIPROCAL = "reciprocal_kept"
OVER_ROOT = "over_root"

_FENCE = Helper(
    "_fence",
    '''\
def _fence(x: tf.Tensor) -> tf.Tensor:
    """x, in float64 behind a bound: constants on both sides are not added up."""
    if x.dtype != tf.float64:
        return x
    return tf.minimum(x, 1.7976931348623157e308)
''',
)

_ROUNDED = Helper(
    "_rounded",
    '''\
def _rounded(x: jax.Array) -> jax.Array:
    """x, rounded before it is used: XLA would join what is on both sides."""
    kind = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(x, kind.nexp, kind.nmant)
''',
)


_SPELLINGS: dict[str, Spelling] = {
    **dict.fromkeys(("numpy", "torch"), Expand("x")),
    "tf": _FENCE,
    "jax": _ROUNDED,
}

_KNOWN = {row.name: row for row in (*table_algebraic.ROWS, *table_operators.ROWS)}

ROWS = (
    Primitive(
        FENCE,
        ("x",),
        meaning="x",
        partials=("1",),
        ball=lambda x: x,
        sympy=lambda sp, x: x,
        model=lambda np, x: x,
        cost=1,
        source="IEEE 754-2019, 9.6: the minimum of a number and the largest is the number",
        spellings=_SPELLINGS,
    ),
    replace(
        _KNOWN["reciprocal"],
        name=RECIPROCAL,
        spellings=dict.fromkeys(TARGETS, Expand("1 / x")) | {"tf": TF_RECIPROCAL},
    ),
    replace(
        _KNOWN["div"],
        name=OVER_ROOT,
        meaning="x / y",
        source="x / y",
        spellings=dict.fromkeys(TARGETS, Expand("x / y")) | {"tf": TF_OVER_ROOT},
    ),
)
