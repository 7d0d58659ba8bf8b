"""Nested tensors (`torch.jagged`): what is constant in a rule is made as they can be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")

RULES = """
rule one(x) -> y:
    y = 1 + 0 * x

rule fixed(x, a: static = 2.5) -> y:
    y = a

rule step(x) -> y:
    y = 2 if x > 0 else 5
    surrogate y = x

rule spike(x, k: static = 25.0) -> y:
    y = 1 if x > 0 else 0
    surrogate y = x / (1 + k * abs(x))

rule stopped(x) -> y:
    y = x
    override dx = 0 because "a stop"

rule halved(x) -> y:
    y = x**2
    override dx = 0.5 because "a constant"

rule distance(x) -> y:
    y = sqrt(1 + x**2)

rule pair(x, t) -> (y, w):
    y = x * t
    w = 2

rule counts(x) -> (y, n: int, b: bool):
    y = x**2
    n = 3
    b = 2 > 1
"""
PAIRS = ("pair",)
ONES = ("one", "fixed", "step", "spike", "stopped", "halved", "distance", "counts")


def _results(rule: str, *tensors: Any) -> tuple[Any, ...]:
    """What the rule gives, and the gradients of its first output."""
    found = getattr(torch_module(RULES), rule)(*tensors)
    outputs = found if isinstance(found, tuple) else (found,)
    first = outputs[0]
    gradients = torch.autograd.grad(first, tensors, torch.ones_like(first))
    return *outputs, *gradients


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16))
@pytest.mark.parametrize("rule", (*ONES, *PAIRS))
def test_as_of_its_values(rule: str, dtype: Any) -> None:
    count = 2 if rule in PAIRS else 1
    values = [torch.linspace(-1, k, 6, dtype=dtype).reshape(6, 1) for k in (1, 2)][
        :count
    ]
    offsets = torch.tensor([0, 2, 6])
    nested = [torch.nested.nested_tensor_from_jagged(v, offsets) for v in values]
    found = _results(rule, *(x.requires_grad_() for x in nested))
    wanted = _results(rule, *(v.requires_grad_() for v in values))
    for one, other in zip(found, wanted, strict=True):
        assert one.is_nested and one.shape == nested[0].shape
        assert one.dtype == other.dtype and torch.equal(one.values(), other)


def test_constants_of_tensors_that_broadcast() -> None:
    x, t = torch.ones(3, 1), torch.ones(4, dtype=torch.float64)
    _, w = torch_module(RULES).pair(x, t)
    assert w.dtype == torch.float64 and w.tolist() == [[2.0] * 4] * 3
    assert w.is_contiguous()
