"""A product that gives way to a factor that is 0.

Users have no name for it; the evaluation stage puts it where an overflow times 0 has the
limit 0. At finite numbers it is the product, with its slopes.
"""

from __future__ import annotations

from typing import Any

from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import everywhere

VANISHING = "vanishing"


def _product(np: Any, x: Any, y: Any) -> Any:
    return np.where(np.isinf(x) & (y == 0), np.zeros_like(x), x) * y


ROWS = (
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
)
