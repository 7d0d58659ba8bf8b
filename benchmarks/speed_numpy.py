"""NumPy: overhead beside the plain expression, and time over that of copying. Run by
`speed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import experts_numpy
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
    "gelu_tanh": "activations/smooth",
    "softmax": "tensor/softmax",
    "log_sum_exp": "tensor/softmax",
    "layer_norm": "tensor/norms",
}
"""Those without special functions of SciPy."""

PEERS = {**RULES, "gelu": "activations/smooth"}
"""Those that are compared with an expert's, who takes SciPy's."""

COPYING = (1, 2)
"""Threads: where one core can fill the memory's bandwidth, two are no faster."""

LARGE = 10_000_000
"""Elements of which a copy has the memory's bandwidth. What has a result of few elements
copies fewer bytes than a cache has: that takes two thirds of the time."""

ROWS = ("softmax", "log_sum_exp", "layer_norm")
ROW = 100


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


def _both(name: str, n: int) -> tuple[Thunk, Thunk]:
    """Forward, and forward with backward."""
    inputs = _inputs(name, n)
    module = _module(PEERS[name])
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


def _silu_as_emitted(x: Array, dy: Array) -> tuple[Array, Array]:
    t = np.exp(np.minimum(x, 88.0))
    y = np.maximum(x, -10000.0) * (t / (1.0 + t))
    c, dy = x.astype(np.float64).clip(-10000.0, 40.0), dy.astype(np.float64)
    e = np.exp(c)
    d = 1.0 + e
    return y, (dy * (e * (d + c) / np.square(d))).astype(np.float32)


def _spike_as_emitted(v: Array, ds: Array) -> tuple[Array, Array]:
    total = 1.0 + 25.0 * np.abs(v)
    return np.heaviside(v, 0.0), ds / total / total


PLAIN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "silu": (_silu, _silu_as_emitted),
    "complex_op": (_complex_op, _complex_op),
    "spike_fast_sigmoid": (_spike, _spike_as_emitted),
}
"""As an expert writes it, and the evaluation that is emitted (which has all digits about the
zero of a gradient, and keeps a NaN), with nothing around it.
"""


def overhead(names: Sequence[str], seconds: float) -> None:
    """At one element, forward and backward, against plain expressions."""
    rows = []
    for name in names:
        if name not in PLAIN:
            continue
        plain, same = PLAIN[name]
        _, both = _both(name, 1)
        inputs = _inputs(name, 1)
        count = 2 if name == "complex_op" else 1
        given = (*inputs, *(np.ones_like(inputs[0]),) * count)
        thunks = {
            "ours": both,
            "plain": lambda p=plain, g=given: p(*g),
            "same": lambda p=same, g=given: p(*g),
        }
        found = medians(thunks, seconds)
        times = tuple(found["ours"] / found[peer] for peer in ("plain", "same"))
        rows.append((name, times))
    head = ("of a plain expression", "of the same evaluation")
    ratios("NumPy: overhead at n = 1", head, rows, (1.3, 1.3))


def _pulled(
    expert: Callable[..., experts_numpy.Pass],
    inputs: tuple[Array, ...],
    upstream: tuple[Array, ...],
) -> Thunk:
    return lambda: expert(*inputs)[1](*upstream)


def by_hand(names: Sequence[str], sizes: Sequence[int], seconds: float) -> None:
    """Forward and backward, against rules that are written by hand."""
    rows = []
    for name in names:
        times = []
        for n in sizes:
            inputs, expert = _inputs(name, n), getattr(experts_numpy, name)
            made = expert(*inputs)[0]
            results = made if isinstance(made, tuple) else (made,)
            upstream = tuple(np.ones_like(result) for result in results)
            times.append(
                ratio(_both(name, n)[1], _pulled(expert, inputs, upstream), seconds)
            )
        rows.append((name, times))
    head = [f"n = {sized(n)}" for n in sizes]
    ratios("NumPy: of an expert's rule", head, rows, [1.0] * len(sizes))


def _floors(counts: Mapping[str, int], least: int) -> dict[str, Thunk]:
    """Copying as many bytes as so many elements of float32 have, ``least`` elements at
    least, to memory in use: by one thread and by two, of which the faster counts.
    """
    return {
        f"{name}, {threads}": _copying(max(least, count // 2), threads)
        for name, count in counts.items()
        for threads in COPYING
    }


def _copying(size: int, threads: int) -> Thunk:
    one, other = np.ones(size, np.float32), np.ones(size, np.float32)
    if threads == 1:
        return lambda: np.copyto(other, one)
    half = size // 2

    def halves() -> None:
        with ThreadPoolExecutor(1) as pool:
            rest = pool.submit(np.copyto, other[half:], one[half:])
            np.copyto(other[:half], one[:half])
        rest.result()

    return halves


def _fastest(
    found: Mapping[str, float], counts: Mapping[str, int], least: int, name: str
) -> float:
    once = min(found[f"{name}, {threads}"] for threads in COPYING)
    return once * counts[name] / 2 / max(least, counts[name] // 2)


def over_floor(names: Sequence[str], n: int, seconds: float) -> None:
    """Arguments and results go through memory once at least."""
    rows, least = [], LARGE if n >= LARGE else 2
    for name in names:
        forward, both = _both(name, n)
        inputs = _inputs(name, n)
        made = forward()
        results = made if isinstance(made, tuple) else (made,)
        out = tuple(np.empty_like(result) for result in results)
        given = [array.size for array in (*inputs, *results)]
        taken = [array.size for array in inputs[: 1 if name == "focal_loss" else None]]
        pulled = given + taken + [result.size for result in results]
        counts = {"once": sum(given), "both": sum(pulled)}
        thunks = {
            "forward": forward,
            "out": _with_out(name, inputs, out if len(out) > 1 else out[0]),
            "both": both,
            **_floors(counts, least),
        }
        found = medians(thunks, 2 * seconds)
        floor, floors = (_fastest(found, counts, least, kind) for kind in counts)
        once = (found[kind] / floor for kind in ("forward", "out"))
        rows.append((name, (*once, found["both"] / floors)))
    within = (5.0, 5.0, 5.0) if n >= LARGE else (None, None, None)
    title = f"NumPy at n = {sized(n)}: of copying the same bytes"
    ratios(title, ("forward", "with out=", "with backward"), rows, within)


def _with_out(name: str, inputs: tuple[Array, ...], out: Any) -> Thunk:
    value = getattr(_module(RULES[name]), name)
    return lambda: value(*inputs, out=out)


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    names = [name for name in RULES if not only or name in only]
    overhead(names, seconds)
    peers = [name for name in PEERS if not only or name in only]
    by_hand(peers, sizes, seconds)
    for n in sizes:
        over_floor(names, n, seconds)
