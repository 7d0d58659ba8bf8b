"""A value that stops gradients is a constant in second derivatives too, as the frameworks'
own `detach` and `stop_gradient` are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradspec

TEXT = """\
from "gradspec:control/gradients" import stop_gradient

rule lsq_plus(x, s, b) -> y:
    q = (x - b) / s
    y = round(q) * s + b
    surrogate y = stop_gradient(round(q) - q) * s + q * s + b

rule product(x, s, b) -> y:
    y = stop_gradient(x * s) * sin(x) * s + b**3

rule local(x, s, b) -> y:
    r = stop_gradient(exp(x * s))
    y = r**2 * s * x + r * b**2

rule inner(u, v, k: static = 1.0) -> w:
    w = stop_gradient(u * v) * v * stop_gradient(k)

rule called(x, s, b) -> y:
    y = inner(x * s, sin(x), k=2) * s + x * b

rule nested(x, s, b) -> (y, z):
    y = exp(stop_gradient(s * stop_gradient(x) + x) * s) * x
    z = y * b

rule rows(x[..., n], s[..., n], b[..., n]) -> y[..., n]:
    m = stop_gradient(sum(x[j] * s[j] for j))
    y[i] = stop_gradient(x[i]) * m * s[i] * x[i]**2 + exp(m * b[i])
"""


def _inner(m: Any, u: Any, v: Any) -> Any:
    return m.stop(u * v) * v * 2.0


def _lsq_plus(m: Any, x: Any, s: Any, b: Any) -> Any:
    q = (x - b) / s
    return m.stop(m.round(q) - q) * s + q * s + b


def _local(m: Any, x: Any, s: Any, b: Any) -> Any:
    r = m.stop(m.exp(x * s))
    return r**2 * s * x + r * b**2


def _nested(m: Any, x: Any, s: Any, b: Any) -> Any:
    y = m.exp(m.stop(s * x + x) * s) * x
    return y + y * b


def _rows(m: Any, x: Any, s: Any, b: Any) -> Any:
    whole = m.stop(m.total(x * s))
    return m.stop(x) * whole * s * x**2 + m.exp(whole * b)


PLAIN: dict[str, Callable[..., Any]] = {
    "lsq_plus": _lsq_plus,
    "product": lambda m, x, s, b: m.stop(x * s) * m.sin(x) * s + b**3,
    "local": _local,
    "called": lambda m, x, s, b: _inner(m, x * s, m.sin(x)) * s + x * b,
    "nested": _nested,
    "rows": _rows,
}


def _torch() -> SimpleNamespace:
    torch = pytest.importorskip("torch")

    def gradient(function: Any, inputs: Any) -> Any:
        inputs = [x if x.requires_grad else x.requires_grad_() for x in inputs]
        options = {"create_graph": True, "materialize_grads": True}
        return torch.autograd.grad(function(*inputs), inputs, **options)

    return SimpleNamespace(
        stop=lambda x: x.detach(),
        total=lambda x: x.sum(-1, keepdim=True),
        sum=torch.sum,
        tensor=lambda x: torch.tensor(x),
        gradient=gradient,
        **{name: getattr(torch, name) for name in ("round", "sin", "exp")},
    )


def _tf() -> SimpleNamespace:
    tf = pytest.importorskip("tensorflow")

    def gradient(function: Any, inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = function(*inputs)
        return tape.gradient(value, inputs, unconnected_gradients="zero")

    return SimpleNamespace(
        stop=tf.stop_gradient,
        total=lambda x: tf.reduce_sum(x, -1, keepdims=True),
        sum=tf.reduce_sum,
        tensor=tf.constant,
        gradient=gradient,
        **{name: getattr(tf, name) for name in ("round", "sin", "exp")},
    )


def _jax() -> SimpleNamespace:
    jax = pytest.importorskip("jax")
    return SimpleNamespace(
        stop=jax.lax.stop_gradient,
        total=lambda x: x.sum(-1, keepdims=True),
        sum=jax.numpy.sum,
        tensor=jax.numpy.asarray,
        gradient=lambda f, inputs: jax.grad(f, tuple(range(len(inputs))))(*inputs),
        **{name: getattr(jax.numpy, name) for name in ("round", "sin", "exp")},
    )


@cache
def _emitted(target: str) -> Any:
    return gradspec.load(TEXT, target=target)


def _second(m: SimpleNamespace, function: Callable[..., Any]) -> list[Any]:
    """The gradients of a number made of the gradients."""
    point = ([0.7, -1.2, 0.4], [0.3, 0.9, -0.6], [0.25, -0.5, 0.8])
    inputs = [m.tensor(np.array(column, np.float32)) for column in point]

    def probed(*inputs: Any) -> Any:
        first = m.gradient(lambda *f: m.sum(function(*f)), list(inputs))
        pairs = zip(first, (1.0, -0.5, 0.75), strict=True)
        return m.sum(sum(w * slope * slope for slope, w in pairs))

    return [np.asarray(m.stop(x)) for x in m.gradient(probed, inputs)]


@pytest.mark.filterwarnings("ignore::gradspec.GradspecWarning")  # gradients that are 0
@pytest.mark.parametrize(
    ("target", "words"),
    [
        pytest.param("torch", _torch, marks=pytest.mark.torch),
        pytest.param("tf", _tf, marks=pytest.mark.tf),
        pytest.param("jax", _jax, marks=pytest.mark.jax),
    ],
)
def test_second_derivatives_are_those_of_the_framework(
    target: str, words: Callable[[], SimpleNamespace]
) -> None:
    m, module = words(), _emitted(target)
    for name, plain in PLAIN.items():
        rule = getattr(module, name)

        def emitted(*inputs: Any, rule: Any = rule) -> Any:
            made = rule(*inputs)
            return made[0] + made[1] if isinstance(made, tuple) else made

        found = _second(m, emitted)
        right = _second(m, lambda *inputs, plain=plain: plain(m, *inputs))
        for k, (ours, theirs) in enumerate(zip(found, right, strict=True)):
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-4, atol=1e-5, err_msg=f"{name} {k}"
            )
