"""Values and gradients of an emitted rule as arrays, one way for each target."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.targets.emission import jax_module, numpy_module, tf_module, torch_module

Array = npt.NDArray[Any]

Result = tuple[tuple[Array, ...], tuple[Array | None, ...]]
Vjp = Callable[[ModuleType, str, tuple[Array, ...]], Result]


def upstream_of(output: Any) -> Array:
    """Another number for each element, the same for all targets."""
    shape = tuple(output.shape)
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)


def _numpy(module: ModuleType, name: str, args: tuple[Array, ...]) -> Result:
    outputs, pullback = getattr(module, f"{name}_vjp")(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return outputs, pullback(*map(upstream_of, outputs))


def _torch(module: ModuleType, name: str, args: tuple[Array, ...]) -> Result:
    import torch

    given = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in args]
    made = getattr(module, name)(*given)
    outputs = made if isinstance(made, tuple) else (made,)
    upstream = [torch.tensor(upstream_of(o)) for o in outputs]
    torch.autograd.backward(outputs, upstream)
    gradients = (None if g.grad is None else g.grad.numpy() for g in given)
    return tuple(o.detach().numpy() for o in outputs), tuple(gradients)


def _tf(module: ModuleType, name: str, args: tuple[Array, ...]) -> Result:
    import tensorflow as tf

    given = [tf.constant(a) for a in args]
    with tf.GradientTape() as tape:
        tape.watch([g for g in given if g.dtype.is_floating])
        made = getattr(module, name)(*given)
    outputs = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    upstream = [tf.constant(upstream_of(o)) for o in outputs]
    gradients = tape.gradient(list(outputs), given, output_gradients=upstream)
    return (
        tuple(o.numpy() for o in outputs),
        tuple(None if g is None else g.numpy() for g in gradients),
    )


def _jax(module: ModuleType, name: str, args: tuple[Array, ...]) -> Result:
    import jax

    with jax.enable_x64(True):
        made, pullback = jax.vjp(getattr(module, name), *args)
        outputs = made if isinstance(made, tuple) else (made,)
        upstream = tuple(map(upstream_of, outputs))
        gradients = pullback(upstream if isinstance(made, tuple) else upstream[0])
        floats = (
            g if a.dtype.kind == "f" else None
            for g, a in zip(gradients, args, strict=True)
        )
        return (
            tuple(map(np.asarray, outputs)),
            tuple(None if g is None else np.asarray(g) for g in floats),
        )


Target = tuple[str, Callable[..., ModuleType], Vjp]
TARGETS: dict[str, Target] = {
    "numpy": ("numpy", numpy_module, _numpy),
    "torch": ("torch", torch_module, _torch),
    "tf": ("tensorflow", tf_module, _tf),
    "jax": ("jax", jax_module, _jax),
}
