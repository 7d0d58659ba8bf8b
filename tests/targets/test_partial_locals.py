"""Locals that lack elements (``d[i] = x[i + 1] - x[i]``) can be called at every size."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.targets.emission import torch_module
from tests.targets.ranked_numpy import emitted

RULES = """
rule variation(x[..., n]) -> y[...]:
    d[i] = abs(x[i + 1] - x[i])
    y = sum(d[i] for i if i < n - 1)

rule bending(x[..., n]) -> y[...]:
    d[i] = x[i + 1] - x[i]
    e[i] = d[i + 1] - d[i]
    y = sum(e[i]**2 for i if i < n - 2)

rule growth(x[..., n]) -> y[..., n]:
    assume x[i] > 0
    g[i] = log(x[i] / x[i - 1])
    y[i] = g[i] if i > 0 else 0
"""
EXPECTED = {
    "variation": lambda x: np.abs(np.diff(x)).sum(-1),
    "bending": lambda x: (
        (np.diff(x, n=2) ** 2).sum(-1) if x.shape[-1] > 1 else 0 * x[..., :1].sum(-1)
    ),
    "growth": lambda x: np.log(x / np.concatenate([x[..., :1], x[..., :-1]], -1)),
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (3,), (2, 5)])
def test_numpy(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).uniform(1, 2, shape)
    _, module, _ = emitted(RULES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, pullback = getattr(module, f"{name}_vjp")(x)
        (gradient,) = pullback(np.ones_like(value))
    assert np.allclose(value, EXPECTED[name](x), atol=1e-14)
    assert gradient.shape == x.shape
    for place in np.ndindex(*shape):
        step = np.zeros(shape)
        step[place] = 1e-6
        apart = EXPECTED[name](x + step).sum() - EXPECTED[name](x - step).sum()
        assert abs(gradient[place] - apart / 2e-6) < 1e-8


@pytest.mark.torch
@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_torch(name: str, size: int) -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(1, 2, size, dtype=torch.float64) ** 3
    rule = getattr(torch_module(RULES), name)
    assert torch.allclose(rule(x), torch.as_tensor(EXPECTED[name](x.numpy())))
    if size:
        assert torch.autograd.gradcheck(rule, x.clone().requires_grad_())
