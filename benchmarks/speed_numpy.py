"""NumPy: emitted rules beside those that experts write. Run by `speed.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import experts_numpy
import numpy as np
from timing import Thunk, emitted, ratio, ratios, sized

Array = Any
RULES = {
    "softplus": "activations/smooth",
    "mish": "activations/smooth",
    "gelu": "activations/smooth",
    "silu": "activations/smooth",
    "focal_loss": "losses/classification",
    "spike_fast_sigmoid": "surrogates/spikes",
    "spike_arctan": "surrogates/spikes",
    "complex_op": "tutorial/complex_op",
    "logaddexp": "stable/logs",
    "softmax": "tensor/softmax",
    "log_sum_exp": "tensor/softmax",
    "layer_norm": "tensor/norms",
}
ROWS = ("softmax", "log_sum_exp", "layer_norm")
ROW = 100
LEAST = 100_000
"""Elements from which on the means count: below, a call takes what surrounds a formula."""


@cache
def _module(file: str) -> Any:
    return emitted(file, "numpy")


def _inputs(name: str, n: int) -> tuple[Array, ...]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(n).astype(np.float32) for _ in range(2))
    if name == "focal_loss":
        return x, np.sign(y)
    if name in ROWS:
        x = x.reshape(-1, min(n, ROW))
        scales = random.standard_normal((2, x.shape[1])).astype(np.float32)
        return (x, *scales) if name == "layer_norm" else (x,)
    return (x, y) if name in ("complex_op", "logaddexp") else (x,)


def _pass(function: Any, inputs: tuple[Array, ...]) -> Thunk:
    """Forward and backward."""
    made = function(*inputs)[0]
    results = made if isinstance(made, tuple) else (made,)
    upstream = tuple(np.ones_like(result) for result in results)
    return lambda: function(*inputs)[1](*upstream)


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    rows = []
    large = [n for n in sizes if n >= LEAST]
    for name in [name for name in RULES if not only or name in only]:
        ours = getattr(_module(RULES[name]), f"{name}_vjp")
        expert = getattr(experts_numpy, name)
        given = [_inputs(name, n) for n in large]
        found = [ratio(_pass(ours, x), _pass(expert, x), seconds) for x in given]
        rows.append((name, found))
    head = [f"n = {sized(n)}" for n in large]
    ratios("NumPy: of an expert's rule", head, rows, 1.5, 2.5)
