"""NumPy: overhead beside the plain expression, and time over that of copying. Run by
`speed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from timing import Thunk, emitted, medians, ratio, ratios, sized

Array = Any
RULES = {
    "softplus": "activations/smooth",
    "mish": "activations/smooth",
    "silu": "activations/smooth",
    "focal_loss": "losses/classification",
    "spike_fast_sigmoid": "surrogates/spikes",
    "spike_arctan": "surrogates/spikes",
    "complex_op": "tutorial/complex_op",
    "logaddexp": "stable/logs",
}
"""Those without special functions of SciPy."""


@cache
def _module(file: str) -> Any:
    return emitted(file, "numpy")


def _inputs(name: str, n: int) -> tuple[Array, ...]:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(n).astype(np.float32) for _ in range(2))
    if name == "focal_loss":
        return x, np.sign(y)
    return (x, y) if name in ("complex_op", "logaddexp") else (x,)


def _both(name: str, n: int) -> tuple[Thunk, Thunk]:
    """Forward, and forward with backward."""
    inputs = _inputs(name, n)
    module = _module(RULES[name])
    value, vjp = getattr(module, name), getattr(module, f"{name}_vjp")
    made = value(*inputs)
    upstream = [np.ones_like(y) for y in (made if isinstance(made, tuple) else (made,))]
    return lambda: value(*inputs), lambda: vjp(*inputs)[1](*upstream)


def _silu(x: Array, dy: Array) -> tuple[Array, Array]:
    """As written out by hand, with the same care."""
    s = np.exp(np.minimum(x, 0.0)) / (1.0 + np.exp(-np.abs(x)))
    t = np.exp(np.minimum(-x, 0.0)) / (1.0 + np.exp(-np.abs(-x)))
    y = x * s
    return y, dy * (s + y * t)


def _complex_op(x: Array, y: Array, dz: Array, dw: Array) -> tuple[Array, ...]:
    return (
        *(x * y + np.sin(x), y * y),
        *(dz * (y + np.cos(x)), dz * x + 2.0 * dw * y),
    )


def _spike(v: Array, ds: Array) -> tuple[Array, Array]:
    return (v > 0).astype(v.dtype), ds / np.square(1.0 + 25.0 * np.abs(v))


PLAIN: dict[str, Callable[..., Any]] = {
    "silu": _silu,
    "complex_op": _complex_op,
    "spike_fast_sigmoid": _spike,
}


def overhead(names: Sequence[str], seconds: float) -> None:
    """At one element, forward and backward, against plain expressions."""
    rows = []
    for name in names:
        if name not in PLAIN:
            continue
        _, both = _both(name, 1)
        inputs = _inputs(name, 1)
        count = 2 if name == "complex_op" else 1
        given = (*inputs, *(np.ones_like(inputs[0]),) * count)
        found = ratio(both, lambda p=PLAIN[name], g=given: p(*g), seconds)
        rows.append((name, (found,)))
    ratios("NumPy: overhead of plain expressions", ("n = 1",), rows, (1.3,))


def _floor(arrays: int, n: int) -> Thunk:
    """Copying as many bytes as ``arrays`` arrays of float32 hold, to memory in use."""
    size = arrays * n // 2
    one, other = np.ones(size, np.float32), np.ones(size, np.float32)
    return lambda: np.copyto(other, one)


def over_floor(names: Sequence[str], n: int, seconds: float) -> None:
    """Arguments and results go through memory once at least."""
    rows = []
    for name in names:
        forward, both = _both(name, n)
        given = len(_inputs(name, n))
        made = 2 if name == "complex_op" else 1
        takes = given - (name == "focal_loss")
        first = given + made
        thunks = {
            "forward": forward,
            "both": both,
            "floor": _floor(first, n),
            "floors": _floor(first + given + made + takes, n),
        }
        found = medians(thunks, 2 * seconds)
        times = (found["forward"] / found["floor"], found["both"] / found["floors"])
        rows.append((name, times))
    within = (5.0, 5.0) if n >= 10_000_000 else (None, None)
    title = f"NumPy at n = {sized(n)}: of copying the same bytes"
    ratios(title, ("forward", "with backward"), rows, within)


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    names = [name for name in RULES if not only or name in only]
    overhead(names, seconds)
    for n in sizes:
        over_floor(names, n, seconds)
