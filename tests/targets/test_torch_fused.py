"""What torch has one function for is one call, with the values of the calls it replaces."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.targets.emission import torch_module, torch_text

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
torch = pytest.importorskip("torch")

SMOOTH = """\
rule smooth(x, beta: static = 1.0) -> y:
    assume beta > 0
    y = log(1 + exp(beta * x)) / beta
"""
ROOT = """\
rule inverse_root(x) -> y:
    assume x > 0
    y = 1 / sqrt(x)
"""
CHOICE = """\
rule leaky(x, y, slope: static = 0.125) -> z:
    z = x * y if x > y else slope * x
    surrogate z = x * y
"""


def test_a_softplus_with_a_rate_is_one_call_in_each_pass() -> None:
    text = torch_text(SMOOTH)
    assert "softplus(x, beta, 40.0)" in text
    assert "dx = torch.ops.aten.softplus_backward(dy, x, beta, 40.0)" in text


@pytest.mark.parametrize("beta", [1.0, 0.25, 8.0])
def test_a_softplus_with_a_rate_has_its_derivatives(beta: float) -> None:
    x = torch.linspace(-90.0, 90.0, 37, dtype=torch.float64).requires_grad_()
    smooth = torch_module(SMOOTH).smooth
    (slope,) = torch.autograd.grad(smooth(x, beta=beta).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    s = torch.sigmoid(beta * x.detach())
    torch.testing.assert_close(slope, s, rtol=1e-14, atol=1e-300)
    expected = beta * s * torch.sigmoid(-beta * x.detach())
    torch.testing.assert_close(second, expected, rtol=1e-9, atol=1e-15)


def test_reciprocals_are_calls() -> None:
    assert "torch.rsqrt(x)" in torch_text(ROOT)
    assert "torch.reciprocal(x)" in torch_text("rule over(x) -> y:\n    y = 1 / x\n")


@pytest.fixture(scope="module")
def choice() -> ModuleType:
    return torch_module(CHOICE)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_a_choice_of_a_large_tensor_has_the_bits_of_where(
    choice: ModuleType, dtype: str
) -> None:
    values = torch.tensor([0.0, -0.0, 1.5, torch.inf, -torch.inf, torch.nan])
    x = values.repeat(2000).nan_to_num(nan=7.0 if dtype == "int64" else torch.nan)
    x = x.clamp(-1e4, 1e4).to(getattr(torch, dtype))
    y = x.flip(0)
    condition = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    with torch.no_grad():
        chosen = choice._where(condition, x, y)
    expected = torch.where(condition, x, y)
    assert chosen.dtype == expected.dtype
    assert chosen.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize(
    ("condition", "x", "y"),
    [((4, 3000), (3000,), ()), ((3000,), (4, 3000), (4, 1)), ((12000,), (), (12000,))],
)
def test_a_choice_broadcasts(
    choice: ModuleType,
    condition: tuple[int, ...],
    x: tuple[int, ...],
    y: tuple[int, ...],
) -> None:
    where, one, other = torch.rand(condition) < 0.5, torch.rand(x), torch.rand(y)
    with torch.no_grad():
        chosen = choice._where(where, one, other)
        number = choice._where(where, 0.25, one)
    assert torch.equal(chosen, torch.where(where, one, other))
    assert torch.equal(number, torch.where(where, 0.25, one))


def test_a_choice_keeps_its_tangents(choice: ModuleType) -> None:
    x = torch.randn(9000)
    forward_ad = torch.autograd.forward_ad
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        chosen = choice._where(x > 0, dual, -dual)
        tangent = forward_ad.unpack_dual(chosen).tangent
    assert torch.equal(tangent, torch.where(x > 0, 1.0, -1.0))
