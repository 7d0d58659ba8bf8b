"""A choice by a comparison in torch: what `torch.where` gives, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULES = """
rule weighted(x, t: nograd, w: static = 0.25) -> y:
    y = (w if t > 0 else 1 - w) * x**2

rule larger(x, t) -> y:
    y = x**2 if x <= t else t**3
"""
MANY = 8200
"""Fewer are chosen by torch itself."""


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    yield torch_module(RULES)


def _values(dtype: Any) -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(1)
    a, b = (torch.randn(MANY, generator=made).to(dtype) for _ in range(2))
    b[:4000:3] = a[:4000:3]
    ends = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0], dtype=dtype)
    a[:5], b[5:10], a[10:15], b[10:15] = ends, ends, ends, ends
    return a, b


_NUMBERS = [
    (0.25, 0.75),
    (1.0, 0.0),
    (1.0, -0.0),
    (-0.0, 1.0),
    (0.1, 1e8),
    (1e-8, 1.0),
    (math.inf, 1.0),
    (2.0, -math.inf),
    (3e38, -3e38),
]
"""Of some the difference is exact, and added to the second gives the first; of others not."""


def _bits(x: Any) -> Any:
    return x.view(torch.int64 if x.dtype is torch.float64 else torch.int32)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_comparison_chooses_as_torch_does(
    rules: ModuleType, name: str, dtype: Any
) -> None:
    a, b = _values(dtype)
    compare = getattr(torch, name)
    x, y = (v.double().to(torch.float32) for v in (b, a))
    for right in (b, 0.0, b[:1], b.double()):
        numbers = [(x.new_full((), v), w) for v, w in _NUMBERS]
        for one, other in ((x, y), (x, -0.0), *numbers):
            true = torch.where(compare(a, right), one, other)
            with torch.no_grad():
                got = rules._choice(compare, a, right, one, other)
            assert got.dtype == true.dtype
            assert torch.equal(_bits(got), _bits(true))


def test_branches_of_two_types_have_the_wider_one(rules: ModuleType) -> None:
    a, b = _values(torch.float32)
    with torch.no_grad():
        got = rules._choice(torch.gt, a, 0.0, a, b.double())
    assert torch.equal(got.nan_to_num(), torch.where(a > 0, a, b.double()).nan_to_num())


@pytest.mark.parametrize("name", ["weighted", "larger"])
def test_many_are_chosen_as_few_are(rules: ModuleType, name: str) -> None:
    """With gradients, and as a transform sees it."""
    function = getattr(rules, name)
    x, t = _values(torch.float32)

    def slope(x: Any, t: Any) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x, t).sum(), x)[0]

    parts = [*zip(x.split(1000), t.split(1000), strict=True)]
    value = torch.cat([function(*part) for part in parts])
    slopes = torch.cat([slope(*part) for part in parts])
    assert torch.equal(function(x, t).nan_to_num(), value.nan_to_num())
    assert torch.equal(slope(x, t).nan_to_num(), slopes.nan_to_num())
    mapped = torch.func.vmap(function)(x.view(2, -1), t.view(2, -1)).flatten()
    assert torch.equal(mapped.nan_to_num(), value.nan_to_num())


def test_a_comparison_is_part_of_the_choice() -> None:
    from gradspec.targets import torch as target
    from tests.targets.emission import planned

    text = target.module(planned(RULES))
    assert "_choice(torch.gt, t, 0.0, " in text
    assert "_choice(torch.le, x, t, " in text
