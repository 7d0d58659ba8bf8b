"""Errors of a target's function for a built-in: a part of the built-in's row.

Errors are measured (`measured.py`), and so is what becomes of subnormal numbers
(tests/primitives/test_on_target.py).

TensorFlow's kernels and XLA run with the processor's "flush to zero" and "denormals are
zero", so that every subnormal argument or result of arithmetic, of a comparison and of
every function counts as 0, in float32 and in float64; the sign of a number, a choice and a
copy leave its bits as they are. NumPy and PyTorch keep subnormal numbers, but for PyTorch's
sigmoid, 1 / (1 + exp(-x)): where exp(-x) is beyond the range it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradspec.primitives.measured import FAULTS, Span

FLUSHING = frozenset(["tf", "jax"])
"""Targets on which all that computes takes subnormal numbers for 0."""

MAY_LACK_DOUBLE = frozenset(["jax"])
"""Targets that compute in float32 what asks for float64, unless a user switches it on."""

_TARGETS = ("numpy", "torch", "tf", "jax")
_COPYING = ("neg", "abs")
"""Built-ins that change the sign bit alone, so that subnormal numbers pass."""

_VANISHES = {("sigmoid", "torch"): 0.25}
"""Beside what targets flush."""


@dataclass(frozen=True, slots=True)
class OnTarget:
    """Errors of one built-in on one target.

    flushes         subnormal arguments count as 0
    vanishes        its results are 0 below so many times the least normal number
    single_faults, double_faults
                    where it is usually off by more than 8 ULP
    """

    flushes: bool = False
    vanishes: float = 0.0
    single_faults: tuple[Span, ...] = ()
    double_faults: tuple[Span, ...] = ()

    def faults(self, dtype: str) -> tuple[Span, ...]:
        """Those in a type; none in one that is not measured."""
        known = {"float32": self.single_faults, "float64": self.double_faults}
        return known.get(dtype, ())


def on_targets(name: str) -> Mapping[str, OnTarget]:
    """What is known of one built-in, by target."""
    return {target: _facts_of(name, target) for target in _TARGETS}


def _facts_of(name: str, target: str) -> OnTarget:
    flushes = target in FLUSHING and name not in _COPYING
    return OnTarget(
        flushes,
        1.0 if flushes else _VANISHES.get((name, target), 0.0),
        FAULTS.get((name, target, "float32"), ()),
        FAULTS.get((name, target, "float64"), ()),
    )
