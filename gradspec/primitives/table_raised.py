"""The bell and the normal distribution taken larger, for targets on which subnormal numbers
are 0 (`stabilise/scaled.py`).

Users have no names for these. ``x * ndtr(x)`` at -13 is a normal number and ``ndtr(x)`` none
in float32; times ``exp(16)`` it is one, if that is in the exponential from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Expand, Primitive, Spelling
from gradspec.primitives.spelling import special

NDTR_RAISED = "ndtr_raised"
BELL_RAISED = "bell_raised"


def _flushing(formula: str, name: str) -> Mapping[str, Spelling]:
    """A runtime function where subnormal numbers count as 0, the formula elsewhere."""
    plain: dict[str, Spelling] = dict.fromkeys(("numpy", "torch"), Expand(formula))
    return plain | {target: special(name) for target in ("tf", "jax")}


def _bell(np: Any, x: Any, y: Any) -> Any:
    c = np.clip(x, -64.0, 64.0)
    h = np.round(c * 256.0) / 256.0
    return np.exp(y - 0.5 * h * h) * np.exp(0.5 * (h - c) * (h + c))


ROWS = (
    Primitive(
        BELL_RAISED,
        ("x", "y"),
        meaning="exp(y - 0.5 * square(x))",
        partials=("-out * x", "out"),
        ball=lambda x, y: (y - x * x / 2).exp(),
        sympy=lambda sp, x, y: sp.exp(y - x**2 / 2),
        model=_bell,
        cost=30,
        source="as exp_neg_half_square",
        spellings=_flushing("exp(y) * exp_neg_half_square(x)", "bell_raised"),
    ),
    Primitive(
        NDTR_RAISED,
        ("x", "y"),
        meaning="exp(y) * ndtr(x)",
        partials=("bell_raised(x, y) / sqrt(2 * pi)", "out"),
        ball=lambda x, y: y.exp() * balls.ndtr(x),
        sympy=lambda sp, x, y: sp.exp(y) * sp.erfc(-x / sp.sqrt(2)) / 2,
        cost=42,
        source="as ndtr",
        spellings=_flushing("exp(y) * ndtr(x)", "ndtr_raised"),
        notes="the second argument is 0 unless the first is far out on the left",
    ),
)
