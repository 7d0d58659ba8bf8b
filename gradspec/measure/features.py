"""The features of the conformance suite, whose result depends on the formulas of a rule.
(Those that only call it, such as hooks or several devices, are the same for every rule:
they are tested with gradspec, in ``tests/conformance``.)

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
            f_jvp: 1 forward; pullback twice; float64: double; non-contiguous inputs;
            empty arrays: 0
        """,
    },
    "torch": {
        "eager": """
            values: 0; backward; double backward: 2; third backward: 3;
            gradcheck: 0 exact; gradgradcheck: 0 smooth; one output at a time;
            non-contiguous inputs; upstream gradients of other strides;
            in-place on a result; empty tensors: 0; float64: double; bfloat16: half;
            autocast to bfloat16: half; forward AD: 1 forward;
            forward AD over backward: 2 forward
        """,
        "torch.func": """
            func.grad; func.jvp: 1 forward; vmap of grad;
            vmap of one input beside others; vmap in vmap; grad of vmap over one input;
            func.jacfwd: 1 forward; jacfwd of jacrev (hessian): 2 forward
        """,
        "compile": """
            compile, fullgraph; compile, dynamic shapes; compile of func.grad;
            compile of vmap
        """,
        "inductor": "compile, inductor",
        "export": "export; export, dynamic sizes; fake tensors: 0",
    },
    "tf": {
        "eager": """
            values: 0; tape; nested tapes: 2; three tapes: 3; one output at a time;
            float64: double; bfloat16: half; empty tensors: 0;
            ForwardAccumulator: 1 forward; tape in an accumulator: 2 forward; jacobian
        """,
        "graph": """
            tf.function; tf.function, unknown shapes; tf.function, unknown ranks;
            tf.function, second order: 2; vectorized_map
        """,
        "XLA": "XLA; XLA, second order: 2",
    },
    "jax": {
        "eager": """
            values: 0; grad; vjp; jvp: 1 forward; grad of grad: 2;
            grad of grad of grad: 3; jvp of grad (hvp): 2 forward; one output at a time;
            empty arrays: 0; float64: double; bfloat16: half; debug_nans
        """,
        "transforms": """
            jit; vmap; vmap of one input beside others; vmap in vmap;
            grad of vmap over one input; jacfwd: 1 forward;
            jacfwd of jacrev (hessian): 2 forward; jit of hessian: 2 forward
        """,
        "export": "export, sizes unknown",
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


def features(groups: Mapping[str, str]) -> Iterator[Feature]:
    """The features of a table as it is written here."""
    marks = ("forward", "half", "double", "exact", "smooth", "axes")
    for group, text in groups.items():
        for entry in " ".join(text.split()).split("; "):
            name, _, rest = entry.partition(": ")
            words = rest.split()
            order = next((int(word) for word in words if word.isdigit()), 1)
            yield Feature(group, name, order, **{mark: mark in words for mark in marks})


FEATURES = {target: tuple(features(groups)) for target, groups in _TABLES.items()}
"""By target, in the order of the matrix."""

TRIALS = {target: tuple(features({"": text})) for target, text in _TRIALS.items()}
