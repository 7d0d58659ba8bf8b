"""How far float32 is off float64, at many points."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.stabilise.model import Machine

_FULL = 2.0**24
"""Times the least normal number: below, a part of a result may lack digits because it is
subnormal, and a few lost so are no reason to be slow."""


def apart(machine: Machine, closed: Expr) -> Any:
    """How far float32 is off float64, in ULP; infinitely where it is not finite or 0 and
    float64 a normal number."""
    return ulp(*both(machine, closed))


def ulp(value: Any, truth: Any) -> Any:
    limits, size = np.finfo(np.float32), np.abs(truth)
    with np.errstate(all="ignore"):
        off = np.abs(value - truth) / unit(truth)
    off = np.where(size >= _FULL * limits.tiny, off, 0.0)
    off = np.where(~np.isfinite(value) | (value == 0), np.inf, off)
    return np.where((size >= limits.tiny) & (size <= limits.max), off, 0.0)


def both(machine: Machine, closed: Expr) -> tuple[Any, Any]:
    """In float32 and in float64."""
    with np.errstate(all="ignore"):
        value = np.float64(machine.run(closed))
        return value, np.float64(machine.in_double().run(closed))


def unit(truth: Any) -> Any:
    """The last place in float32."""
    size = np.maximum(np.abs(truth), np.finfo(np.float32).tiny)
    return np.float64(np.spacing(np.float32(size)))
