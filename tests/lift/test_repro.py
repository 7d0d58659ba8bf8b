"""The scripts of ``lift --repro`` end with an error of the framework's own check."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from gradspec.lift.lifting import lift
from gradspec.report.lifted import scripts

TORCH = """
import torch


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * {slope} * ctx.k, None
"""

TF = """
import tensorflow as tf


@tf.custom_gradient
def gate(x):
    def backward(dy):
        return dy * {slope}

    return x * x * 3.0, backward
"""

JAX = """
from functools import partial

import jax


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def gate(x, k):
    return x * x * k


def gate_fwd(x, k):
    return gate(x, k), x


def gate_bwd(k, x, dy):
    return (dy * {slope} * k,)


gate.defvjp(gate_fwd, gate_bwd)
"""

CASES = [
    pytest.param(TORCH, "3 * x", "2 * x", id="torch", marks=pytest.mark.torch),
    pytest.param(TF, "7.0 * x", "6.0 * x", id="tf", marks=pytest.mark.tf),
    pytest.param(JAX, "3 * x", "2 * x", id="jax", marks=pytest.mark.jax),
]


@pytest.mark.parametrize(("text", "wrong", "right"), CASES)
def test_the_framework_refuses_what_lift_refutes(
    text: str, wrong: str, right: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    names = [f"{which}_{request.node.callspec.id}" for which in ("wrong", "right")]
    for name, slope in zip(names, (wrong, right), strict=True):
        (tmp_path / f"{name}.py").write_text(text.format(slope=slope))
    ((_, script),) = scripts(lift([f"{tmp_path / names[0]}.py"]).findings)
    (tmp_path / "script.py").write_text(script)
    with pytest.raises((AssertionError, RuntimeError)):
        runpy.run_path(f"{tmp_path / 'script.py'}")
    (tmp_path / "script.py").write_text(script.replace(*names))
    runpy.run_path(f"{tmp_path / 'script.py'}")
