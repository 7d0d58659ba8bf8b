"""Run every case on one target and print the numbers. A script: a child process runs it.

    python runner.py TARGET MODULES < jobs.json > numbers.json

A job has a package, a file, a rule, inputs by name, statics, upstream gradients by output. Floats
travel as hexadecimal text, so that nothing is rounded on the way.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any

import numpy as np


def column(values: list[Any]) -> Any:
    if isinstance(values[0], str):
        return np.array([float.fromhex(v) for v in values], dtype=np.float64)
    return np.array(values)


def told(array: Any) -> list[str] | None:
    if array is None:
        return None
    return [float(v).hex() for v in np.asarray(array).ravel()]


def tuple_of(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def on_numpy(module: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    inputs = {name: column(values) for name, values in job["inputs"].items()}
    value = getattr(module, job["rule"])(*inputs.values(), **job["statics"])
    vjp = getattr(module, job["rule"] + "_vjp")
    outputs, pullback = vjp(*inputs.values(), **job["statics"])
    for one, two in zip(tuple_of(value), tuple_of(outputs), strict=True):
        np.testing.assert_array_equal(one, two)
    upstream = [column(v) for v in job["upstream"].values()]
    return tuple_of(value), tuple_of(pullback(*upstream))


def on_torch(module: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    import torch

    inputs = [torch.from_numpy(column(v)) for v in job["inputs"].values()]
    wanted = [t.is_floating_point() and t.requires_grad_() is t for t in inputs]
    outputs = tuple_of(getattr(module, job["rule"])(*inputs, **job["statics"]))
    pairs = zip(outputs, job["upstream"].values(), strict=False)  # discrete ones last
    above = [(o, torch.from_numpy(column(v))) for o, v in pairs if o.requires_grad]
    asked = [t for t, want in zip(inputs, wanted, strict=True) if want]
    found = iter(
        torch.autograd.grad(
            [o for o, _ in above], asked, [g for _, g in above], allow_unused=True
        )
        if above
        else [None] * len(asked)
    )
    return [o.detach() for o in outputs], [next(found) if w else None for w in wanted]


def on_tf(module: Any, job: dict[str, Any]) -> tuple[Any, Any]:
    import tensorflow as tf

    inputs = [tf.constant(column(v)) for v in job["inputs"].values()]
    floats = [t for t in inputs if t.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = tuple_of(getattr(module, job["rule"])(*inputs, **job["statics"]))
    floating = [o for o in outputs if o.dtype.is_floating]
    above = [tf.constant(column(v)) for v in job["upstream"].values()]
    found = iter(
        tape.gradient(floating, floats, output_gradients=above[: len(floating)])
    )
    return outputs, [next(found) if t.dtype.is_floating else None for t in inputs]


def run(target: str, modules: str, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sys.path.insert(0, modules)
    one = {"numpy": on_numpy, "torch": on_torch, "tf": on_tf}[target]
    answers = []
    for job in jobs:
        module = importlib.import_module(f"{job['package']}.{target}.{job['file']}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                outputs, gradients = one(module, job)
            answer = {
                "outputs": [told(o) for o in outputs],
                "gradients": [told(g) for g in gradients],
            }
        except Exception as fault:  # told to the test of the rule that it concerns
            answer = {"fault": f"{type(fault).__name__}: {fault}"}
        answers.append(answer)
    return answers


if __name__ == "__main__":
    json.dump(run(sys.argv[1], sys.argv[2], json.load(sys.stdin)), sys.stdout)
