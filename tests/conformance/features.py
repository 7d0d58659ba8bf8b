"""The features that prove the runtimes: beside those of `gradspec test --conformance`,
whose result depends on a rule's formulas, those that only call it.
"""

from __future__ import annotations

from pathlib import Path

from gradspec.measure.features import FEATURES as OF_RULES
from gradspec.measure.features import Feature, features

_RUNTIMES = {
    "numpy": {
        "eager": "other calls between; keyword call; pickle",
    },
    "torch": {
        "eager": """
            is_grads_batched; keyword call; one input at a time; other calls between;
            backward twice; views of inputs; no_grad and enable_grad; inference mode: 0;
            checkpoint, reentrant; checkpoint, non-reentrant;
            checkpoint, double backward: 2; saved-tensor hooks; threads;
            tensor subclass; torch.save of a module; jit.trace;
            fx.symbolic_trace, wrapped; forward AD over a plain backward: 2 forward;
            backward over forward AD: 2 forward; autograd.functional.jvp: 1 forward;
            autograd.functional.jacobian, vectorized;
            autograd.functional.jacobian, forward mode: 1 forward;
            autograd.functional.hessian, vectorized: 2
        """,
        "torch.func": """
            func.vjp, values: 0; func.jvp, values: 0 forward; vmap, values: 0; func.vjp;
            linearize: 1 forward; vmap over the last axis;
            vmap in vmap, batches crossed; grad of vmap;
            backward of vmap over one input; jvp of vmap: 1 forward;
            jvp of vmap over one input: 1 forward; func.jacrev; functionalize;
            ensemble (stack_module_state); grad of grad: 2;
            jvp of grad (hvp): 2 forward; jacrev of jacrev: 2;
            jacrev of jacfwd: 2 forward; jacfwd of jacfwd: 2 forward;
            grad of grad of grad: 3
        """,
        "compile": """
            compile, values: 0; compile, graph break; compile, one output at a time;
            compile, other calls between; compile, autocast to bfloat16: half;
            compile, no_grad: 0; compile, checkpoint within;
            compile, double backward: 2; compile, forward AD around it: 1 forward;
            compile, cond within; compile of func.vjp; compile of func.jvp: 1 forward;
            compile of vmap of one input; compile of vmap over one input, backward;
            compile of grad of vmap over one input; compile of hessian: 2 forward;
            compiled autograd; AOT
        """,
        "compile, forward": """
            compile of func.jvp, one input at a time: 1 forward;
            compile of jacfwd of jacfwd: 2 forward; compile of jvp of jvp: 2 forward
        """,
        "export": """
            export, values: 0; export, strict; export, saved and loaded;
            export, double backward: 2; export, func.grad; export, func.jvp: 1 forward;
            export, compiled; export, decomposed: 0; make_fx; make_fx of a backward pass
        """,
        "distributed": "DDP; DDP, compiled; FSDP2; DTensor",
    },
    "tf": {
        "eager": """
            variables; keyword call; one input at a time; other calls between;
            custom_gradient around; accumulator in a tape: 2 forward;
            accumulator in an accumulator: 2 forward; jacobian of a gradient: 2;
            recompute_grad; recompute_grad, second order: 2; pickle and deepcopy
        """,
        "graph": """
            tf.function, values: 0; tf.function, other calls between;
            tf.function, ForwardAccumulator: 1 forward; gradient of a tf.function;
            ForwardAccumulator of a tf.function: 1 forward; tf.gradients; while loop;
            cond; scan; map_fn; vectorized_map of one input;
            vectorized_map in vectorized_map; tf.data, gradients within
        """,
        "XLA": "XLA, while loop; XLA, jacobian; XLA, ForwardAccumulator: 1 forward",
        "saved": """
            SavedModel, in a fresh process; SavedModel, second order: 2;
            SavedModel, unknown shapes
        """,
        "keras": """
            Keras layer, fitted; Keras layer, fitted with XLA;
            Keras model, saved and loaded; Keras, mixed bfloat16: half
        """,
        "strategy": "MirroredStrategy, two devices",
    },
    "jax": {
        "eager": """
            vjp, values: 0; jvp, values: 0 forward; linearize: 1 forward;
            linear_transpose of linearize: 1 forward; keyword call; one input at a time;
            other calls between; custom_vjp around; pickle and deepcopy
        """,
        "transforms": """
            jit, values: 0; jit, other calls between; grad of jit;
            jaxpr evaluated, then grad; eval_shape: 0; vmap, values: 0;
            vmap over the last axis; vmap with an axis name; grad of vmap;
            jvp of vmap: 1 forward; jacrev; jacrev of jacrev: 2;
            jacrev of jacfwd: 2 forward; jacfwd of jacfwd: 2 forward; remat;
            remat with a policy; remat, second order: 2; scan; scan, second order: 2;
            scan, second derivative of a product: 0; cond;
            while, forward mode: 1 forward
        """,
        "export": "export; export, second order: 2; checkify; grad of checkify",
        "shard_map": """
            shard_map, gradient outside; shard_map, gradient inside;
            shard_map, sums over devices; shard_map, inputs that devices share;
            jit over sharded arrays
        """,
    },
}
"""By target and group, written as in `gradspec.measure.features`."""


def _in_groups(every: tuple[Feature, ...]) -> tuple[Feature, ...]:
    groups = list(dict.fromkeys(feature.group for feature in every))
    return tuple(sorted(every, key=lambda feature: groups.index(feature.group)))


FEATURES = {
    target: _in_groups((*OF_RULES[target], *features(groups)))
    for target, groups in _RUNTIMES.items()
}
"""All, by target, in the order of the matrix."""

RUNNERS = {t: Path(__file__).with_name(f"runs_{t}.py") for t in FEATURES}
"""The scripts that have their functions, those of gradspec's own among them."""
