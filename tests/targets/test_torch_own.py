"""PyTorch modules: numbers, conditions, half precision, clips; devices, subclasses, graphs."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import RULES, torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

OWN = """
rule choice(x, t: bool, g: static = 2.0) -> y:
    y = (1 / (1 + exp(x if t else -x)))**g

rule self_power(x) -> z:
    assume x > 0
    z = x**x

rule large(x) -> y:
    y = x * logaddexp(0, 1e30)

rule guarded_log(x, k: static = 0.0) -> y:
    y = x * log(k) if k > 0 else x

rule huber(x, beta: static = 0.0) -> y:
    y = x**2 / (2 * beta) if abs(x) < beta else abs(x)

rule halves(x[n]) -> y[n]:
    h = floor(n / 2)
    y[i] = x[i + h] if i < h else x[i - h]

rule builtins(float, tuple, len: static = 2.0) -> y:
    y = float * tuple + len

rule norms(x[n], w[k]: nograd, m: static int) -> y[m]:
    y[i] = sqrt(sum(x[i + j]**2 * w[j] for j))

rule peaks(x[n], w[k]: nograd, m: static int) -> y[m]:
    y[i] = max(x[i + j] + w[j] for j)

rule exp2_of(x) -> y:
    y = exp2(x)
    dx = dy * y * log(2)

rule scaled_exp(x, k: static = 2.0) -> y:
    y = exp(k * x)
    dx = dy * y * k

rule within(x, low, high) -> y:
    y = x
    override dx = dy * clip(x, low, high) because "a marker"

rule below(x, high) -> y:
    y = x
    override dx = dy * clip(x, -1, high) because "a marker"

rule above(x, low) -> y:
    y = x
    override dx = dy * clip(x, low, 1) because "a marker"

rule number(low, high) -> y:
    y = low + high
    override dlow = dy * low * clip(1 / 4, low, high) because "a marker"

rule numbers(high) -> y:
    y = high
    override dhigh = dy * high * clip(1 / 4, -1, high) because "a marker"

rule masked(x, w: nograd, on: bool, n: int) -> (y, k: int):
    y = x**3 * w if on else x * n
    k = n + 1

rule pair(x, t) -> (y, w):
    y = x * t
    w = 2

rule counted(x) -> (y, n: int, b: bool):
    y = x**2
    n = 3
    b = 2 > 1
