"""The slope of gelu in float32 from what the forward pass has, where compilers fuse.

``ndtr(x) + x * exp(-x**2 / 2) / sqrt(2 * pi)`` has a series about its zero, the exponential
and the quotient of polynomials that the forward pass has; XLA keeps those two in memory for
both. In float32 one function without cancellation stands for all of it, and only the
distribution function is kept (`primitives/texts_gelu.py`).
"""

from __future__ import annotations

from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Op, Where
from gradspec.primitives.table_known import BY_PRECISION
from gradspec.primitives.table_raised import BELL_RAISED, GELU_SLOPE_RAISED, NDTR_RAISED

_ROOT = Op("sqrt", (Op("mul", (Literal(Fraction(2)), Op("pi"))),))
_FAR = 64
"""Beyond it the slope is 0 or 1 in every format: bounds there make no difference."""


def gelu_slope(node: Expr) -> Expr:
    """A choice between a series, which is the slope of x * ndtr(x) about its zero, and that
    slope, as the latter beside one function for float32."""
    match node:
        case Where(other=Op("add", (Op(primitive=name, args=(x, y)), product))) if (
            name == NDTR_RAISED and _is_through(product, x, y)
        ):
            return Op(BY_PRECISION, (Op(GELU_SLOPE_RAISED, (x, y)), node))
        case _:
            return node


def _is_through(product: Expr, x: Expr, y: Expr) -> bool:
    """Whether it is x times the density, raised by as much; bounds of x are far out."""
    match product:
        case Op("div", (Op("mul", (bounded, bell)), root)):
            is_bell = bell == Op(BELL_RAISED, (x, y)) and root == _ROOT
            return is_bell and _unbounded(bounded) == x
        case _:
            return False


def _unbounded(x: Expr) -> Expr:
    match x:
        case Op("clip", (inner, Literal(value=low), Literal(value=high))):
            return inner if low <= -_FAR and high >= _FAR else x
        case _:
            return x
