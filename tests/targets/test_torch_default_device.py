"""A default device is for tensors that are made, not for those that are given.

Integers and booleans, too, stay where they are; a tensor on another device than the floating
ones would be an error, or lose its elements.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULES = """
rule masked(x, w: nograd, on: bool, n: int) -> (y, k: int):
    y = x**3 * w if on else x * n
    k = n + 1

rule picked(x[..., n], k: int) -> y[...]:
    y = x[k]**2

rule kept(x[..., n], on[..., n]: bool) -> y[...]:
    y = sum(x[i] for i if on[i])
"""
X = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]])
N = torch.tensor([1, 2, 3])
ON = torch.tensor([[True, False, True], [False, False, True]])
K = torch.tensor([2, 0])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


ARGUMENTS = {"masked": (X + 1, ON, N), "picked": (K,), "kept": (ON,)}
"""What comes beside ``X``."""


def _results(rules: ModuleType, name: str) -> list[Any]:
    """Outputs, and the gradient of the first."""
    x = X.clone().requires_grad_()
    made = getattr(rules, name)(x, *ARGUMENTS[name])
    outputs = list(made) if isinstance(made, tuple) else [made]
    return [*outputs, *torch.autograd.grad(outputs[0].sum(), x)]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_given_stays_where_it_is(rules: ModuleType, name: str) -> None:
    want = _results(rules, name)
    with torch.device("meta"):
        found = _results(rules, name)
    assert {tensor.device.type for tensor in found} == {"cpu"}
    for got, true in zip(found, want, strict=True):
        torch.testing.assert_close(got, true)


def test_what_is_all_on_the_default_device(rules: ModuleType) -> None:
    """Shapes and types without elements, of numbers that are no tensors, too."""
    with torch.device("meta"):
        y, k = rules.masked(torch.empty(2, 3), 1.5, True, 2)
    assert y.device.type == k.device.type == "meta"
    assert y.shape == (2, 3)
