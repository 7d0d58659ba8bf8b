"""The features of the conformance suite.

``order`` is what a feature gives: 1 the gradients, 2 the derivatives of their product
with the probes, 3 those of the product of these, 0 the values, or nothing but what it
checks itself. ``forward`` marks those that need a forward derivative, which a backward
pass that is not linear in its cotangent does not have; ``exact`` those that compare
with difference quotients, ``smooth`` those that do so for second derivatives, ``axes``
those for rules with axes alone. ``half`` is computed in bfloat16, ``double`` in
float64. Features of one group share a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of a matrix."""

    group: str
    name: str
    order: int = 1
    forward: bool = False
    half: bool = False
    double: bool = False
    exact: bool = False
    smooth: bool = False
    axes: bool = False


_TABLES = {
    "numpy": {
        "eager": """
            values: 0; f_vjp, values: 0; f_jvp, values: 0 forward; f_vjp;
            f_jvp: 1 forward; pullback twice; other calls between; keyword call;
            float64: double; non-contiguous inputs; empty arrays: 0; pickle
        """,
    },
    "torch": {
        "eager": """
            values: 0; backward; double backward: 2; third backward: 3;
            gradcheck: 0 exact; gradgradcheck: 0 smooth; is_grads_batched; keyword call;
            one input at a time; one output at a time; two calls in one graph;
            other calls between; backward twice; in-place on a result;
            non-contiguous inputs; views of inputs; expanded upstream gradients;
            upstream gradients of other strides; empty tensors: 0; float64: double;
            bfloat16: half; autocast to bfloat16: half; no_grad and enable_grad;
            inference mode: 0; checkpoint, reentrant; checkpoint, non-reentrant;
            checkpoint without early stop; checkpoint, double backward: 2;
            checkpoint_sequential; saved-tensor hooks; save_on_cpu; hooks on tensors;
            hooks on modules; anomaly mode; single-threaded engine; threads;
            tensor subclass; dispatch mode; function mode; deterministic algorithms;
            deepcopy of a module; pickle of a module; torch.save of a module; jit.trace;
            fx.symbolic_trace, wrapped; forward AD: 1 forward;
            forward AD over backward: 2 forward;
            forward AD over a plain backward: 2 forward;
            backward over forward AD: 2 forward; autograd.functional.vjp;
            autograd.functional.jvp: 1 forward; autograd.functional.jacobian;
            autograd.functional.jacobian, vectorized;
            autograd.functional.jacobian, forward mode: 1 forward;
            autograd.functional.hessian: 2; autograd.functional.hessian, vectorized: 2;
            autograd.functional.vhp: 2
        """,
        "torch.func": """
            func.vjp, values: 0; func.jvp, values: 0 forward; vmap, values: 0;
            func.grad; func.vjp; func.jvp: 1 forward; linearize: 1 forward;
            vmap of grad; vmap in chunks; vmap with randomness; vmap over the last axis;
            vmap of one input beside others; vmap in vmap;
            vmap in vmap, batches crossed; grad of vmap; grad of vmap over one input;
            backward of vmap over one input; vmap of jvp: 1 forward;
            jvp of vmap: 1 forward; jvp of vmap over one input: 1 forward; func.jacrev;
            jacrev in chunks; func.jacfwd: 1 forward; functional_call; functionalize;
            ensemble (stack_module_state); grad of grad: 2;
            jvp of grad (hvp): 2 forward; grad of jvp: 2 forward; jvp of jvp: 2 forward;
            jacrev of jacrev: 2; jacfwd of jacrev (hessian): 2 forward;
            jacrev of jacfwd: 2 forward; jacfwd of jacfwd: 2 forward;
            vmap of hessian: 2 forward; grad of grad of grad: 3
        """,
        "compile": """
            compile, values: 0; compile, fullgraph; compile, dynamic shapes;
            compile, eager backend; compile of a training step; compile, graph break;
            compile, one output at a time; compile, keyword call;
            compile, other calls between; compile, autocast to bfloat16: half;
            compile, no_grad: 0; compile, checkpoint within;
            compile, autograd.grad within; compile, double backward: 2;
            compile, forward AD around it: 1 forward; compile, cond within;
            compile, while_loop within: 0; compile of func.grad; compile of func.vjp;
            compile of func.jvp: 1 forward;
            compile of func.jvp, one input at a time: 1 forward; compile of func.jacrev;
            compile of func.jacfwd: 1 forward; compile of vmap;
            compile of vmap of one input; compile of vmap over one input, backward;
            compile of grad of vmap over one input; compile of hessian: 2 forward;
            compile of jacrev of jacrev: 2; compile of jacfwd of jacfwd: 2 forward;
            compile of jvp of jvp: 2 forward; compile of vmap of jvp of jvp: 2 forward;
            compile of grad of jvp of jvp: 3 forward;
            compile of jvp of grad of jvp: 3 forward; compiled autograd; AOT
        """,
        "inductor": """
            inductor, no_grad: 0; compile, inductor; inductor, dynamic shapes;
            inductor, func.grad
        """,
        "export": """
            export, values: 0; export; export, strict; export, dynamic sizes;
            export, saved and loaded; export, double backward: 2; export, func.grad;
            export, func.jvp: 1 forward; export, compiled; export, decomposed: 0;
            make_fx; make_fx of a backward pass; meta tensors: 0; fake tensors: 0
        """,
        "distributed": """
            DDP; DDP, compiled; FSDP2; DTensor; DTensor, replicated
        """,
    },
    "tf": {
        "eager": """
            values: 0; tape; nested tapes: 2; three tapes: 3; variables; keyword call;
            one input at a time; one output at a time; persistent tape;
            other calls between; float64: double; bfloat16: half; empty tensors: 0;
            custom_gradient around; py_function; ragged, map_flat_values: 0;
            ForwardAccumulator: 1 forward; ForwardAccumulator over variables: 1 forward;
            tape in an accumulator: 2 forward; accumulator in a tape: 2 forward;
            accumulator in an accumulator: 2 forward; jacobian; jacobian without pfor;
            jacobian of a gradient: 2; recompute_grad; recompute_grad, second order: 2;
            pickle and deepcopy; functions run eagerly;
            functions run eagerly, ForwardAccumulator: 1 forward
        """,
        "graph": """
            tf.function, values: 0; tf.function; tf.function, other calls between;
            tf.function, unknown shapes; tf.function, unknown ranks;
            tf.function, second order: 2; tf.function, ForwardAccumulator: 1 forward;
            gradient of a tf.function; ForwardAccumulator of a tf.function: 1 forward;
            tf.gradients; tf.gradients twice: 2; while loop; autograph loop; cond;
            switch_case; scan; map_fn; vectorized_map; vectorized_map of one input;
            vectorized_map in vectorized_map; batch_jacobian; tf.data: 0;
            tf.data, gradients within
        """,
        "XLA": """
            XLA, values: 0; XLA; XLA, second order: 2; XLA, while loop; XLA, jacobian;
            XLA, ForwardAccumulator: 1 forward
        """,
        "saved": """
            SavedModel, in a fresh process; SavedModel, second order: 2;
            SavedModel, unknown shapes
        """,
        "keras": """
            Keras layer, fitted; Keras layer, fitted eagerly;
            Keras layer, fitted with XLA; Keras layer, weights saved and loaded;
            Keras model, saved and loaded; Keras model, exported;
            Keras, mixed bfloat16: half
        """,
        "strategy": """
            MirroredStrategy, two devices
        """,
    },
    "jax": {
        "eager": """
            values: 0; vjp, values: 0; jvp, values: 0 forward; grad; value_and_grad;
            grad with has_aux; vjp; jvp: 1 forward; linearize: 1 forward;
            linear_transpose of linearize: 1 forward; grad of grad: 2;
            grad of grad of grad: 3; jvp of grad (hvp): 2 forward; keyword call;
            one input at a time; one output at a time; other calls between;
            empty arrays: 0; float64: double; bfloat16: half; custom_vjp around;
            disable_jit; debug_nans; pickle and deepcopy
        """,
        "transforms": """
            jit, values: 0; jit; jit, other calls between; grad of jit;
            lowered and compiled; jaxpr evaluated, then grad; eval_shape: 0;
            vmap, values: 0; vmap; vmap over the last axis;
            vmap of one input beside others; vmap in vmap; vmap with an axis name;
            grad of vmap; grad of vmap over one input; jvp of vmap: 1 forward;
            jacfwd: 1 forward; jacrev; jacrev of jacrev: 2;
            jacfwd of jacrev (hessian): 2 forward; jacrev of jacfwd: 2 forward;
            jacfwd of jacfwd: 2 forward; jit of hessian: 2 forward; remat;
            remat with a policy; remat, second order: 2; scan; scan, second order: 2;
            scan, second derivative of a product: 0; fori_loop; map; cond; switch;
            while, forward mode: 1 forward
        """,
        "export": """
            export; export, second order: 2; export of a gradient;
            export, sizes unknown; checkify; grad of checkify
        """,
        "shard_map": """
            shard_map, gradient outside; shard_map, gradient inside;
            shard_map, sums over devices; shard_map, inputs that devices share;
            jit over sharded arrays; pmap
        """,
    },
}
"""By target and group; ``name``, ``name: 2`` for the order, ``name: 2 forward``."""

