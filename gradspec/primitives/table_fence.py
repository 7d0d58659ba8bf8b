"""The number itself, in words that compilers do not look through (`stabilise/fenced.py`).

Users have no name for it.
"""

from __future__ import annotations

from gradspec.primitives.row import Expand, Helper, Primitive, Spelling
from gradspec.primitives.spelling import everywhere

FENCE = "fence"

_TEXT = '''\
def _fence(x: Array) -> Array:
    """x, in float64 behind a bound: constants on both sides are not added up."""
    if x.dtype != xp.float64:
        return x
    return xp.minimum(x, 1.7976931348623157e308)
'''


_ROUNDED = Helper(
    "_rounded",
    '''\
def _rounded(x: jax.Array) -> jax.Array:
    """x, rounded before it is used: XLA would join what is on both sides."""
    kind = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(x, kind.nexp, kind.nmant)
''',
)


def _spellings() -> dict[str, Spelling]:
    made: dict[str, Helper] = everywhere("_fence", _TEXT)
    plain: dict[str, Spelling] = dict.fromkeys(("numpy", "torch"), Expand("x"))
    return {**plain, "tf": made["tf"], "jax": _ROUNDED}


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
        spellings=_spellings(),
    ),
)
