"""A value broadcast with another (`plan/broadcast.py`).

Users have no name for it. What is added or subtracted is 0, which changes no number.
"""

from __future__ import annotations

from gradspec.primitives.row import Primitive, Runtime
from gradspec.primitives.spelling import TARGETS

BROADCAST_LIKE = "broadcast_like"

ROWS = (
    Primitive(
        BROADCAST_LIKE,
        ("x", "y"),
        meaning="x",
        partials=("1", "0"),
        ball=lambda x, y: x,
        sympy=lambda sp, x, y: x,
        model=lambda np, x, y: np.broadcast_arrays(x, y)[0],
        cost=1,
        source="IEEE 754-2019, 6.3: a number less 0 is the number, and so is -0",
        spellings=dict.fromkeys(TARGETS, Runtime("broadcast_like", "core")),
    ),
)
