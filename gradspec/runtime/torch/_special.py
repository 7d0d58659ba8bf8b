"""Special functions that PyTorch lacks or computes less accurately."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .._formulas import Formulas

_formulas = Formulas(torch)


def __getattr__(name: str) -> Callable[..., Any]:
    """A function that is not written below: one of the formulas."""
    return getattr(_formulas, name)  # type: ignore[no-any-return]


def _is_compiled() -> bool:
    """True while a compiler traces, which fuses all operations into one loop: products
    cost next to nothing there, where each is a pass over memory otherwise.
    """
    return (
        torch.compiler.is_compiling()
        or torch._guards.TracingContext.try_get() is not None
    )


def expm1(x: torch.Tensor) -> torch.Tensor:
    """exp(x) - 1; compiled, about 0 its Taylor series."""
    if not _is_compiled():
        return torch.expm1(x)
    near = torch.abs(x) < 0.35
    b = torch.where(near, x, torch.zeros_like(x))
    count = 14 if x.dtype == torch.float64 else 8
    s = torch.zeros_like(x)
    for k in range(count, 1, -1):
        s = s * b + 1.0 / math.factorial(k)
    return torch.where(near, b * (1.0 + b * s), torch.exp(x) - 1.0)
