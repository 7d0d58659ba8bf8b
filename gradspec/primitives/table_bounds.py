"""What is done about infinities: they are made finite, or give way to a 0.

Users have no names for these; the stabiliser puts them where infinity times 0, or infinity
over infinity, has a limit. At finite numbers they are the number itself and the product,
with the slopes of these.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import everywhere

FINITE = "finite"
VANISHING = "vanishing"
GATED = "gated"


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
        spellings=everywhere("finite"),
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
        spellings=everywhere("vanishing"),
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
        spellings=everywhere("gated"),
    ),
)
NAMES = frozenset(row.name for row in ROWS)
