"""Norms over axes: one function of the runtime in both passes, in range far out, with
the gradient 0 at the vector 0."""

from __future__ import annotations

import re
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.calling import by_target, called
from tests.targets.emission import text_of

RULES = """
rule length(x[..., n]) -> y:
    y = sqrt(sum(x[i]**2 for i))

rule kept_length(x[..., n], keep[n]: bool) -> y:
    y = sqrt(sum(x[i]**2 for i if keep[i]))

rule frobenius(x[..., n, m]) -> y:
    y = sqrt(sum(x[i, j]**2 for i, j))

rule cosine(x[..., n], z[..., n], eps: static = 1e-8) -> y:
    assume eps > 0
    y = sum(x[i] * z[i] for i) / max(sqrt(sum(x[i]**2 for i)) * sqrt(sum(z[i]**2 for i)), eps)

rule normalized(x[..., n], eps: static = 1e-12) -> y[..., n]:
    assume eps > 0
    y[i] = x[i] / max(sqrt(sum(x[j]**2 for j)), eps)

rule triplet(a[..., n], p[..., n], q[..., n], margin: static = 1.0) -> y:
    y = max(sqrt(sum((a[i] - p[i])**2 for i)) - sqrt(sum((a[i] - q[i])**2 for i)) + margin, 0)
"""
KEEP = np.array([True, False, True])
BIG, TINY, ZERO = 3e30, 3e-30, np.zeros(3)
ALONE = np.array([3.0, 4.0, 0.0])
UNIT = ALONE / 5

# rule, inputs, and the output with the gradients of the floating inputs in float32
CASES: tuple[tuple[str, tuple[Any, ...], Any, tuple[Any, ...]], ...] = (
    ("length", (ALONE,), 5, (UNIT,)),
    ("length", (BIG * ALONE,), 5 * BIG, (UNIT,)),
    ("length", (TINY * ALONE,), 5 * TINY, (UNIT,)),
    ("length", (ZERO,), 0, (ZERO,)),
    ("length", (np.zeros((2, 0)),), [0, 0], (np.zeros((2, 0)),)),
    ("length", (np.array([np.inf, 1.0]),), np.inf, (None,)),
    ("kept_length", (BIG * np.array([3.0, 9.0, 4.0]), KEEP), 5 * BIG, ([0.6, 0, 0.8],)),
    ("frobenius", (BIG * ALONE.reshape(1, 3),), 5 * BIG, (UNIT.reshape(1, 3),)),
    ("cosine", (BIG * ALONE, ALONE[::-1] / BIG), 0.64, (None, None)),
    ("cosine", (ZERO, ALONE), 0, (ALONE * 1e8, ZERO)),
    ("normalized", (BIG * ALONE,), UNIT, (np.array([28, -21, 0]) / 125 / BIG,)),
    ("normalized", (ZERO,), ZERO, (np.full(3, 1e12) * np.cos(np.arange(3)),)),
    ("triplet", (ALONE, ZERO, ZERO), 1, (ZERO, -UNIT, UNIT)),
)


@cache
def _module(target: str) -> ModuleType:
    return gradspec.load(RULES, target)


@by_target
@pytest.mark.parametrize(("rule", "inputs", "output", "gradients"), CASES)
def test_norms_stay_in_range(
    target: str, rule: str, inputs: Any, output: Any, gradients: Any
) -> None:
    arrays = [i if i.dtype == bool else i.astype(np.float32) for i in inputs]
    ones = None if rule == "normalized" else [np.ones(np.shape(output), np.float32)]
    if rule == "normalized" and np.any(inputs[0]):
        ones = [np.array([1.0, 0.0, 0.0], np.float32)]
        gradients = (np.array([16, -12, 0]) / 125 / BIG,)
    with np.errstate(all="ignore"):
        outputs, found = called(target, _module(target), rule, arrays, ones)
    np.testing.assert_allclose(outputs[0], np.float32(output), rtol=1e-5)
    floating = [g for g, i in zip(found, arrays, strict=True) if i.dtype != bool]
    for gradient, wanted in zip(floating, gradients, strict=True):
        if wanted is None:
            assert np.all(np.isfinite(inputs[0])) <= np.all(np.isfinite(gradient))
        else:
            least = 1e-5 * float(np.max(np.abs(wanted), initial=1e-32))
            np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=least)


def test_the_second_derivative_at_the_vector_0_is_a_number() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    z = torch.ones(3, dtype=torch.float64)
    y = _module("torch").cosine(x, z)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, allow_unused=True)
    assert torch.isfinite(first).all()
    assert second is None or torch.isfinite(second).all()


@pytest.mark.parametrize("target", ["numpy", "torch", "tf", "jax"])
@pytest.mark.parametrize("rule", ["cosine", "normalized", "triplet"])
def test_both_passes_call_one_function(rule: str, target: str) -> None:
    (text,) = (part for part in RULES.split("\n\n") if f"rule {rule}(" in part)
    emitted = text_of(text, target)
    code = re.sub(r"#.*", "", re.sub(r'(?s)""".*?"""', "", emitted))
    assert "norm(" in code
    assert not re.search(r"sqrt\(|abs\(|\b(\w+) \* \1\b", code)
