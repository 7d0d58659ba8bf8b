"""The features of the conformance suite, as a table.

``order`` is what a feature gives: 1 the gradients, 2 the derivatives of their sum, 3
those of the sum of these, 0 nothing but what it checks itself. ``forward`` marks those
that need a forward derivative, which a backward pass that is not linear in its upstream
gradient does not have; ``exact`` those that compare with difference quotients, ``smooth``
those that do so for second derivatives. Features of one group share a process.
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
    exact: bool = False
    smooth: bool = False


_MARKS = ("forward", "half", "exact", "smooth")


def _group(group: str, *features: str) -> Iterator[Feature]:
    """``name``, ``name: 2`` for the order, ``name: 2 forward``, ``name: half``."""
    for text in features:
        name, _, rest = text.partition(": ")
        words = rest.split()
        order = next((int(word) for word in words if word.isdigit()), 1)
        marks = {mark: mark in words for mark in _MARKS}
        yield Feature(group, name, order, **marks)


TORCH = (
    *_group(
        "eager",
        "backward",
        "double backward: 2",
        "third backward: 3",
        "gradcheck: 0 exact",
        "gradgradcheck: 0 smooth",
        "is_grads_batched",
        "keyword call",
        "one input at a time",
        "one output at a time",
        "two calls in one graph",
        "backward twice",
        "in-place on a result",
        "non-contiguous inputs",
        "views of inputs",
        "expanded upstream gradients",
        "empty tensors: 0",
        "float64",
        "bfloat16: half",
        "autocast to bfloat16: half",
        "no_grad and enable_grad",
        "inference mode: 0",
        "checkpoint, reentrant",
        "checkpoint, non-reentrant",
        "checkpoint without early stop",
        "checkpoint, double backward: 2",
        "checkpoint_sequential",
        "saved-tensor hooks",
        "save_on_cpu",
        "hooks on tensors",
        "hooks on modules",
        "anomaly mode",
        "single-threaded engine",
        "threads",
        "tensor subclass",
        "dispatch mode",
        "function mode",
        "deterministic algorithms",
        "deepcopy of a module",
        "pickle of a module",
        "torch.save of a module",
        "jit.trace",
        "fx.symbolic_trace, wrapped",
        "forward AD: 1 forward",
        "forward AD over backward: 2 forward",
        "forward AD over a plain backward: 2 forward",
        "backward over forward AD: 2 forward",
        "autograd.functional.vjp",
        "autograd.functional.jvp: 1 forward",
        "autograd.functional.jacobian",
        "autograd.functional.jacobian, vectorized",
        "autograd.functional.jacobian, forward mode: 1 forward",
        "autograd.functional.hessian: 2",
        "autograd.functional.hessian, vectorized: 2",
        "autograd.functional.vhp: 2",
    ),
    *_group(
        "torch.func",
        "func.grad",
        "func.vjp",
        "func.jvp: 1 forward",
        "linearize: 1 forward",
        "vmap of grad",
        "vmap in chunks",
        "vmap with randomness",
        "vmap over the last axis",
        "vmap of one input beside others",
        "vmap in vmap",
        "vmap in vmap, batches crossed",
        "grad of vmap",
        "vmap of jvp: 1 forward",
        "jvp of vmap: 1 forward",
        "func.jacrev",
        "jacrev in chunks",
        "func.jacfwd: 1 forward",
        "functional_call",
        "functionalize",
        "ensemble (stack_module_state)",
        "grad of grad: 2",
        "jvp of grad (hvp): 2 forward",
        "grad of jvp: 2 forward",
        "jvp of jvp: 2 forward",
        "jacrev of jacrev: 2",
        "jacfwd of jacrev (hessian): 2 forward",
        "jacrev of jacfwd: 2 forward",
        "jacfwd of jacfwd: 2 forward",
        "vmap of hessian: 2 forward",
        "grad of grad of grad: 3",
    ),
    *_group(
        "compile",
        "compile, fullgraph",
        "compile, dynamic shapes",
        "compile, eager backend",
        "compile of a training step",
        "compile, graph break",
        "compile, one output at a time",
        "compile, keyword call",
        "compile, autocast to bfloat16: half",
        "compile, no_grad: 0",
        "compile, checkpoint within",
        "compile, autograd.grad within",
        "compile, double backward: 2",
        "compile, cond within",
        "compile, while_loop within: 0",
        "compile of func.grad",
        "compile of func.vjp",
        "compile of func.jvp: 1 forward",
        "compile of func.jacrev",
        "compile of func.jacfwd: 1 forward",
        "compile of vmap",
        "compile of vmap of one input",
        "compile of hessian: 2 forward",
        "compile of jacrev of jacrev: 2",
        "compiled autograd",
        "AOT",
    ),
    *_group(
        "inductor",
        "compile, inductor",
        "inductor, dynamic shapes",
        "inductor, func.grad",
    ),
    *_group(
        "export",
        "export",
        "export, strict",
        "export, dynamic sizes",
        "export, saved and loaded",
        "export, double backward: 2",
        "export, func.grad",
        "export, func.jvp: 1 forward",
        "export, compiled",
        "export, decomposed: 0",
        "make_fx",
        "make_fx of a backward pass",
        "meta tensors: 0",
        "fake tensors: 0",
    ),
    *_group(
        "distributed",
        "DDP",
        "DDP, compiled",
        "FSDP2",
        "DTensor",
        "DTensor, replicated",
    ),
)

TF = (
    *_group(
        "eager",
        "tape",
        "nested tapes: 2",
        "three tapes: 3",
        "variables",
        "keyword call",
        "one input at a time",
        "one output at a time",
        "persistent tape",
        "float64",
        "bfloat16: half",
        "empty tensors: 0",
        "custom_gradient around",
        "py_function",
        "ragged, map_flat_values: 0",
        "ForwardAccumulator: 1 forward",
        "ForwardAccumulator over variables: 1 forward",
        "tape in an accumulator: 2 forward",
        "accumulator in a tape: 2 forward",
        "accumulator in an accumulator: 2 forward",
        "jacobian",
        "jacobian without pfor",
        "jacobian of a gradient: 2",
        "recompute_grad",
        "recompute_grad, second order: 2",
        "pickle and deepcopy",
        "functions run eagerly",
        "functions run eagerly, ForwardAccumulator: 1 forward",
    ),
    *_group(
        "graph",
        "tf.function",
        "tf.function, unknown shapes",
        "tf.function, unknown ranks",
        "tf.function, second order: 2",
        "tf.function, ForwardAccumulator: 1 forward",
        "gradient of a tf.function",
        "ForwardAccumulator of a tf.function: 1 forward",
        "tf.gradients",
        "tf.gradients twice: 2",
        "while loop",
        "autograph loop",
        "cond",
        "switch_case",
        "scan",
        "map_fn",
        "vectorized_map",
        "vectorized_map of one input",
        "vectorized_map in vectorized_map",
        "batch_jacobian",
        "tf.data: 0",
        "tf.data, gradients within",
    ),
    *_group(
        "XLA",
        "XLA",
        "XLA, second order: 2",
        "XLA, while loop",
        "XLA, jacobian",
        "XLA, ForwardAccumulator: 1 forward",
    ),
    *_group(
        "saved",
        "SavedModel, in a fresh process",
        "SavedModel, second order: 2",
        "SavedModel, unknown shapes",
    ),
    *_group(
        "keras",
        "Keras layer, fitted",
        "Keras layer, fitted eagerly",
        "Keras layer, fitted with XLA",
        "Keras layer, weights saved and loaded",
        "Keras model, saved and loaded",
        "Keras model, exported",
        "Keras, mixed bfloat16: half",
    ),
    *_group(
        "strategy",
        "MirroredStrategy, two devices",
    ),
)

JAX = (
    *_group(
        "eager",
        "grad",
        "value_and_grad",
        "grad with has_aux",
        "vjp",
        "jvp: 1 forward",
        "linearize: 1 forward",
        "linear_transpose of linearize: 1 forward",
        "grad of grad: 2",
        "grad of grad of grad: 3",
        "jvp of grad (hvp): 2 forward",
        "keyword call",
        "one input at a time",
        "one output at a time",
        "empty arrays: 0",
        "float64",
        "bfloat16: half",
        "custom_vjp around",
        "disable_jit",
        "debug_nans",
        "pickle and deepcopy",
    ),
    *_group(
        "transforms",
        "jit",
        "grad of jit",
        "lowered and compiled",
        "jaxpr evaluated, then grad",
        "eval_shape: 0",
        "vmap",
        "vmap over the last axis",
        "vmap of one input beside others",
        "vmap in vmap",
        "vmap with an axis name",
        "grad of vmap",
        "jvp of vmap: 1 forward",
        "jacfwd: 1 forward",
        "jacrev",
        "jacrev of jacrev: 2",
        "jacfwd of jacrev (hessian): 2 forward",
        "jacrev of jacfwd: 2 forward",
        "jacfwd of jacfwd: 2 forward",
        "jit of hessian: 2 forward",
        "remat",
        "remat with a policy",
        "remat, second order: 2",
        "scan",
        "scan, second order: 2",
        "fori_loop",
        "map",
        "cond",
        "switch",
        "while, forward mode: 1 forward",
    ),
    *_group(
        "export",
        "export",
        "export, second order: 2",
        "export of a gradient",
        "export, sizes unknown",
        "checkify",
        "grad of checkify",
    ),
    *_group(
        "shard_map",
        "shard_map, gradient outside",
        "shard_map, gradient inside",
        "shard_map, sums over devices",
        "jit over sharded arrays",
        "pmap",
    ),
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
