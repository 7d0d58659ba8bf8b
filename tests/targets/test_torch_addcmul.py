"""A product added to something is one call where nothing compiles, and rounds once."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.targets.emission import torch_module, torch_text

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
torch = pytest.importorskip("torch")

LINE = "rule line(a, x, b) -> y:\n    y = a * x + b\n"
AREA = "rule area(a, b, c, d) -> y:\n    y = a * b - c * d\n"
PAIR = """\
rule pair(x, y) -> (z, w):
    z = x * y
    w = y**2
    dx = dz * y
    dy = dz * x + dw * 2 * y
"""


@pytest.fixture(scope="module")
def line() -> ModuleType:
    return torch_module(LINE)


def test_a_product_and_a_sum_round_once(line: ModuleType) -> None:
    eps = 2.0**-23
    x = torch.tensor([1.0 + eps])
    # where the processor fuses products, what the rounded one lacks
    kept = line.line(x, x, -(x * x))
    assert kept.item() == torch.addcmul(-(x * x), x, x).item()


def test_two_products_that_cancel_leave_nothing() -> None:
    assert "_add_product(" not in torch_text(AREA)
    x = torch.tensor([1.0 + 2.0**-23])
    assert torch_module(AREA).area(x, x, x, x).item() == 0.0


def test_a_compiler_gets_single_operations(line: ModuleType) -> None:
    traced = torch.fx.experimental.proxy_tensor.make_fx(line.line)(
        *(torch.ones(2) for _ in range(3))
    )
    called = [str(node.target) for node in traced.graph.nodes]
    assert "aten.add.Tensor" in called
    assert "aten.addcmul.default" not in called


def test_subclasses_get_single_operations(line: ModuleType) -> None:
    rows = [torch.ones(2), torch.ones(3)]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    made = line.line(nested, nested, nested)
    (found,) = torch.autograd.grad(made.values().sum(), nested)
    torch.testing.assert_close(found.values(), torch.full((5,), 3.0))


def test_gradients_of_two_outputs_are_added_where_both_are_there() -> None:
    pair = torch_module(PAIR).pair
    x, y = (torch.tensor([v], requires_grad=True) for v in (3.0, 5.0))
    z, w = pair(x, y)
    both = torch.autograd.grad([z, w], y, [torch.ones(1)] * 2, retain_graph=True)
    (one,) = torch.autograd.grad(w, y)
    assert both[0].item() == 13.0
    assert one.item() == 10.0


def test_large_results_have_the_values_of_small_ones() -> None:
    smooth = torch_module("rule smooth(x) -> y:\n    y = log(1 + exp(x))\n").smooth
    x = torch.linspace(-20.0, 20.0, 1 << 23).requires_grad_()
    y = smooth(x)
    y.backward(torch.ones(()).expand(y.shape))
    some = torch.arange(0, x.numel(), 65537)
    near = x.detach()[some].requires_grad_()
    smooth(near).sum().backward()
    torch.testing.assert_close(y.detach()[some], smooth(near).detach())
    torch.testing.assert_close(x.grad[some], near.grad)
