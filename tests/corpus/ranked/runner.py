"""Compare emitted functions with torch's autograd, and print what differs. A script: a
child process runs it.

    python runner.py ROOT MODULES TARGET < cases.json > faults.json

A case is a file's and a rule's name; the answer has a list of faults for each.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

RELATIVE = 1e-10


def tuple_of(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


# --- what must come out --------------------------------------------------------------


def tensors(spec: Any, arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    made = {name: torch.tensor(array) for name, array in arrays.items()}
    for name, given in spec.inputs.items():
        made[name].requires_grad_(given.is_differentiated)
    return made


def reference(spec: Any, trial: Any, rng: np.random.Generator) -> Any:
    """Outputs, upstream gradients, gradients (None where an input takes none)."""
    inputs = tensors(spec, trial.arrays)
    outputs = tuple_of(spec.forward(**inputs, **trial.statics))
    above = [rng.standard_normal(tuple(o.shape)) for o in outputs]
    asked = [t for t in inputs.values() if t.requires_grad]
    found = iter(
        torch.autograd.grad(
            outputs,
            asked,
            [torch.as_tensor(g, dtype=torch.float64) for g in above],
            allow_unused=True,
            materialize_grads=True,
        )
    )
    gradients = [next(found) if t.requires_grad else None for t in inputs.values()]
    return [o.detach().numpy() for o in outputs], above, gradients


# --- what comes out ------------------------------------------------------------------


def on_numpy(module: Any, rule: str, spec: Any, trial: Any, above: Any) -> Any:
    arrays = trial.arrays.values()
    value = getattr(module, rule)(*arrays, **trial.statics)
    outputs, pullback = getattr(module, f"{rule}_vjp")(*arrays, **trial.statics)
    for one, two in zip(tuple_of(value), tuple_of(outputs), strict=True):
        np.testing.assert_array_equal(one, two)
    return tuple_of(outputs), tuple_of(pullback(*above))


def on_torch(module: Any, rule: str, spec: Any, trial: Any, above: Any) -> Any:
    inputs = tensors(spec, trial.arrays)
    outputs = tuple_of(getattr(module, rule)(*inputs.values(), **trial.statics))
    asked = [t for t in inputs.values() if t.requires_grad]
    upstream = [torch.as_tensor(g, dtype=torch.float64) for g in above]
    found = iter(torch.autograd.grad(outputs, asked, upstream))
    gradients = [next(found) if t.requires_grad else None for t in inputs.values()]
    return [o.detach().numpy() for o in outputs], gradients


def on_tf(module: Any, rule: str, spec: Any, trial: Any, above: Any) -> Any:
    import tensorflow as tf

    inputs = {name: tf.constant(array) for name, array in trial.arrays.items()}
    watched = [inputs[n] for n, g in spec.inputs.items() if g.is_differentiated]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = tuple_of(getattr(module, rule)(*inputs.values(), **trial.statics))
    upstream = [tf.constant(g, tf.float64) for g in above]
    found = iter(tape.gradient(outputs, watched, output_gradients=upstream))
    gradients = [
        next(found) if given.is_differentiated else None
        for given in spec.inputs.values()
    ]
    return [o.numpy() for o in outputs], gradients


# --- how they differ -----------------------------------------------------------------


def difference(name: str, got: Any, want: Any) -> str | None:
    if want is None:
        return None if got is None else f"{name} takes no gradient and got one"
    if got is None:
        return f"{name} got no gradient"
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"{name} has shape {got.shape}, should be {want.shape}"
    scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    apart = float(np.max(np.abs(got - want), initial=0.0))
    if not apart <= RELATIVE * scale:
        return f"{name} is {got.tolist()}, should be {want.tolist()}"
    return None


def faults(run: Any, module: Any, rule: str, spec: Any, trial: Any) -> list[str]:
    rng = np.random.default_rng(7)
    values, above, gradients = reference(spec, trial, rng)
    shapes = {name: array.shape for name, array in trial.arrays.items()}
    try:
        outputs, found = run(module, rule, spec, trial, above)
    except Exception as fault:  # told to the test of the rule that it concerns
        return [f"{shapes}: {type(fault).__name__}: {fault}"]
    compared = [
        *(("value", g, w) for g, w in zip(outputs, values, strict=True)),
        *(
            (f"d{name}", g, w)
            for name, g, w in zip(spec.inputs, found, gradients, strict=True)
        ),
    ]
    found_faults = [difference(*one) for one in compared]
    return [f"{shapes}: {fault}" for fault in found_faults if fault]


def main(cases: list[list[str]], root: str, modules: str, target: str) -> list[Any]:
    sys.path[:0] = [root, modules]
    from tests.corpus.ranked.case import trials
    from tests.corpus.ranked.references import CASES

    torch.set_num_threads(1)
    run = {"numpy": on_numpy, "torch": on_torch, "tf": on_tf}[target]
    answers = []
    for file, rule in cases:
        module = importlib.import_module(f"ranked_corpus.{target}.{file}")
        spec = CASES[file, rule]
        found: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for trial in trials(rule, spec):
                found += faults(run, module, rule, spec, trial)
        answers.append(found)
    return answers


if __name__ == "__main__":
    json.dump(main(json.load(sys.stdin), *sys.argv[1:4]), sys.stdout)