_TRIALS = {
    "numpy": "f_vjp; f_vjp, values: 0; f_jvp: 1 forward; non-contiguous inputs",
    "torch": """
        backward; double backward: 2; non-contiguous inputs; gradcheck: 0 exact smooth;
        gradgradcheck: 0 exact smooth
    """,
    "tf": """
        tape; nested tapes: 2; tf.function, unknown ranks;
        tf.function, unknown shapes: axes
    """,
    "jax": "vjp; grad of grad, compiled: 2; jacfwd, compiled: 1 forward; jit",
}
"""By target, what a trial takes its calls through, in float64. The first is for every
call, the others are for a few that are smooth or small.
"""


def applies(feature: Feature, case: Mapping[str, Any]) -> bool:
    """True if the feature applies to a call of a rule. It needs a gradient that can be
    lost.
    """
    wanted = {2: "second", 3: "third"}.get(feature.order, "first")
    return bool(
        case["first"]
        and (case["linear"] or not feature.forward)
        and (case["exact"] or not feature.exact)
        and case[wanted] is not None
        and (case["second"] is not None or not feature.smooth)
        and (case["axes"] or not feature.axes)
    )


def _features(groups: Mapping[str, str]) -> Iterator[Feature]:
    marks = ("forward", "half", "double", "exact", "smooth", "axes")
    for group, text in groups.items():
        for entry in " ".join(text.split()).split("; "):
            name, _, rest = entry.partition(": ")
            words = rest.split()
            order = next((int(word) for word in words if word.isdigit()), 1)
            yield Feature(group, name, order, **{mark: mark in words for mark in marks})


FEATURES = {target: tuple(_features(groups)) for target, groups in _TABLES.items()}
"""By target, in the order of the matrix."""

TRIALS = {target: tuple(_features({"": text})) for target, text in _TRIALS.items()}