"""
X, W = torch.arange(1.0, 6.0), torch.tensor([1.0, 2.0])
GRADIENTS: dict[str, tuple[Any, Callable[[ModuleType, Any], Any], list[float]]] = {
    "choice": (W, lambda m, x: m.choice(x, x < 2), [-0.10575, 0.18496]),
    "self_power": (W, lambda m, x: m.self_power(x), [1.0, 6.77259]),
    "large": (W, lambda m, x: m.large(x), [1e30, 1e30]),
    "guarded_log": (W, lambda m, x: m.guarded_log(x), [1.0, 1.0]),
    "guarded_log, 2": (W, lambda m, x: m.guarded_log(x, k=2), [0.69315, 0.69315]),
    "huber": (W, lambda m, x: m.huber(x), [1.0, 1.0]),
    "huber, 1.5": (W, lambda m, x: m.huber(x, beta=1.5), [0.66667, 1.0]),
    "halves": (X, lambda m, x: m.halves(x), [1.0, 1.0, 2.0, 1.0, 0.0]),
    "builtins": (W, lambda m, x: m.builtins(x, tuple=x, len=3), [2.0, 4.0]),
    "norms": (
        X[:4],
        lambda m, x: m.norms(x, W, m=3),
        [0.33333, 1.7597, 1.7477, 1.2494],
    ),
    "peaks": (X[:4], lambda m, x: m.peaks(x, W, m=3), [0.0, 1.0, 1.0, 1.0]),
}


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return torch_module(OWN)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_with_numbers_conditions_and_windows(
    own: ModuleType, name: str
) -> None:
    x, function, wanted = GRADIENTS[name]
    x = x.clone().requires_grad_()
    function(own, x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor(wanted), rtol=1e-4, atol=1e-6)


BY_OUTPUT = {"exp2_of": torch.exp2, "scaled_exp": lambda x: torch.exp(2.0 * x)}
"""Gradients in terms of the output, which has been rounded: from half an input is kept."""


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BY_OUTPUT)
def test_half_gradients_by_the_output_are_rounded_once(
    own: ModuleType, name: str, dtype: Any, order: int
) -> None:
    """Also where the output is infinite in float16, and the gradient is not."""
    points = torch.linspace(-6.0, 16.5, 400).to(dtype)
    found = []
    for function, x in (
        (getattr(own, name), points),
        (BY_OUTPUT[name], points.double()),
    ):
        leaf = x.clone().requires_grad_()
        made = function(leaf)
        for _ in range(order):
            (made,) = torch.autograd.grad(made.sum(), leaf, create_graph=True)
        found.append(made.detach())
    room = torch.finfo(dtype).eps
    torch.testing.assert_close(found[0], found[1].to(dtype), rtol=room, atol=0.0)


def test_what_is_not_half_keeps_the_output_alone(own: ModuleType) -> None:
    for dtype, kept in ((torch.float32, "output"), (torch.float16, "input")):
        x = torch.ones(3, dtype=dtype, requires_grad=True)
        y = own.exp2_of(x)
        (saved,) = y.grad_fn.saved_tensors
        assert saved.data_ptr() == {"output": y, "input": x}[kept].data_ptr()


LOW, HIGH = torch.tensor(-0.5), torch.tensor([[0.5, 0.7, 0.9], [-1.5, 0.05, 4.0]])
XS = torch.tensor([-2.0, 0.1, 3.0])
CLIPS: dict[str, tuple[tuple[Any, ...], Callable[..., Any]]] = {
    "within": ((XS, LOW, HIGH), lambda x, low, high: x.maximum(low).minimum(high)),
    "below": ((XS, HIGH), lambda x, high: x.clamp_min(-1).minimum(high)),
    "above": ((XS, HIGH), lambda x, low: x.maximum(low).clamp_max(1)),
    "number": ((LOW, HIGH), lambda low, high: low * low.clamp_min(0.25).minimum(high)),
    "numbers": ((HIGH,), lambda high: high * high.clamp_max(0.25)),
}


@pytest.mark.parametrize("name", CLIPS)
def test_second_derivatives_of_a_clip_of_which_a_bound_has_more_axes(
    own: ModuleType, name: str
) -> None:
    """`torch.clamp` with two tensor bounds is an error there."""
    values, slope = CLIPS[name]
    args = [value.double().requires_grad_() for value in values]
    total = getattr(own, name)(*args).sum()
    (gradient,) = torch.autograd.grad(total, args[0], create_graph=True)
    wanted = slope(*args).sum_to_size(args[0].shape)
    torch.testing.assert_close(gradient, wanted)
    second, expected = (
        torch.autograd.grad(g.sin().sum(), args) for g in (gradient, wanted)
    )
    torch.testing.assert_close(second, expected)


# --- devices, subclasses, graphs -----------------------------------------------------------


def test_a_default_device_is_for_what_is_made(own: ModuleType) -> None:
    """Integers and booleans, too, stay where they are."""
    x, n = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]]), torch.tensor([1, 2, 3])
    found = []
    for device in ("cpu", "meta"):
        leaf = x.clone().requires_grad_()
        with torch.device(device):
            y, k = own.masked(leaf, x + 1, x > 1, n)
            found.append((y.detach(), k, *torch.autograd.grad(y.sum(), leaf)))
    torch.testing.assert_close(*found)
    with torch.device("meta"):
        y, k = own.masked(torch.empty(2, 3), 1.5, True, 2)
    assert y.device.type == k.device.type == "meta" and y.shape == (2, 3)


NESTED = ("spike", "levels", "keep_positive", "guarded", "counted", "pair")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", NESTED)
def test_nested_tensors_are_their_values(
    rules: ModuleType, own: ModuleType, name: str, dtype: Any
) -> None:
    """What is constant in a rule is made as they can be."""
    rule = getattr(own, name, None) or getattr(rules, name)
    count = 2 if name == "pair" else 1
    values = [torch.linspace(-1, k, 6, dtype=dtype)[:, None] for k in (1, 2)][:count]
    nest, offsets = torch.nested.nested_tensor_from_jagged, torch.tensor([0, 2, 6])
    nested = [nest(v, offsets) for v in values]
    found = []
    for given in (nested, values):
        leaves = [x.requires_grad_() for x in given]
        made = rule(*leaves)
        outputs = made if isinstance(made, tuple) else (made,)
        ones = torch.ones_like(outputs[0])
        found.append((*outputs, *torch.autograd.grad(outputs[0], leaves, ones)))
    for one, other in zip(*found, strict=True):
        assert one.is_nested and one.dtype == other.dtype
        assert torch.equal(one.values(), other)


@pytest.mark.parametrize("compiled", [False, True])
def test_symbolic_tracing_keeps_a_rule_as_one_node(
    rules: ModuleType, compiled: bool
) -> None:
    def called(x: Any) -> Any:
        z, w = rules.complex_op(x, 2.0)
        return z + w + rules.spike(x, k=4.0)

    traced = torch.fx.symbolic_trace(called)
    targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert rules.complex_op in targets and rules.spike in targets
    run = torch.compile(traced, backend="aot_eager") if compiled else traced
    x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    torch.testing.assert_close(
        *(torch.autograd.grad(f(x).sum(), x) for f in (run, called))
    )
    by_name = rules.complex_op
    with pytest.raises(TypeError, match=r"torch\.fx\.wrap"):
        torch.fx.symbolic_trace(lambda x: by_name(x, x))
