"""The number itself, rounded before what follows (`targets/jax/barriers.py`).

Users have no name for it.
"""

from __future__ import annotations

from gradspec.primitives.row import Expand, Primitive, Spelling
from gradspec.primitives.spelling import special

FENCE = "fence"

_SPELLINGS: dict[str, Spelling] = {
    **dict.fromkeys(("numpy", "torch", "tf"), Expand("x")),
    "jax": special("rounded"),
}

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
)
