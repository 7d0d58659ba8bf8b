"""What a `Function` keeps is differentiated as what it is: a function of the inputs.

A saved local is a constant to autograd, and an output a function whose derivative is the
declared one. A second derivative that went through either would be another number.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.targets.emission import torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
torch = pytest.importorskip("torch")

RULES = """
rule through_output(x) -> y:
    y = tanh(x)
    override dx = 3 * dy * (2 - y) because "a marker"

rule through_saved(x) -> y:
    save y
    y = sin(x) + x
    override dx = 3 * dy * y because "a marker"

rule through_rows(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i])
    y[i] = e[i] / sum(e[j] for j)
    override dx[i] = 3 * y[i] * (dy[i] - sum(dy[j] * y[j] for j)) because "a marker"

rule through_local(x[..., n], g[n]) -> y[..., n]:
    m = mean(x[j] for j)
    y[i] = (x[i] - m)**2 * g[i]

rule beside(x, k) -> (y, n: nograd):
    y = x**2 * k
    n = x + k
"""
X = torch.tensor([[0.3, -0.7, 1.2], [0.1, 0.8, -0.4]], dtype=torch.float64)
G = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64)
W = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]], dtype=torch.float64)


@pytest.fixture(scope="module")
def rules() -> dict[str, Any]:
    made = torch_module(RULES)
    return {
        "through_output": made.through_output,
        "through_saved": made.through_saved,
        "through_rows": made.through_rows,
        "through_local": lambda x: made.through_local(x, G),
        "beside": lambda x: made.beside(x, G)[0],
    }


NAMES = ("through_output", "through_saved", "through_rows", "through_local", "beside")


@pytest.mark.parametrize("name", NAMES)
def test_the_second_derivative_is_that_of_the_gradient_as_it_is_computed(
    rules: dict[str, Any], name: str
) -> None:
    """Difference quotients of the backward pass judge it."""
    x = X.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(rules[name], (x,), check_fwd_over_rev=True)


@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_over_a_backward_pass_of_which_no_graph_is_made(
    rules: dict[str, Any], name: str
) -> None:
    forward_ad = torch.autograd.forward_ad

    def gradient(x: Any, graph: bool) -> Any:
        total = (rules[name](x) * W).sum()
        return torch.autograd.grad(total, x, create_graph=graph)[0]

    leaf = X.clone().requires_grad_()
    (true,) = torch.autograd.grad(gradient(leaf, True), leaf, torch.ones_like(X))
    columns = []
    for unit in torch.eye(X.numel(), dtype=X.dtype):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(leaf, unit.reshape(X.shape))
            columns.append(forward_ad.unpack_dual(gradient(dual, False)).tangent.sum())
    assert torch.allclose(torch.stack(columns).reshape(X.shape), true)


@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_goes_through_a_batch(rules: dict[str, Any], name: str) -> None:
    """Within a batch of vmap autograd has to be told of the tensor inside what is kept."""
    jvp, vmap = torch.func.jvp, torch.func.vmap
    batch = torch.stack([X, 2 * X])
    made = jvp(vmap(vmap(rules[name])), (batch,), (batch,))[1]
    true = torch.stack([jvp(rules[name], (x,), (x,))[1] for x in batch])
    assert torch.allclose(made, true)


def test_what_is_kept_gets_no_zeros_for_a_gradient() -> None:
    """They would be made at every call, and nothing reads them; forward mode, in which
    one input may stand still, has them made."""
    rules = torch_module(RULES)
    x, g = torch.randn(4, 5).requires_grad_(), torch.randn(5).requires_grad_()
    class_ = rules._ThroughLocal
    given: list[Any] = []
    original = class_.backward

    def backward(ctx: Any, *upstream: Any) -> Any:
        given.extend(upstream)
        return original(ctx, *upstream)

    class_.backward = staticmethod(backward)
    try:
        rules.through_local(x, g).sum().backward()
    finally:
        class_.backward = original
    first, *others = given
    assert torch.equal(first, torch.ones(4, 5))
    assert others and all(other is None for other in others)
    _, tangent = torch.func.jvp(lambda g: rules.through_local(x, g), (g,), (g,))
    assert torch.allclose(tangent, rules.through_local(x, g))
