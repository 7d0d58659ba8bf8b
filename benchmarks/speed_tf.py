"""TensorFlow: overhead beside a `custom_gradient` written by hand, and emitted rules under
XLA beside the composite. Run by `speed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import tensorflow as tf
from timing import Thunk, emitted, medians, sized, table

COMPOSITES: dict[str, tuple[str, Callable[..., Any], int]] = {
    "softplus": ("activations/smooth", tf.math.softplus, 1),
    "mish": ("activations/smooth", lambda x: x * tf.tanh(tf.math.softplus(x)), 1),
    "gelu": ("activations/smooth", tf.nn.gelu, 1),
    "silu": ("activations/smooth", lambda x: x * tf.sigmoid(x), 1),
    "complex_op": (
        "tutorial/complex_op",
        lambda x, y: (x * y + tf.sin(x), y * y),
        2,
    ),
}


@cache
def _module(file: str) -> Any:
    return emitted(file, "tf")


@tf.custom_gradient
def _by_hand(x: Any) -> Any:
    """Softplus with its emitted formulas."""

    def gradient(dy: Any) -> Any:
        return dy * tf.sigmoid(1.0 * x)

    return tf.math.softplus(1.0 * x) / 1.0, gradient


def _pass(function: Callable[..., Any], inputs: Sequence[Any]) -> Thunk:
    def thunk() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(*inputs)
        return tape.gradient(outputs, inputs)

    return thunk


def _ratio(ours: Thunk, other: Thunk, seconds: float) -> float:
    found = medians({"a": ours, "b": other}, seconds)
    return found["a"] / found["b"]


def overhead(seconds: float) -> None:
    """At one element, against the same formulas by hand."""
    inputs = [tf.random.normal((1,))]
    softplus = _module("activations/smooth").softplus
    ratio = _ratio(_pass(softplus, inputs), _pass(_by_hand, inputs), seconds)
    rows = [("softplus", f"{ratio:.3f}")]
    table("TensorFlow: overhead at n = 1, of custom_gradient", ("rule", "ratio"), rows)


def xla(sizes: Sequence[int], seconds: float) -> None:
    """Under XLA, against the composite under the same."""
    rows = []
    for name, (file, composite, count) in COMPOSITES.items():
        ours = getattr(_module(file), name)
        found = []
        for n in sizes:
            inputs = [tf.random.normal((n,)) for _ in range(count)]
            thunks = [
                tf.function(_pass(function, inputs), jit_compile=True)
                for function in (ours, composite)
            ]
            found.append(_ratio(*thunks, seconds))
        rows.append((name, *(f"{ratio:.2f}" for ratio in found)))
    head = ("rule", *(f"n = {sized(n)}" for n in sizes))
    table("TensorFlow under XLA: of the composite", head, rows)


def main(sizes: Sequence[int], seconds: float, threads: int) -> None:
    overhead(seconds)
    xla(sizes[1:], seconds)
