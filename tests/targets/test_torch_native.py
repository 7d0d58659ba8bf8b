"""Where torch differentiates the forward pass as the rule says, an eager call is torch's own
function; every other rule keeps its `Function`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
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
rule softplus(x, beta: static = 1.0) -> y:
    assume beta > 0
    y = log(1 + exp(beta * x)) / beta

rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule log_sum_exp(x[..., n]) -> y:
    y = log(sum(exp(x[j]) for j))
    dx[i] = dy * exp(x[i] - y)

rule named(type, x) -> y:
    y = type * x

rule tripled(x) -> y:
    y = log(1 + exp(x))
    override dx = 3 * dy * sigmoid(x) because "a marker"
"""
NATIVE = ("softplus", "softmax", "log_sum_exp")


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    yield torch_module(RULES)


def _node(function: Any, dtype: Any) -> str:
    return type(
        function(torch.ones(2, 3, dtype=dtype).requires_grad_()).grad_fn
    ).__name__


@pytest.mark.parametrize("name", NATIVE)
def test_a_plain_call_is_the_function_of_torch(rules: ModuleType, name: str) -> None:
    function = getattr(rules, name)
    for dtype in (torch.float32, torch.float64):
        assert (
            _node(function, dtype)
            .lower()
            .startswith(("softplus", "softmax", "logsumexp"))
        )
    # half precision keeps its narrow arguments, and nothing wider
    assert _node(function, torch.bfloat16).startswith("_")


def test_another_gradient_is_kept(rules: ModuleType) -> None:
    x = torch.zeros(3, requires_grad=True)
    rules.tripled(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.5, 1.5, 1.5]


@pytest.mark.parametrize("name", NATIVE)
def test_it_is_the_gradient_of_the_rule(rules: ModuleType, name: str) -> None:
    function, x = getattr(rules, name), 4.0 * torch.randn(5, 7)
    own = getattr(rules, "_" + "".join(p.capitalize() for p in name.split("_")))
    further = (1.0,) if name == "softplus" else ()
    upstream = torch.randn_like(function(x))

    def slope(way: Any) -> Any:
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(way(leaf), leaf, upstream)[0]

    got, true = slope(function), slope(lambda v: own.apply(v, *further))
    assert torch.allclose(got, true, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NATIVE)
def test_transforms_and_compilers_have_their_own_way(
    rules: ModuleType, name: str
) -> None:
    function, x = getattr(rules, name), torch.randn(4, 3)
    direction = torch.randn(4, 3)
    value, moved = torch.func.jvp(function, (x,), (direction,))
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(function(leaf).sum(), leaf)
    assert torch.allclose(moved.sum(), (slope * direction).sum(), atol=1e-5)
    assert torch.equal(torch.func.vmap(function)(x), value)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, direction)
        tangent = torch.autograd.forward_ad.unpack_dual(function(dual)).tangent
    assert torch.allclose(tangent, moved, atol=1e-6)


def test_an_argument_may_be_named_like_a_function_of_python(rules: ModuleType) -> None:
    assert rules.named(type=torch.tensor(2.0), x=torch.tensor(3.0)).item() == 6.0
