"""The features of the conformance suite, as a table.

``order`` is what a feature gives: 1 the gradients, 2 the derivatives of their sum, 0
nothing but that it works. ``forward`` marks those that need a forward derivative, which
a backward pass that is not linear in its upstream gradient does not have. Features of
one group share a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of a matrix. ``half``: computed in bfloat16."""

    group: str
    name: str
    order: int = 1
    forward: bool = False
    half: bool = False


def _group(group: str, *features: str) -> Iterator[Feature]:
    """``name``, ``name: 2`` for the order, ``name: 2 forward``, ``name: half``."""
    for text in features:
        name, _, marks = text.partition(": ")
        words = marks.split()
        order = next((int(word) for word in words if word.isdigit()), 1)
        yield Feature(group, name, order, "forward" in words, "half" in words)


TORCH = (
    *_group(
        "eager",
        "backward",
        "double backward: 2",
        "third backward: 0",
        "is_grads_batched",
        "keyword call",
        "non-contiguous inputs",
        "inference mode: 0",
        "saved-tensor hooks",
        "checkpoint, reentrant",
        "checkpoint, non-reentrant",
        "autocast to bfloat16: half",
        "deepcopy of a module",
        "pickle of a module",
        "empty tensors: 0",
        "forward AD: 1 forward",
    ),
    *_group(
        "torch.func",
        "func.grad",
        "func.vjp",
        "func.jvp: 1 forward",
        "vmap of grad",
        "func.jacrev",
        "func.jacfwd: 1 forward",
        "jacrev of jacrev: 2",
        "jacfwd of jacrev (hessian): 2 forward",
        "jacrev of jacfwd: 2 forward",
        "jacfwd of jacfwd: 2 forward",
    ),
    *_group(
        "compile",
        "compile, fullgraph",
        "compile, dynamic shapes",
        "compile of func.grad",
        "compile of func.jvp: 1 forward",
        "compile of vmap",
        "compile of hessian: 2 forward",
        "compiled autograd",
        "AOT",
    ),
    *_group("inductor", "compile, inductor"),
    *_group(
        "export",
        "export",
        "export, saved and loaded",
        "make_fx",
        "meta tensors: 0",
        "fake tensors: 0",
    ),
    *_group("distributed", "DDP", "FSDP2", "DTensor"),
)

TF = (
    *_group(
        "eager",
        "tape",
        "nested tapes: 2",
        "three tapes: 0",
        "variables",
        "keyword call",
        "ForwardAccumulator: 1 forward",
        "accumulator in a tape: 2 forward",
        "tape in an accumulator: 2 forward",
        "jacobian",
        "recompute_grad",
        "pickle and deepcopy",
        "empty tensors: 0",
        "bfloat16: half",
    ),
    *_group(
        "graph",
        "tf.function",
        "tf.function, unknown shapes",
        "tf.function, unknown ranks",
        "tf.gradients",
        "while loop",
        "cond",
        "map_fn",
        "vectorized_map",
        "batch_jacobian: 0",
        "tf.data: 0",
    ),
    *_group("XLA", "XLA", "XLA, second order: 2"),
    *_group("saved", "SavedModel, in a fresh process"),
    *_group("keras", "Keras layer, fitted: 0", "Keras layer, saved and loaded"),
    *_group("strategy", "MirroredStrategy, two devices"),
)

JAX = (
    *_group(
        "eager",
        "grad",
        "value_and_grad",
        "vjp",
        "jvp: 1 forward",
        "linearize: 1 forward",
        "keyword call",
        "pickle",
        "empty arrays: 0",
        "bfloat16: half",
    ),
    *_group(
        "transforms",
        "jit",
        "grad of jit",
        "vmap",
        "jacfwd: 1 forward",
        "jacrev",
        "jacrev of jacrev: 2",
        "jacfwd of jacrev (hessian): 2 forward",
        "jacrev of jacfwd: 2 forward",
        "jacfwd of jacfwd: 2 forward",
        "jit of hessian: 2 forward",
        "remat",
        "scan",
        "cond",
        "while, forward mode: 1 forward",
    ),
    *_group("export", "export", "checkify", "grad of checkify"),
    *_group("shard_map", "shard_map, gradient outside", "shard_map, gradient inside"),
)

NUMPY = tuple(
    _group(
        "eager",
        "f_vjp",
        "f_jvp: 1 forward",
        "keyword call",
        "float64",
        "non-contiguous inputs",
        "empty arrays: 0",
        "pickle",
    )
)

FEATURES = {"numpy": NUMPY, "torch": TORCH, "tf": TF, "jax": JAX}
"""By target, in the order of the matrix."""
