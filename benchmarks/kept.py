"""Bytes that a function keeps for its backward pass, and the peak of both passes.

What counts are buffers: what shares memory with an input or an output is alive anyway.
"""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


def several(value: Any) -> tuple[Any, ...]:
    """The outputs of a function, of which there may be one."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


# --- torch ------------------------------------------------------------------------------


def by_torch(function: Function, inputs: Sequence[Any]) -> int:
    """The storages that autograd saves, once each (`saved_tensors_hooks`)."""
    import torch

    saved: dict[int, Any] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        outputs = several(function(*inputs))
    alive = {t.untyped_storage().data_ptr() for t in (*inputs, *outputs)}
    return sum(s.nbytes() for place, s in saved.items() if place not in alive)


def peak_by_torch(function: Function, inputs: Sequence[Any]) -> int:
    """The most bytes allocated at once by forward and backward (torch's profiler)."""
    import torch

    floats = [x for x in inputs if x.requires_grad]

    def both() -> None:
        outputs = [y for y in several(function(*inputs)) if y.requires_grad]
        torch.autograd.grad(
            outputs, floats, [torch.ones_like(y) for y in outputs], allow_unused=True
        )

    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as made:
        both()
    events = made.profiler.kineto_results.events()
    steps = [e for e in events if e.name() == "[memory]"]
    total = most = 0
    for step in sorted(steps, key=lambda e: e.start_ns()):
        total += step.nbytes()
        most = max(most, total)
    return most


# --- TensorFlow -------------------------------------------------------------------------


def by_tf(function: Function, inputs: Sequence[Any]) -> int:
    """What a `tf.function` hands from its forward to its backward graph."""
    import tensorflow as tf

    traced = tf.function(function)
    concrete = traced.get_concrete_function(*inputs)
    count = len(concrete.outputs)
    concrete._delayed_rewrite_functions.forward_backward()  # which adds outputs
    forward = concrete.graph
    alive = {_origin(t) for t in (*forward.inputs, *forward.outputs[:count])}
    further = {_origin(t) for t in forward.outputs[count:]} - alive
    size = inputs[0].shape.num_elements()
    return sum(
        (t.shape.num_elements() if t.shape.is_fully_defined() else size) * t.dtype.size
        for t in (reference.deref() for reference in further)
    )


def peak_by_tf(function: Function, inputs: Sequence[Any]) -> int:
    """The most bytes that eager tensors hold at once in forward and backward: each buffer
    counts from the operation that made it until nothing refers to it.
    """
    import tensorflow as tf
    from tensorflow.python.framework import op_callbacks

    floats = [x for x in inputs if x.dtype.is_floating]
    uses: Counter[int] = Counter()
    held = _Level()

    def dropped(place: int, size: int) -> None:
        uses[place] -= 1
        if not uses[place]:
            held.change(-size)

    def made(_kind: Any, _given: Any, _how: Any, outputs: Any, *_: Any) -> None:
        for tensor in outputs:
            if not hasattr(tensor, "_numpy_internal") or not tensor.shape.rank:
                continue
            place, size = _address(tensor), _bytes(tensor)
            uses[place] += 1
            if uses[place] == 1:
                held.change(size)
            weakref.finalize(tensor, dropped, place, size).atexit = False

    def both() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(floats)
            outputs = function(*inputs)
        return outputs, tape.gradient(outputs, floats)

    both()
    uses.update(_address(x) for x in inputs)
    op_callbacks.add_op_callback(made)
    try:
        both()
    finally:
        op_callbacks.remove_op_callback(made)
    return held.most


@dataclass(slots=True)
class _Level:
    now: int = 0
    most: int = 0

    def change(self, by: int) -> None:
        self.now += by
        self.most = max(self.most, self.now)


def _bytes(tensor: Any) -> int:
    return int(tensor.shape.num_elements() * tensor.dtype.size)


def _origin(tensor: Any) -> Any:
    """The tensor that this is another name of."""
    while tensor.op.type in ("Identity", "IdentityN", "StopGradient"):
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor.ref()


def by_tape(function: Function, inputs: Sequence[Any]) -> int:
    """What Python holds under an eager tape beside inputs and outputs. (Backward
    functions of TensorFlow's own operations hold theirs in C, where this does not look.)
    """
    import tensorflow as tf

    kind = type(inputs[0])
    before = {id(o) for o in _living(kind)}
    with tf.GradientTape() as tape:
        for x in inputs:
            tape.watch(x)
        outputs = several(function(*inputs))
    alive = {_address(t) for t in (*inputs, *outputs)}
    found = {_address(t): _bytes(t) for t in _living(kind) if id(t) not in before}
    del tape
    return sum(size for place, size in found.items() if place not in alive)


def _living(kind: type) -> list[Any]:
    gc.collect(1)  # what was just made, not all that the frameworks hold
    return [o for o in gc.get_objects() if isinstance(o, kind)]


def _address(tensor: Any) -> int:
    found: int = tensor._numpy_internal().__array_interface__["data"][0]
    return found


# --- JAX --------------------------------------------------------------------------------


def by_jax(function: Function, inputs: Sequence[Any]) -> int:
    """The arrays in the function that `jax.vjp` gives."""
    import jax
    import jax.numpy as jnp

    places = [k for k, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating)]

    def of_floats(*floats: Any) -> Any:
        given = list(inputs)
        for place, value in zip(places, floats, strict=True):
            given[place] = value
        return function(*given)

    outputs, back = jax.vjp(of_floats, *[inputs[k] for k in places])
    arrays = (*inputs, *several(outputs))
    alive = {a.unsafe_buffer_pointer() for a in arrays}
    held = {
        leaf.unsafe_buffer_pointer(): leaf.nbytes
        for leaf in jax.tree.leaves(back)
        if isinstance(leaf, jax.Array)
    }
    return sum(size for place, size in held.items() if place not in alive)


def peak_by_jax(function: Function, inputs: Sequence[Any]) -> int:
    """What forward and backward, compiled together, allocate: results and what lies
    between (XLA's own account).
    """
    import jax
    import jax.numpy as jnp

    places = [k for k, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating)]

    def both(given: Sequence[Any]) -> Any:
        def of_floats(*floats: Any) -> Any:
            arguments = dict(enumerate(given)) | dict(zip(places, floats, strict=True))
            return function(*(arguments[k] for k in range(len(given))))

        outputs, back = jax.vjp(of_floats, *[given[k] for k in places])
        return outputs, back(jax.tree.map(jnp.ones_like, outputs))

    account = jax.jit(both).lower(list(inputs)).compile().memory_analysis()
    return int(account.temp_size_in_bytes + account.output_size_in_bytes)


# --- NumPy ------------------------------------------------------------------------------


def peak_by_numpy(call: Callable[[], Any]) -> int:
    """The most bytes allocated at once by the call (`tracemalloc`)."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
