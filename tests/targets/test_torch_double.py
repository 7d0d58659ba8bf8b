"""On a CPU narrow tensors take float64 where that is cheaper: right to the last place, and
with all derivatives of the other way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.targets.double_rules import GATED, GELU
from tests.targets.emission import torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")

RULES = f"""{GATED}{GELU}
rule share(x) -> y:
    y = (1 + erf(x / sqrt(2))) / 2
"""
NAMES = ("silu", "swish", "mish", "gelu")
ZEROS = {
    "silu": -1.2784645,
    "swish": -1.2784645,
    "mish": -1.1924312,
    "gelu": -0.7517916,
}


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    yield torch_module(RULES)


def _slope(function: Any, x: Any) -> Any:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


def _points(name: str, dtype: Any) -> Any:
    near = ZEROS[name] + torch.linspace(-1e-3, 1e-3, 201)
    parts = [torch.linspace(-12.0, 12.0, 481), torch.linspace(-80.0, 90.0, 171), near]
    return torch.cat(parts).to(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_one_rounding_of_what_float64_gives(
    rules: ModuleType, name: str, dtype: Any
) -> None:
    function, x = getattr(rules, name), _points(name, dtype)
    got, true = _slope(function, x), _slope(function, x.double())
    rounded = true.to(dtype)
    least = torch.finfo(dtype).tiny
    unit = rounded.abs().clamp(min=least) * torch.finfo(dtype).eps
    assert got.dtype == dtype
    assert bool(((got - rounded).abs() <= unit).all())


@pytest.mark.parametrize("size", (3, 3000, 50_000))
@pytest.mark.parametrize("name", NAMES)
def test_inputs_and_upstream_gradients_are_left_as_they_are(
    rules: ModuleType, name: str, size: int
) -> None:
    """Copies of them are computed in, however long they are."""
    x = torch.linspace(-9.0, 9.0, size)
    leaf, dy = x.clone().requires_grad_(), torch.cos(x)
    y = getattr(rules, name)(leaf)
    first, second = (
        torch.autograd.grad(y, leaf, dy, retain_graph=True)[0] for _ in range(2)
    )
    assert torch.equal(first, second)
    assert torch.equal(leaf, x)
    assert torch.equal(dy, torch.cos(x))


@pytest.mark.parametrize("name", NAMES)
def test_the_class_in_double_is_taken_by_narrow_tensors_alone(
    rules: ModuleType, name: str
) -> None:
    function = getattr(rules, name)
    x = torch.ones(3, requires_grad=True)
    assert "InDouble" in type(function(x).grad_fn).__name__
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert "InDouble" not in type(function(x).grad_fn).__name__


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recorded_is_differentiated_as_in_float64(
    rules: ModuleType, name: str
) -> None:
    function = getattr(rules, name)
    x = torch.linspace(-3.0, 3.0, 25)

    def second(x: Any) -> Any:
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0]

    assert torch.allclose(second(x), second(x.double()).float(), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_transforms_and_forward_mode_go_on_working(
    rules: ModuleType, name: str
) -> None:
    function = getattr(rules, name)
    x = torch.linspace(-3.0, 3.0, 9)
    slope = _slope(function, x)
    _, moved = torch.func.jvp(function, (x,), (torch.ones_like(x),))
    mapped = torch.func.vmap(torch.func.grad(lambda v: function(v)))(x)
    assert torch.allclose(moved, slope, atol=1e-6)
    assert torch.allclose(mapped, slope, atol=1e-6)
    leaf = x.clone().requires_grad_()
    batch = torch.eye(9)
    (rows,) = torch.autograd.grad(function(leaf), leaf, batch, is_grads_batched=True)
    assert torch.allclose(rows.diagonal(), slope, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_at_infinities_the_limits(rules: ModuleType, name: str) -> None:
    x = torch.tensor([-torch.inf, torch.inf])
    assert _slope(getattr(rules, name), x).tolist() == [0.0, 1.0]


def test_several_inputs_that_broadcast(rules: ModuleType) -> None:
    a, b = torch.randn(3, 4), torch.randn(4)

    def slopes(a: Any, b: Any) -> Any:
        leaves = [v.detach().requires_grad_() for v in (a, b)]
        return torch.autograd.grad(rules.both(*leaves).sum(), leaves)

    for got, true in zip(slopes(a, b), slopes(a.double(), b.double()), strict=True):
        assert got.shape == true.shape
        assert torch.allclose(got, true.float(), atol=1e-6)


def test_a_tracer_sees_the_narrow_way(rules: ModuleType) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.linspace(-3.0, 3.0, 9)
    graph = make_fx(lambda v: _slope(rules.silu, v))(x)
    assert "float64" not in graph.code


@pytest.mark.parametrize(("count", "is_double"), [(4096, True), (4097, False)])
def test_a_value_that_is_cheaper_by_calls_alone_is_so_for_few(
    rules: ModuleType, count: int, is_double: bool
) -> None:
    x = torch.linspace(-6.0, 6.0, count)
    narrow = rules._Share.forward(x)
    wide = rules.share(x.double()).float()
    assert not torch.equal(narrow, wide)
    assert torch.equal(rules.share(x), wide if is_double else narrow)


@pytest.mark.parametrize("least", [-5.0, -12.5, float("nan")])
@pytest.mark.parametrize("count", [3, 5000])
def test_gelu_has_all_digits_with_and_without_its_tail(
    rules: ModuleType, least: float, count: int
) -> None:
    """torch's own function, where it is right; a NaN beside a tail hides nothing."""
    x = torch.cat([torch.linspace(-12.5, 3.0, count).clamp(min=least), torch.ones(1)])
    if math.isnan(least):
        x = torch.cat([torch.linspace(-12.5, 3.0, count), torch.tensor([least])])
    for got, true in (
        (rules.gelu(x), rules.gelu(x.double()).float()),
        (_slope(rules.gelu, x), _slope(rules.gelu, x.double()).float()),
    ):
        assert torch.allclose(got, true, rtol=2e-7, atol=0.0, equal_nan=True)


