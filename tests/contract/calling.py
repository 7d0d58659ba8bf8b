"""How each framework calls an emitted function, and asks for its gradients."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tests.contract.call import Arrays, Call

Found = tuple[tuple[Any, ...], Arrays]


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def on_numpy(module: ModuleType, rule: str, call: Call) -> Found:
    inputs = call.inputs.values()
    plain = _tuple(getattr(module, rule)(*inputs, **call.statics))
    outputs, pullback = getattr(module, f"{rule}_vjp")(*inputs, **call.statics)
    for one, other in zip(plain, _tuple(outputs), strict=True):
        np.testing.assert_array_equal(one, other)
    gradients = _tuple(pullback(*call.upstream.values()))
    return plain, dict(zip(call.inputs, gradients, strict=True))


def on_torch(module: ModuleType, rule: str, call: Call) -> Found:
    import torch

    inputs = {n: torch.tensor(a) for n, a in call.inputs.items()}
    asked = [inputs[n].requires_grad_() for n in call.gradients]
    outputs = _tuple(getattr(module, rule)(*inputs.values(), **call.statics))
    named = dict(zip(call.outputs, outputs, strict=True))
    above = {n: torch.tensor(a) for n, a in call.upstream.items()}
    tied = [n for n in above if named[n].requires_grad]
    found: Any = map(torch.zeros_like, asked)
    if tied and asked:
        found = torch.autograd.grad(
            [named[n] for n in tied],
            asked,
            [above[n] for n in tied],
            allow_unused=True,
            materialize_grads=True,
        )
    told = (g.detach().numpy() for g in found)
    values = tuple(o.detach().numpy() for o in outputs)
    return values, dict(zip(call.gradients, told, strict=True))


def on_tf(module: ModuleType, rule: str, call: Call) -> Found:
    import tensorflow as tf

    inputs = {n: tf.constant(a) for n, a in call.inputs.items()}
    asked = [inputs[n] for n in call.gradients]
    with tf.GradientTape() as tape:
        tape.watch(asked)
        outputs = _tuple(getattr(module, rule)(*inputs.values(), **call.statics))
    named = dict(zip(call.outputs, outputs, strict=True))
    found = tape.gradient(
        [named[n] for n in call.upstream],
        asked,
        [tf.constant(a) for a in call.upstream.values()],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    told = (g.numpy() for g in found)
    return tuple(o.numpy() for o in outputs), dict(
        zip(call.gradients, told, strict=True)
    )


def on_jax(module: ModuleType, rule: str, call: Call) -> Found:
    import jax

    with jax.enable_x64(True):
        inputs = {n: jax.numpy.asarray(a) for n, a in call.inputs.items()}

        def function(*asked: Any) -> tuple[Any, ...]:
            given = inputs | dict(zip(call.gradients, asked, strict=True))
            return _tuple(getattr(module, rule)(*given.values(), **call.statics))

        outputs, pullback = jax.vjp(function, *(inputs[n] for n in call.gradients))
        above = tuple(
            call.upstream.get(n, np.zeros(np.shape(o), jax.dtypes.float0))
            for n, o in zip(call.outputs, outputs, strict=True)
        )
        told = map(np.asarray, pullback(above))
        gradients = dict(zip(call.gradients, told, strict=True))
        return tuple(map(np.asarray, outputs)), gradients


CALLING: dict[str, Callable[[ModuleType, str, Call], Found]] = {
    "numpy": on_numpy,
    "torch": on_torch,
    "tf": on_tf,
    "jax": on_jax,
}
