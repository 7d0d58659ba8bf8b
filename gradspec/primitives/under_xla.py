"""Primitives that XLA computes worse than TensorFlow does by itself, on a CPU.

`python benchmarks/under_xla.py` prints the rules with which it shows.
"""

from __future__ import annotations

SLOW = frozenset(["sin", "cos", "tan", "sinpi", "cospi", "sinc"])
"""A sine takes XLA 8 ns on a CPU, TensorFlow 1."""

_ELEMENTARY = ("log1p", "sinh", "cosh")
_INVERSES = ("erfinv", "erfcinv", "ndtri")
_SLOPES = ("erfinv_slope", "erfcinv_slope", "ndtri_slope", "i0e_slope", "i1e_slope")
_SPECIAL = (
    "erfcx",
    "lgamma",
    "digamma",
    "polygamma",
    "gamma",
    "i0",
    "i1",
    "i0e",
    "i1e",
)

LOSSY = frozenset([*_ELEMENTARY, *_INVERSES, *_SLOPES, *_SPECIAL])
"""What it has other functions for, or adds up the constants of: in float32 up to 6,500
ULP where TensorFlow's is mostly 2 to 5; and those made like them."""

AVOIDED = SLOW | LOSSY