def test_gelu_of_nothing_is_nothing(rules: ModuleType) -> None:
    x = torch.ones(0, requires_grad=True)
    rules.gelu(x).sum().backward()
    assert x.grad is not None and x.grad.shape == (0,)


@pytest.mark.parametrize("x", [0.0, -100.0, 700.0, -torch.inf, torch.inf])
def test_a_logistic_in_one_call_is_the_quotient(rules: ModuleType, x: float) -> None:
    """`dy / (1 + exp(b - a))`, the float64 form of the gradient: `dy * sigmoid(a - b)`."""
    a = torch.tensor([x], requires_grad=True)
    b = torch.tensor([0.5], requires_grad=True)
    one, other = torch.autograd.grad(rules.both(a, b), (a, b))
    difference = a.detach().double() - b.detach().double()
    assert torch.equal(one, (1.0 / (1.0 + torch.exp(-difference))).float())
    assert torch.equal(other, (1.0 / (1.0 + torch.exp(difference))).float())


def test_the_logistic_is_one_call() -> None:
    from gradspec.targets import torch as target
    from tests.targets.emission import planned

    text = target.module(planned(RULES))
    body = text[text.index("class _BothInDouble") : text.index("def both(")]
    assert "_logistic_shares(" in body and "torch.exp(" not in body


_UNIT = torch.finfo(torch.float32).eps


@pytest.mark.parametrize(("shift", "units"), [(0.0, 3.5), (500.0, 1.0), (-500.0, 1.0)])
@pytest.mark.parametrize("far", [6.0, 60.0, 79.0])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_both_shares_of_many_have_all_digits(
    rules: ModuleType, far: float, wanted: tuple[bool, bool], shift: float, units: float
) -> None:
    """Two exponentials over their sum, where both have all digits in float32; one of the
    difference in float64 where one of them could overflow or vanish."""
    u = torch.linspace(-far, far, 5001)
    a, b = (torch.full((5001,), shift).requires_grad_(w) for w in wanted)
    a.data += u
    leaves = [v for v in (a, b) if v.requires_grad]
    got = torch.autograd.grad(rules.both(a, b).sum(), leaves)
    exact = a.detach().double() - b.detach().double()
    true = [torch.sigmoid(s * exact).float() for s in (1.0, -1.0)]
    kept = [v for v, is_wanted in zip(true, wanted, strict=True) if is_wanted]
    for share, expected in zip(got, kept, strict=True):
        assert share.dtype is torch.float32
        torch.testing.assert_close(share, expected, rtol=units * _UNIT, atol=1e-45)


