"""What becomes of subnormal numbers on each target.

Measured, and held by tests/primitives/test_flushed.py: TensorFlow's kernels and XLA run with
the processor's "flush to zero" and "denormals are zero", so that every subnormal argument
or result of arithmetic, of a comparison and of every function counts as 0, in float32 and
in float64; the sign of a number, a choice and a copy leave its bits as they are. NumPy and
PyTorch keep subnormal numbers, but for PyTorch's sigmoid, 1 / (1 + exp(-x)): where exp(-x)
is beyond the range it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping

FLUSHING = frozenset(["tf", "jax"])
"""Targets on which all that computes takes subnormal numbers for 0."""

COPYING = frozenset(["neg", "abs"])
"""What does not compute."""

VANISHING: Mapping[tuple[str, str], float] = {("torch", "sigmoid"): 0.25}
"""Other functions that are 0 below so many times the least normal number."""


def least(target: str, name: str) -> float:
    """Below how many least normal numbers a result of a function is 0."""
    if target in FLUSHING:
        return 0.0 if name in COPYING else 1.0
    return VANISHING.get((target, name), 0.0)
