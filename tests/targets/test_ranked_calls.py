"""Rules over named axes that call a rule whose backward is not linear in the upstream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.checks.written import checked
from tests.targets.emission import torch_module
from tests.targets.ranked_numpy import emitted

CLIPPED = """
rule clipped(x) -> y:
    y = x
    override dx = clip(dy, -1, 1) because "clipped gradient"
"""
RULES = f"""{CLIPPED}
rule squares(x[..., n]) -> y[...]:
    y = sum(clipped(x[i])**2 for i)

rule layer(x[..., n], w[m, n]) -> y[..., m]:
    h[i] = clipped(sum(w[i, j] * x[j] for j))
    y[i] = exp(h[i]) * x[0]

rule declared(x[..., n]) -> y[...]:
    s = sum(x[i]**2 for i)
    y = clipped(s) * 3
    dx[i] = 2 * x[i] * clip(3 * dy, -1, 1)
"""


def _clipped(torch: Any) -> Any:
    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy.clamp(-1, 1)

    return Clipped.apply


@pytest.mark.torch
@pytest.mark.parametrize("name", ["squares", "layer", "declared"])
def test_gradients_are_those_of_autograd_with_the_rule_inside(name: str) -> None:
    torch = pytest.importorskip("torch")
    clipped = _clipped(torch)
    plain = {
        "squares": lambda x: (clipped(x) ** 2).sum(-1),
        "layer": lambda x, w: clipped(x @ w.T).exp() * x[..., :1],
        "declared": lambda x: clipped((x * x).sum(-1)) * 3,
    }[name]
    torch.manual_seed(1)
    shapes = ((2, 3), (4, 3)) if name == "layer" else ((2, 3),)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    output = plain(*given)
    upstream = torch.randn_like(output)
    expected = torch.autograd.grad(output, given, upstream)
    rule = getattr(torch_module(RULES), name)
    found = torch.autograd.grad(rule(*given), given, upstream)
    assert all(torch.allclose(f, e) for f, e in zip(found, expected, strict=True))
    _, module, _ = emitted(RULES)
    _, pullback = getattr(module, f"{name}_vjp")(*(x.detach().numpy() for x in given))
    gradients = pullback(upstream.numpy())
    assert all(np.allclose(g, e) for g, e in zip(gradients, expected, strict=True))


def test_without_the_clipping_it_is_refuted() -> None:
    text = f"""{CLIPPED}
rule r(x[..., n]) -> y[...]:
    y = 3 * clipped(sum(x[i]**2 for i))
    dx[i] = 6 * x[i] * dy
"""
    (found,) = checked(text).diagnostics
    assert found.code == "GS401"
    assert "`dx[i] = 2 * clip(3 * dy, -1, 1) * x[i]`" in found.help
