"""`clip` between tensors in a gradient that is differentiated again.

`torch.clamp` with two tensor bounds of which the upper has more axes than all else is an
error there; a forward pass, which torch does not record, may have it.
"""

from __future__ import annotations

import pytest

from tests.targets.emission import torch_module, torch_text

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULES = """
rule within(x, low, high) -> y:
    y = x
    override dx = dy * clip(x, low, high) because "a marker"

rule below(x, high) -> y:
    y = x
    override dx = dy * clip(x, -1, high) because "a marker"

rule above(x, low) -> y:
    y = x
    override dx = dy * clip(x, low, 1) because "a marker"

rule number(low, high) -> y:
    y = low + high
    override dlow = dy * low * clip(1 / 4, low, high) because "a marker"

rule numbers(high) -> y:
    y = high
    override dhigh = dy * high * clip(1 / 4, -1, high) because "a marker"

rule forwards(x, low, high) -> y:
    y = clip(x, low, high)
"""
X, LOW = torch.tensor([-2.0, 0.1, 3.0]), torch.tensor(-0.5)
HIGH = torch.tensor([[0.5, 0.7, 0.9], [-1.5, 0.05, 4.0]])

CASES = {
    "within": ((X, LOW, HIGH), lambda x, low, high: x.maximum(low).minimum(high)),
    "below": ((X, HIGH), lambda x, high: x.clamp_min(-1).minimum(high)),
    "above": ((X, HIGH), lambda x, low: x.maximum(low).clamp_max(1)),
    "number": (
        (LOW, HIGH),
        lambda low, high: low * low.clamp_min(0.25).minimum(high),
    ),
    "numbers": ((HIGH,), lambda high: high * high.clamp_max(0.25)),
}


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_where_a_bound_has_more_axes(name: str) -> None:
    values, slope = CASES[name]
    args = [value.double().requires_grad_() for value in values]
    (gradient,) = torch.autograd.grad(
        getattr(torch_module(RULES), name)(*args).sum(), args[0], create_graph=True
    )
    whole = slope(*args)
    wanted = whole.sum_to_size(args[0].shape)
    torch.testing.assert_close(gradient, wanted, rtol=1e-14, atol=0)
    second = torch.autograd.grad(gradient.sin().sum(), args)
    expected = torch.autograd.grad(wanted.sin().sum(), args)
    for found, want in zip(second, expected, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-14, atol=0)


def test_a_forward_pass_is_one_operation() -> None:
    assert "return torch.clamp(x, low, high)" in torch_text(RULES)
