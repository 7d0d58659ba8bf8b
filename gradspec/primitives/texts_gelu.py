"""The slope of x * ndtr(x) in float32, for compilers that fuse.

It is 1 - T or T, as x is positive or not; T = ndtr(-a) - a * exp(-a**2 / 2) / sqrt(2 * pi)
with a = abs(x), which is (p - a) * V(a) times ndtr(-a), p being its zero and V an ordinary
function that is nowhere 0. Nothing cancels, and of both passes the tail ndtr(-a) is all that
costs: XLA keeps it for both, where an exponential and a quotient of polynomials, kept one by
one, took a pass over memory each.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.primitives.coefficients_gelu import SLOPE_OVER, SLOPE_UNDER, ZERO
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere, listed
from gradspec.primitives.texts_elementary import BELL_RAISED
from gradspec.primitives.texts_error import NDTR_RAISED
from gradspec.primitives.texts_fused import QUOTIENT, TAIL_RAISED, quick

_SINGLE = everywhere(
    "_gelu_slope_raised_single",
    f'''\
def _gelu_slope_raised_single(x: Array, y: Array) -> Array:
    """exp(y) times the slope of x * ndtr(x) in float32: a multiple of the distance from its
    zero, which is in two parts, and of what ndtr(x) has. What is rounded in V is small.
    """
    over = {listed(SLOPE_OVER)}
    under = {listed(SLOPE_UNDER)}
    a = xp.where(x < 0.0, -x, x)
    a = xp.where(a > 64.0, 64.0 * xp.ones_like(a), a)
    v = (a + {1 / sum(ZERO)!r}) + a * _quotient(a, over, under)
    d = xp.minimum({ZERO[0]!r} - a, 1.0) - {-ZERO[1]!r}
    t = _tail_raised_single(x, y) * v * d
    return xp.where(x < 0.0, t, 1.0 - t)
''',
    (),
    (QUOTIENT, *TAIL_RAISED),
)

GELU_SLOPE_RAISED: Mapping[str, Helper] = everywhere(
    "_gelu_slope_raised",
    '''\
def _gelu_slope_raised(x: Array, y: Array) -> Array:
    """exp(y) times the slope of x * ndtr(x), where y is 0 unless x < -1."""
    SINGLE
    return _ndtr_raised(x, y) + x * _bell_raised(x, y) / math.sqrt(2.0 * PI)
''',
    ("import math",),
    (_SINGLE, NDTR_RAISED, BELL_RAISED),
    **quick("_gelu_slope_raised", "x, y"),
)