@pytest.mark.parametrize("end", [-torch.inf, torch.inf, torch.nan, 88.0, -88.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shares_of_many_are_right_beside_an_end(
    rules: ModuleType, end: float, dtype: Any
) -> None:
    """One element that has no exponential in float32 sends all to float64."""
    a = torch.linspace(-90.0, 90.0, 5000).to(dtype)
    b = torch.zeros_like(a)
    a[7], b[8] = end, end
    leaves = [v.requires_grad_() for v in (a, b)]
    got = torch.autograd.grad(rules.both(a, b).sum(), leaves)
    u = a.detach().double() - b.detach().double()
    for share, sign in zip(got, (1.0, -1.0), strict=True):
        true = torch.sigmoid(sign * u).to(dtype)
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(share, true, rtol=eps, atol=1e-45, equal_nan=True)


SHARED = (
    *((-60.0, -58.0), (50.0, 45.0), (0.0, 0.0), (-86.0, 88.0), (-87.0, -87.0)),
    *((1.0, -110.0), (-100.0, -100.3), (88.5, 88.4), (89.0, 3.0), (200.0, 199.0)),
)


@pytest.mark.parametrize("places", SHARED)
@pytest.mark.parametrize("count", [1, 7, 5000])
def test_shares_of_few_and_many_go_the_same_ways(
    rules: ModuleType, places: tuple[float, float], count: int
) -> None:
    """By exponentials that are normal numbers, and by the difference in float64 where one
    is denormal, 0 or infinite, or their sum is."""
    a, b = (torch.full((count,), place).requires_grad_() for place in places)
    got = torch.autograd.grad(rules.both(a, b).sum(), (a, b))
    u = a.detach().double() - b.detach().double()
    for share, true in zip(got, (torch.sigmoid(u), torch.sigmoid(-u)), strict=True):
        torch.testing.assert_close(share.double(), true, rtol=3 * _UNIT, atol=2e-45)


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_shares_take_exponentials_where_they_can(rules: ModuleType, count: int) -> None:
    for place, is_single in ((-60.0, True), (-100.0, False)):
        a, b = (torch.full((count,), place + k).requires_grad_() for k in (0.0, 1.0))
        y = rules.both(a, b)
        with torch.autograd.profiler.profile() as seen:
            torch.autograd.grad(y.sum(), (a, b))
        names = {event.name for event in seen.function_events}
        assert ("aten::sigmoid" not in names) == is_single
        assert "aten::exp" in names


def test_a_forward_pass_of_silu_leaves_its_argument_alone(rules: ModuleType) -> None:
    """It computes in the memory of what is bounded, which is no view of the argument."""
    x = torch.linspace(-9.0, 9.0, 31)
    before = x.clone()
    rules.silu(x.requires_grad_())
    assert torch.equal(x.detach(), before)
    assert rules.silu(torch.tensor([-torch.inf])).item() == 0.0


@pytest.mark.parametrize("count", [7, 5000])
@pytest.mark.parametrize("name", [*NAMES, "both"])
def test_upstream_gradients_in_batches(
    rules: ModuleType, name: str, count: int
) -> None:
    function, inputs = getattr(rules, name), 2 if name == "both" else 1
    leaves = [torch.randn(count).requires_grad_() for _ in range(inputs)]
    upstream = torch.tensor([[1.0], [-2.0]]).expand(2, count)
    batch = torch.autograd.grad(
        function(*leaves), leaves, upstream, is_grads_batched=True
    )
    single = torch.autograd.grad(function(*leaves), leaves, upstream[0])
    for rows, row in zip(batch, single, strict=True):
        torch.testing.assert_close(rows, torch.stack((row, -2.0 * row)))


def test_mish_of_many_is_mish(rules: ModuleType) -> None:
    x = torch.cat([torch.linspace(-100.0, 100.0, 9000), -torch.logspace(-30, 1, 900)])
    ends = torch.tensor([-torch.inf, torch.inf, torch.nan, -0.0, 3e38])
    x = torch.cat([x, ends])
    true = rules.mish(x.double()).float()
    torch.testing.assert_close(
        rules.mish(x), true, rtol=5e-7, atol=1e-38, equal_nan=True
    )
    half = rules.mish(x.bfloat16())
    assert half.dtype is torch.bfloat16
    assert torch.equal(half[:9900], rules.mish(x.bfloat16()[:9900].float()).bfloat16())
