"""Coefficients for the slopes of x * ndtr(x) and of silu in float32, the highest power
first.

Written by benchmarks/loop_coefficients.py.
"""

from __future__ import annotations

GELU_ZERO = (0.7517915368080139, -1.2114449443600961e-08)
"""Where ndtr(-a) = a exp(-a**2 / 2) / sqrt(2 pi); the first part is exact in float32."""

# (ndtr(-a) exp(a**2 / 2) - a / sqrt(2 pi)) / (p - a) = 1 / 2 + R(a), p the zero,
# a <= 14.4: 7.9e-09 relative.
GELU_OVER = (
    -0.0026315660023637126,
    -0.014373454750918587,
    -0.018638161194252247,
    0.05406116636617464,
    0.16507798988257819,
)
GELU_UNDER = (
    0.0260408466167114,
    0.21948543804435178,
    0.7917158494349317,
    1.3976077816415733,
    1.0,
)

SILU_ZERO = (-1.2784645557403564, 1.2979282759673083e-08)
"""Where 1 + x + exp(x) = 0, in two parts as well."""

SILU_NEAR = 0.35

# The slope over the distance from its zero, as far as SILU_NEAR: 1.1e-08 relative.
SILU_SERIES = (
    0.0007896599563030404,
    0.00016547272101018556,
    -0.006606044669532157,
    -0.01522501683768366,
    0.018874805878102693,
    0.14664883306917237,
    0.21781170571980013,
)
