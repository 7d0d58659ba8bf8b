"""What is known of a built-in on one target, beyond how it is spelled: a part of its row.

Costs are those of NumPy and of eager PyTorch and TensorFlow on a CPU, where each operation
is a call and goes through memory by itself; measured on one core (AVX-512), NumPy 2.4 at
65536 elements, PyTorch 2.13 at 16384, TensorFlow 2.21 halfway between a thousand elements
and a hundred thousand. Errors
are measured too (`measured.py`), and so is what becomes of subnormal numbers
(tests/primitives/test_on_target.py).

TensorFlow's kernels and XLA run with the processor's "flush to zero" and "denormals are
zero", so that every subnormal argument or result of arithmetic, of a comparison and of
every function counts as 0, in float32 and in float64; the sign of a number, a choice and a
copy leave its bits as they are. NumPy and PyTorch keep subnormal numbers, but for PyTorch's
sigmoid, 1 / (1 + exp(-x)): where exp(-x) is beyond the range it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from gradspec.primitives.measured import FAULTS, Span

FLUSHING = frozenset(["tf", "jax"])
"""Targets on which all that computes takes subnormal numbers for 0."""

MAY_LACK_DOUBLE = frozenset(["jax"])
"""Targets that compute in float32 what asks for float64, unless a user switches it on."""


@dataclass(frozen=True, slots=True)
class OnTarget:
    """single, double  what it costs in either type, in products in float32 of as many
                    elements; None: as the row says, in float64 by its width
    calls           operations in its private function, in the type of the arguments
    calls_in_double those of what stands for it in float64
    flushes         subnormal arguments count as 0
    vanishes        its results are 0 below so many times the least normal number
    slow, lossy     under XLA, beside the target by itself: it takes several times as long
                    there; it loses digits there
    single_faults, double_faults
                    where it is usually off by more than 8 ULP
    """

    single: float | None = None
    double: float | None = None
    calls: float = 1.0
    calls_in_double: float = 1.0
    flushes: bool = False
    vanishes: float = 0.0
    slow: bool = False
    lossy: bool = False
    single_faults: tuple[Span, ...] = ()
    double_faults: tuple[Span, ...] = ()

    def faults(self, dtype: str) -> tuple[Span, ...]:
        """Those in a type; none in one that is not measured."""
        known = {"float32": self.single_faults, "float64": self.double_faults}
        return known.get(dtype, ())


_FACTS = """
exp                 numpy single=4.5 double=6      torch single=6 double=6        tf double=2.3
expm1               numpy single=2.8 double=8.7    torch single=9 double=9        tf single=2.9 double=7.6
expm1_known         numpy single=2.8 double=8.7    torch single=9 double=9
sigmoid             numpy single=7.8 double=12     torch single=3 double=3 vanishes=0.25 tf double=2.9
tanh                numpy single=2.9 double=12.7   torch single=18 double=18      tf double=2.3
erf                 torch single=9.5 double=9.5    tf double=6.8
erfc                torch single=13 double=13      tf single=2.3 double=5.3
log                 numpy single=3 double=6.2      torch single=5 double=5        tf double=3.1
log1p               numpy single=3.5 double=7.9    torch single=6.5 double=6.5    tf single=1.6 double=3.9 lossy
softplus            numpy single=11 double=20      torch single=11 double=11      tf single=4 double=10
logsigmoid          numpy single=12 double=22      torch single=8 double=8
logaddexp           numpy single=14 double=24      torch single=11.5 double=11.5
lt le gt ge eq      torch single=3 double=3
div                 numpy single=1 double=2.7      torch single=1.2 double=1.2
clip                numpy single=1.4 double=2.2    tf single=2 double=2
sinh                numpy single=2.9 double=8.8    tf single=2 double=5 lossy
cosh                numpy single=2.6 double=6.5    tf single=2 double=5 lossy
ndtr                torch single=30 double=25 calls=16 calls_in_double=3
exp_neg_half_square torch single=40 calls=17
sigmoid_sum         numpy single=27                torch single=25 calls=14
sigmoid_product     numpy single=35                torch single=35 calls=24
exp_sum             numpy single=20                torch single=20 calls=11
exp_product         numpy single=30                torch single=30 calls=20

sin                 numpy single=4 double=62       tf slow
cos                 numpy single=4.2 double=64     tf slow
tan sinpi cospi sinc tf slow
erfinv erfcinv ndtri                     tf lossy
erfinv_slope erfcinv_slope ndtri_slope   tf lossy
i0 i1 i0e i1e i0e_slope i1e_slope        tf lossy
erfcx lgamma digamma polygamma gamma     tf lossy
asin atanh logit                         tf lossy
atan                numpy single=3 double=9.2
sqrt                numpy single=2.8 double=8.9
min                 numpy single=1.4 double=2.2
max                 numpy single=1.4 double=2.2
"""
"""A sine takes XLA 8 ns on a CPU, TensorFlow 1. What XLA has other functions for, or adds
up the constants of, is off in float32 by up to 6,500 ULP where TensorFlow's is mostly by 2
to 5; and so is what is made like them (`python benchmarks/under_xla.py`). Its arc sine of numbers
next to the least is 0, and `atanh` and `logit` have its `log1p`, 120 ULP off in float64."""

_TARGETS = ("numpy", "torch", "tf", "jax")
_COPYING = ("neg", "abs")
"""What does not compute."""


def on_targets(name: str) -> Mapping[str, OnTarget]:
    """What is known of one built-in, by target."""
    told = _facts().get(name, {})
    return {target: _known(name, target, told.get(target, {})) for target in _TARGETS}


def _known(name: str, target: str, told: Mapping[str, Any]) -> OnTarget:
    known = OnTarget(
        single_faults=FAULTS.get((name, target, "float32"), ()),
        double_faults=FAULTS.get((name, target, "float64"), ()),
    )
    if target in FLUSHING and name not in _COPYING:
        known = replace(known, flushes=True, vanishes=1.0)
    return replace(known, **told)


@cache
def _facts() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The text as data: by name and by target, numbers and marks."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in filter(None, _FACTS.splitlines()):
        words = line.split()
        count = next(k for k, word in enumerate(words) if word in _TARGETS)
        for name in words[:count]:
            assert name not in found, name
            found[name] = _told(words[count:])
    return found


def _told(words: list[str]) -> dict[str, dict[str, Any]]:
    """Each target, and after it what is known there."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        key, _, number = word.partition("=")
        if word in _TARGETS:
            here = found.setdefault(word, {})
        else:
            here[key] = float(number) if number else True
    return found
