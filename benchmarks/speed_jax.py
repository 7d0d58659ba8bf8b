"""JAX: emitted rules under `jit` beside the composite under it. Run by `speed.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from timing import Thunk, emitted, ratio, ratios, sized

Array = Any
Inputs = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``composite`` is the forward in JAX's operations; of ``inputs`` the first ``moved``
    have gradients.
    """

    name: str
    file: str
    composite: Callable[..., Any]
    inputs: Callable[[int], Inputs]
    moved: int = 1


def _normal(seed: int, *shape: int) -> Array:
    return jax.random.normal(jax.random.key(seed), shape)


def _one(n: int) -> Inputs:
    return (_normal(1, n),)


def _two(n: int) -> Inputs:
    return (_normal(1, n), _normal(2, n))


def _labelled(n: int) -> Inputs:
    return (_normal(1, n), jnp.sign(_normal(2, n)))


def _rows(n: int) -> Inputs:
    size = min(1000, max(1, n // 10))
    return (_normal(1, max(1, n // size), size),)


def _affine(n: int) -> Inputs:
    (x,) = _rows(n)
    return (x, _normal(2, x.shape[1]), _normal(3, x.shape[1]))


def _focal(x: Array, t: Array) -> Array:
    """As Optax composes it, with the labels -1 and +1 made 0 and 1."""
    targets = (t + 1.0) / 2.0
    p = jax.nn.sigmoid(x)
    ce = -targets * jax.nn.log_sigmoid(x) - (1.0 - targets) * jax.nn.log_sigmoid(-x)
    p_t = p * targets + (1.0 - p) * (1.0 - targets)
    alpha_t = 0.25 * targets + 0.75 * (1.0 - targets)
    return alpha_t * ((1.0 - p_t) ** 2 * ce)


def _spike(v: Array) -> Array:
    """The surrogate without a rule: a step with the slope of something smooth."""
    smooth = v / (25.0 * jnp.abs(v) + 1.0)
    return jax.lax.stop_gradient((v > 0.0).astype(v.dtype) - smooth) + smooth


def _arctan_spike(v: Array) -> Array:
    smooth = jnp.arctan(jnp.pi * v) / jnp.pi
    return jax.lax.stop_gradient((v >= 0.0).astype(v.dtype) - smooth) + smooth


def _layer_norm(x: Array, g: Array, b: Array) -> Array:
    return jax.nn.standardize(x, epsilon=1e-5) * g + b


_SMOOTH, _SPIKES = "activations/smooth", "surrogates/spikes"
_SOFTMAX = "tensor/softmax"
CASES = (
    Case("softplus", _SMOOTH, jax.nn.softplus, _one),
    Case("mish", _SMOOTH, jax.nn.mish, _one),
    Case("gelu", _SMOOTH, lambda x: jax.nn.gelu(x, approximate=False), _one),
    Case("silu", _SMOOTH, jax.nn.silu, _one),
    Case("focal_loss", "losses/classification", _focal, _labelled),
    Case("spike_fast_sigmoid", _SPIKES, _spike, _one),
    Case("spike_arctan", _SPIKES, _arctan_spike, _one),
    Case(
        "complex_op",
        "tutorial/complex_op",
        lambda x, y: (x * y + jnp.sin(x), y * y),
        _two,
        2,
    ),
    Case("logaddexp", "stable/logs", jnp.logaddexp, _two, 2),
    Case("softmax", _SOFTMAX, jax.nn.softmax, _rows),
    Case("log_sum_exp", _SOFTMAX, lambda x: jax.nn.logsumexp(x, -1), _rows),
    Case("layer_norm", "tensor/norms", _layer_norm, _affine, 3),
)


@cache
def _module(file: str) -> Any:
    return emitted(file, "jax")


def _jitted(function: Callable[..., Any], case: Case, inputs: Inputs) -> Thunk:
    """Outputs and gradients, which are waited for."""

    def both(*arguments: Array) -> Any:
        moved, still = arguments[: case.moved], arguments[case.moved :]
        outputs, pull = jax.vjp(lambda *x: function(*x, *still), *moved)
        return outputs, pull(jax.tree.map(jnp.ones_like, outputs))

    run = jax.jit(both)
    return lambda: jax.block_until_ready(run(*inputs))


def jitted(cases: Sequence[Case], sizes: Sequence[int], seconds: float) -> None:
    """Under `jit`, against the composite under the same."""

    def measure(case: Case, inputs: Inputs) -> float:
        ours = getattr(_module(case.file), case.name)
        thunks = (
            _jitted(function, case, inputs) for function in (ours, case.composite)
        )
        return ratio(*thunks, seconds)

    rows = [
        (case.name, [measure(case, case.inputs(n)) for n in sizes]) for case in cases
    ]
    head = [f"n = {sized(n)}" for n in sizes]
    ratios("JAX under `jit`: of the composite", head, rows, 1.05)


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    cases = [case for case in CASES if not only or case.name in only]
    jitted(cases, sizes, seconds)
