"""Half precision where an output is all that the backward pass needs: the input is kept
in its place, since the output was rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
torch = pytest.importorskip("torch")

RULES = """
rule power(x) -> y:
    y = exp2(x)
    dx = dy * y * log(2)

rule scaled(x, k: static = 2.0) -> y:
    y = exp(k * x)
    dx = dy * y * k
"""
TRUE: dict[str, Callable[[Any], Any]] = {
    "power": torch.exp2,
    "scaled": lambda x: torch.exp(2.0 * x),
}
HALF = (torch.float16, torch.bfloat16)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _points(dtype: Any) -> Any:
    return torch.linspace(-6.0, 16.5, 400).to(dtype)


def _slopes(function: Callable[[Any], Any], x: Any, order: int) -> Any:
    """By reverse mode, once or twice."""
    x = x.detach().requires_grad_()
    made = function(x)
    for _ in range(order):
        (made,) = torch.autograd.grad(made.sum(), x, create_graph=True)
    return made.detach()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", TRUE)
def test_a_gradient_is_rounded_once(
    rules: ModuleType, name: str, dtype: Any, order: int
) -> None:
    """Also where the output is infinite in float16, and the gradient is not."""
    x = _points(dtype)
    found = _slopes(getattr(rules, name), x, order)
    true = _slopes(TRUE[name], x.double(), order).to(dtype)
    assert found.dtype == dtype
    room = torch.finfo(dtype).eps
    torch.testing.assert_close(found, true, rtol=room, atol=0.0)


@pytest.mark.parametrize("name", TRUE)
def test_a_tangent_is_rounded_once(rules: ModuleType, name: str) -> None:
    x = _points(torch.float16)
    _, found = torch.func.jvp(getattr(rules, name), (x,), (torch.ones_like(x),))
    true = _slopes(TRUE[name], x.double(), 1).half()
    torch.testing.assert_close(found, true, rtol=torch.finfo(x.dtype).eps, atol=0.0)


def test_what_is_wider_keeps_the_output_alone(rules: ModuleType) -> None:
    for dtype, kept in ((torch.float32, "output"), (torch.float16, "input")):
        x = _points(dtype).requires_grad_()
        y = rules.power(x)
        (saved,) = y.grad_fn.saved_tensors
        assert saved.data_ptr() == {"output": y, "input": x}[kept].data_ptr()
