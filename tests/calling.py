"""An emitted rule called in its framework: outputs and gradients as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]
Arrays = tuple[Array | None, ...]
Result = tuple[tuple[Array, ...], Arrays]
Statics = Mapping[str, Any]
Function = Callable[..., Any]

PACKAGES = {"numpy": "numpy", "torch": "torch", "tf": "tensorflow", "jax": "jax"}
FRAMEWORKS = [
    pytest.param(t, marks=getattr(pytest.mark, t)) for t in ("torch", "tf", "jax")
]
by_target = pytest.mark.parametrize("target", ["numpy", *FRAMEWORKS])


def called(
    target: str,
    module: Any,
    rule: str,
    inputs: Iterable[Array],
    upstream: Sequence[Array | None] | None = None,
    asked: Sequence[bool] | None = None,
    statics: Statics | None = None,
) -> Result:
    """The outputs of a rule, and a gradient for each input, None where it has none.

    ``upstream`` has the cotangents, None for an output without one (`cotangent` unless
    given); ``asked`` marks the inputs to differentiate by (all that are floating).
    """
    pytest.importorskip(PACKAGES[target])
    given = tuple(inputs)
    asked = asked or [array.dtype.kind == "f" for array in given]
    return _CALLS[target](module, rule, given, upstream, asked, statics or {})


def value(
    target: str, function: Function, inputs: Iterable[Any], **statics: Any
) -> Any:
    """The only output of a function, as a NumPy array."""
    pytest.importorskip(PACKAGES[target])
    return np.asarray(_VALUES[target](function, tuple(inputs), statics))


def cotangent(output: Any) -> Array:
    """Another number for each element, the same for all targets."""
    shape = tuple(output.shape)
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)


def tuple_of(value: Any) -> tuple[Any, ...]:
    """The outputs of a rule, of one output too."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _above(upstream: Any, outputs: tuple[Any, ...]) -> Sequence[Array | None]:
    """What is given, or a cotangent in the type of each floating output."""
    if upstream is not None:
        return upstream
    names = [getattr(o.dtype, "name", str(o.dtype)) for o in outputs]
    types = [name.removeprefix("torch.") for name in names]
    return [
        cotangent(o).astype(name) if name.startswith("float") else None
        for o, name in zip(outputs, types, strict=True)
    ]


def _numpy(
    module: Any, rule: str, inputs: Any, upstream: Any, _: Any, statics: Statics
) -> Result:
    plain = tuple_of(getattr(module, rule)(*inputs, **statics))
    made, pullback = getattr(module, f"{rule}_vjp")(*inputs, **statics)
    outputs = tuple_of(made)
    for one, other in zip(plain, outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    above = (u for u in _above(upstream, outputs) if u is not None)
    return outputs, tuple_of(pullback(*above))


def _torch(
    module: Any, rule: str, inputs: Any, upstream: Any, asked: Any, statics: Statics
) -> Result:
    import torch

    pairs = list(zip(inputs, asked, strict=True))
    given = [torch.tensor(a, requires_grad=want) for a, want in pairs]
    outputs = tuple_of(getattr(module, rule)(*given, **statics))
    above = zip(outputs, _above(upstream, outputs), strict=True)
    tied = [(o, torch.tensor(u)) for o, u in above if u is not None and o.requires_grad]
    leaves = [tensor for tensor in given if tensor.requires_grad]
    found: Any = iter([None] * len(leaves))
    if tied and leaves:
        found = iter(
            torch.autograd.grad(
                [o for o, _ in tied], leaves, [u for _, u in tied], allow_unused=True
            )
        )
    slopes = (next(found) if want else None for want in asked)
    return (
        tuple(o.detach().numpy() for o in outputs),
        tuple(None if g is None else g.detach().numpy() for g in slopes),
    )


def _tf(
    module: Any, rule: str, inputs: Any, upstream: Any, asked: Any, statics: Statics
) -> Result:
    import tensorflow as tf

    given = [tf.constant(array) for array in inputs]
    watched = [t for t, want in zip(given, asked, strict=True) if want]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = tuple_of(getattr(module, rule)(*given, **statics))
    above = zip(outputs, _above(upstream, outputs), strict=True)
    tied = [(o, tf.constant(u)) for o, u in above if u is not None]
    found = iter(
        tape.gradient([o for o, _ in tied], watched, [u for _, u in tied])
        if tied and watched
        else [None] * len(watched)
    )
    slopes = (next(found) if want else None for want in asked)
    return (
        tuple(o.numpy() for o in outputs),
        tuple(None if g is None else g.numpy() for g in slopes),
    )


def _jax(
    module: Any, rule: str, inputs: Any, upstream: Any, asked: Any, statics: Statics
) -> Result:
    """JAX has no gradient that is None: it is zeros."""
    import jax

    places = [k for k, want in enumerate(asked) if want]
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(array) for array in inputs]

        def function(*moving: Any) -> tuple[Any, ...]:
            given = [*arrays]
            for place, array in zip(places, moving, strict=True):
                given[place] = array
            return tuple_of(getattr(module, rule)(*given, **statics))

        outputs, pullback = jax.vjp(function, *(arrays[k] for k in places))
        above = tuple(
            np.zeros(o.shape, jax.dtypes.float0) if u is None else u
            for o, u in zip(outputs, _above(upstream, outputs), strict=True)
        )
        found = dict(zip(places, map(np.asarray, pullback(above)), strict=True))
    slopes = tuple(found.get(k) for k in range(len(arrays)))
    return tuple(map(np.asarray, outputs)), slopes


def _torch_value(function: Function, inputs: Any, statics: Statics) -> Any:
    import torch

    return function(*map(torch.from_numpy, map(np.array, inputs)), **statics)


def _jax_value(function: Function, inputs: Any, statics: Statics) -> Any:
    import jax

    with jax.enable_x64(True):
        return function(*map(jax.numpy.asarray, inputs), **statics)


def _plain_value(function: Function, inputs: Any, statics: Statics) -> Any:
    """TensorFlow's functions take NumPy's arrays."""
    return function(*inputs, **statics)


_VALUES: Mapping[str, Function] = {
    "numpy": _plain_value,
    "torch": _torch_value,
    "tf": _plain_value,
    "jax": _jax_value,
}
_CALLS: Mapping[str, Function] = {
    "numpy": _numpy,
    "torch": _torch,
    "tf": _tf,
    "jax": _jax,
}
