"""The bell and the normal distribution taken larger, for targets on which subnormal numbers
are 0 (`stabilise/scaled.py`).

Users have no names for these. ``x * ndtr(x)`` at -13 is a normal number and ``ndtr(x)`` none
in float32; times ``exp(16)`` it is one, if that is in the exponential from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Expand, Helper, Primitive, Spelling
from gradspec.primitives.texts_elementary import BELL_RAISED as BELL_TEXTS
from gradspec.primitives.texts_error import NDTR_RAISED as NDTR_TEXTS
from gradspec.primitives.texts_gelu import GELU_SLOPE_RAISED as SLOPE_TEXTS

NDTR_RAISED = "ndtr_raised"
BELL_RAISED = "bell_raised"
GELU_SLOPE_RAISED = "gelu_slope_raised"


def _flushing(formula: str, texts: Mapping[str, Helper]) -> Mapping[str, Spelling]:
    """Private functions where they are needed, the formula elsewhere."""
    plain: dict[str, Spelling] = dict.fromkeys(("numpy", "torch"), Expand(formula))
    return plain | {target: texts[target] for target in ("tf", "jax")}


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
        spellings=_flushing("exp(y) * exp_neg_half_square(x)", BELL_TEXTS),
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
        spellings=_flushing("exp(y) * ndtr(x)", NDTR_TEXTS),
        notes="the second argument is 0 unless the first is far out on the left",
    ),
    Primitive(
        GELU_SLOPE_RAISED,
        ("x", "y"),
        meaning="exp(y) * (ndtr(x) + x * exp(-0.5 * square(x)) / sqrt(2 * pi))",
        partials=("bell_raised(x, y) * (2 - square(x)) / sqrt(2 * pi)", "out"),
        ball=lambda x, y: (
            y.exp() * (balls.ndtr(x) + x * (-x * x / 2).exp() / (2 * x.pi()).sqrt())
        ),
        sympy=lambda sp, x, y: (
            sp.exp(y)
            * (
                sp.erfc(-x / sp.sqrt(2)) / 2
                + x * sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
            )
        ),
        cost=60,
        source="as ndtr; the rest is a fit (benchmarks/gelu_coefficients.py)",
        spellings=_flushing(
            "exp(y) * (ndtr(x) + x * exp_neg_half_square(x) / sqrt(2 * pi))",
            SLOPE_TEXTS,
        ),
        notes="the second argument is 0 unless the first is far out on the left; in"
        " float64 without digits about its zero",
    ),
)
