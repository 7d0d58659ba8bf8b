"""Functions of what is at hand already, for compilers that fuse.

Users have no names for these. About a zero of its gradient, an activation of `x` and
`exp(x)` has an `expm1` of the distance; the exponential of that is known but for a factor,
and in a fused loop a second one costs as much as all the rest. Elsewhere they are written
out: an `expm1` is one operation there, and the series many.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives.row import Expand, Primitive
from gradspec.primitives.spelling import everywhere

EXPM1 = "expm1_known"

_NEAR = 0.35


def _model(np: Any, x: Any, t: Any) -> Any:
    return np.where(np.abs(x) < _NEAR, np.expm1(x), t - 1.0)


ROWS = (
    Primitive(
        EXPM1,
        ("x", "y"),
        meaning="expm1(x)",
        partials=("exp(x)", None),
        ball=lambda x, _: x.expm1(),
        sympy=lambda sp, x, _: sp.exp(x) - 1,
        model=_model,
        cost=20.0,
        source="Taylor's series; beyond, exp(x) - 1 as it stands",
        spellings=everywhere("expm1_known") | {"numpy": Expand("expm1(x)")},
    ),
)
