"""`torch.fx.symbolic_trace` keeps a rule as one node, as a leaf of its graph."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

RULES = """
rule learned(x, a: param = 0.25) -> y:
    y = a * x**2
    override dx = 3 * dy * a * x because "a marker"

rule pair(x, y, k: static = 1.0) -> (z, w):
    z = k * x * y
    w = x**2
    override dx = 5 * dz * k * y + 7 * dw * x because "a marker"

rule picked(x[..., n], t[]: int) -> y[...]:
    y = x[t]**2
    override dx[i] = 3 * dy * x[i] if i == t else 0 because "a marker"
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _called(rules: ModuleType, x: Any) -> Any:
    pair = rules.pair(x, 2.0, k=1.5)
    return pair[0] + pair[1] + rules.picked(x, 1)


@pytest.mark.parametrize("compiled", [False, True])
def test_functions_of_a_module_are_leaves(rules: ModuleType, compiled: bool) -> None:
    traced = torch.fx.symbolic_trace(lambda x: _called(rules, x))
    targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert rules.pair in targets and rules.picked in targets
    run = torch.compile(traced, backend="aot_eager") if compiled else traced
    found, true = (_gradient(f) for f in (run, lambda x: _called(rules, x)))
    torch.testing.assert_close(found, true)


def _gradient(function: Any) -> Any:
    x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)[0]


def test_layers_are_traced(rules: ModuleType) -> None:
    layers = torch.nn.Sequential(torch.nn.Tanh(), rules.Learned(a=0.5))
    torch.testing.assert_close(
        _gradient(torch.fx.symbolic_trace(layers)), _gradient(layers)
    )


def test_a_rule_that_was_imported_by_its_name_says_what_to_do(
    rules: ModuleType,
) -> None:
    learned, pair = rules.learned, rules.pair
    for call in (lambda x: learned(x, x), lambda x: pair(x, 2.0)):
        with pytest.raises(TypeError, match=r"torch\.fx\.wrap"):
            torch.fx.symbolic_trace(call)
