"""Coefficients for the slope of x * ndtr(x) in float32, the highest power first.

Written by benchmarks/gelu_coefficients.py.
"""

from __future__ import annotations

ZERO = (0.7517915368080139, -1.2114449443600961e-08)
"""Where ndtr(-a) = a exp(-a**2 / 2) / sqrt(2 pi); the first part is exact in float32."""

# (1 - a exp(-a**2 / 2) / (sqrt(2 pi) ndtr(-a))) / (p - a) = a + 1 / p + a R(a), p the zero,
# a <= 14: 1.2e-08 relative.
SLOPE_OVER = (
    -0.005915805050214588,
    -0.04853859963662262,
    -0.17471520087542644,
    -0.29199534051251,
)
SLOPE_UNDER = (
    0.010230021648758468,
    0.09385293449148127,
    0.4026105268340109,
    0.9235061948987905,
    1.0,
)
