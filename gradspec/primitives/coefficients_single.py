"""Coefficients of the error functions in float32, the highest power first.

Written by benchmarks/special_coefficients.py.
"""

from __future__ import annotations

# (1 + x) exp(x**2 / 2) ndtr(-x) = 1/2 + x R(x), x <= 15: 5e-09 relative.
MILLS_OVER = (
    -0.0011384428029999132,
    -0.0063444237025483425,
    -0.010730020120660119,
    0.021828197736202024,
    0.10105772161464026,
)
MILLS_UNDER = (
    0.011265650776408436,
    0.10723261101752204,
    0.4855050566311749,
    1.2263916014656029,
    1.6898326714593146,
    1.0,
)
