"""TensorFlow: emitted rules beside `tf.custom_gradient` by hand, eager, and beside the
composite under XLA. Run by `speed.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import experts_tf as experts
import tensorflow as tf
from timing import Thunk, emitted, ratio, ratios, sized

Tensor = Any
Inputs = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``composite`` is the forward in the framework's operations; of ``inputs`` the first
    ``moved`` have gradients.
    """

    name: str
    file: str
    composite: Callable[..., Any]
    inputs: Callable[[int], Inputs]
    moved: int = 1

    @property
    def ours(self) -> Callable[..., Any]:
        return getattr(_module(self.file), self.name)  # type: ignore[no-any-return]

    @property
    def expert(self) -> Callable[..., Any]:
        return getattr(experts, self.name)  # type: ignore[no-any-return]


def _one(n: int) -> Inputs:
    return (tf.random.normal((n,), seed=1),)


def _two(n: int) -> Inputs:
    return (*_one(n), tf.random.normal((n,), seed=2))


def _labelled(n: int) -> Inputs:
    return (*_one(n), tf.sign(tf.random.normal((n,), seed=2)))


def _rows(n: int) -> Inputs:
    size = min(1000, max(1, n // 10))
    return (tf.random.normal((max(1, n // size), size), seed=1),)


def _affine(n: int) -> Inputs:
    (x,) = _rows(n)
    return (x, tf.random.normal(x.shape[1:]), tf.random.normal(x.shape[1:]))


def _logaddexp(a: Tensor, b: Tensor) -> Tensor:
    return tf.reduce_logsumexp(tf.stack([a, b]), 0)


def _spike(v: Tensor) -> Tensor:
    """The surrogate without a rule: a step with the slope of something smooth."""
    smooth = v / (25.0 * tf.abs(v) + 1.0)
    return tf.stop_gradient(tf.cast(v > 0.0, v.dtype) - smooth) + smooth


def _arctan_spike(v: Tensor) -> Tensor:
    smooth = tf.atan(3.141592653589793 * v) / 3.141592653589793
    return tf.stop_gradient(tf.cast(v >= 0.0, v.dtype) - smooth) + smooth


def _layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * g + b


_SMOOTH, _SPIKES = "activations/smooth", "surrogates/spikes"
_SOFTMAX = "tensor/softmax"
CASES = (
    Case("softplus", _SMOOTH, tf.math.softplus, _one),
    Case("mish", _SMOOTH, lambda x: x * tf.tanh(tf.math.softplus(x)), _one),
    Case("gelu", _SMOOTH, lambda x: tf.nn.gelu(x, approximate=False), _one),
    Case("silu", _SMOOTH, lambda x: x * tf.sigmoid(x), _one),
    Case("focal_loss", "losses/classification", experts.focal_loss, _labelled),
    Case("spike_fast_sigmoid", _SPIKES, _spike, _one),
    Case("spike_arctan", _SPIKES, _arctan_spike, _one),
    Case(
        "complex_op",
        "tutorial/complex_op",
        lambda x, y: (x * y + tf.sin(x), y * y),
        _two,
        2,
    ),
    Case("logaddexp", "stable/logs", _logaddexp, _two, 2),
    Case("softmax", _SOFTMAX, tf.nn.softmax, _rows),
    Case("log_sum_exp", _SOFTMAX, lambda x: tf.reduce_logsumexp(x, -1), _rows),
    Case("layer_norm", "tensor/norms", _layer_norm, _affine, 3),
)


@cache
def _module(file: str) -> Any:
    return emitted(file, "tf")


def both(function: Callable[..., Any], moved: int) -> Callable[..., Any]:
    """Outputs and gradients: what nobody asks for XLA does not compute."""

    def run(*inputs: Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs[:moved])
            outputs = function(*inputs)
        return outputs, tape.gradient(outputs, inputs[:moved])

    return run


def _eager(function: Callable[..., Any], case: Case, inputs: Inputs) -> Thunk:
    run = both(function, case.moved)
    return lambda: run(*inputs)


def _compiled(function: Callable[..., Any], case: Case, inputs: Inputs) -> Thunk:
    run = tf.function(both(function, case.moved), jit_compile=True)
    return lambda: run(*inputs)


def overhead(cases: Sequence[Case], seconds: float) -> None:
    """At one element: against the experts' formulas."""
    rows = []
    for case in cases:
        thunks = [_eager(f, case, case.inputs(1)) for f in (case.ours, case.expert)]
        rows.append((case.name, (ratio(*thunks, seconds),)))
    title = "TensorFlow: overhead of a hand-written `tf.custom_gradient`"
    ratios(title, ("n = 1",), rows, 1.1)


def eager(cases: Sequence[Case], sizes: Sequence[int], seconds: float) -> None:
    """Against the experts."""

    def measure(case: Case, inputs: Inputs) -> float:
        ours = _eager(case.ours, case, inputs)
        return ratio(ours, _eager(case.expert, case, inputs), seconds)

    title = "TensorFlow eager: of an expert's `tf.custom_gradient`"
    _by_size(title, cases, sizes, measure, 1.1)


def xla(cases: Sequence[Case], sizes: Sequence[int], seconds: float) -> None:
    """Under XLA, against the composite under the same."""

    def measure(case: Case, inputs: Inputs) -> float:
        ours = _compiled(case.ours, case, inputs)
        return ratio(ours, _compiled(case.composite, case, inputs), seconds)

    title = "TensorFlow under XLA (`jit_compile=True`): of the composite under it"
    _by_size(title, cases, sizes, measure, 1.05)


def _by_size(
    title: str,
    cases: Sequence[Case],
    sizes: Sequence[int],
    measure: Callable[[Case, Inputs], float],
    mean: float,
) -> None:
    rows = [
        (case.name, [measure(case, case.inputs(n)) for n in sizes]) for case in cases
    ]
    ratios(title, [f"n = {sized(n)}" for n in sizes], rows, mean)


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    if threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    cases = [case for case in CASES if not only or case.name in only]
    overhead(cases, seconds)
    eager(cases, sizes, seconds)
    xla(cases, sizes, seconds)
