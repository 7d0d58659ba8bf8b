"""PyTorch modules under `torch.func` and `torch.compile`.

The rules whose backward pass is not the derivative of the forward pass are the test: what
a transform loses there comes out as another number, without an error.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import RULES, torch_module

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
torch = pytest.importorskip("torch")
F64 = torch.float64


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "exact": (lambda m, x: m.log1pexp(x), (torch.randn(5),)),
    "half": (lambda m, x: m.log1pexp(x), (torch.randn(5, dtype=torch.bfloat16),)),
    "several": (
        lambda m, x, y: m.complex_op(x, y),
        (torch.randn(3, 4, dtype=F64), torch.randn(4, dtype=F64)),
    ),
    "mixed types": (
        lambda m, x, y: m.complex_op(x, y),
        (torch.randn(3, 4), torch.randn(4, dtype=F64)),
    ),
    "number": (lambda m, x: m.complex_op(x, 2.0), (torch.randn(3),)),
    "static": (lambda m, x: m.swish(x, beta=1.7), (torch.randn(5),)),
    "surrogate": (lambda m, v: m.spike(v, k=4.0), (torch.randn(5),)),
    "override": (lambda m, x: m.clip_gradient(3 * x), (torch.randn(5),)),
    "materialised": (
        lambda m, x, y: m.mixed(x, y),
        (torch.randn(3, 4), torch.randn(4)),
    ),
    "shapes": (lambda m, x, y: m.sums(x, y), (torch.randn(3, 1), torch.randn(4))),
    "discrete": (
        lambda m, x: m.power(
            x.abs(), torch.tensor([1, 2, 3]), torch.tensor([True, False, True])
        ),
        (torch.randn(3),),
    ),
    "no gradient": (lambda m, x: m.parts(x), (torch.randn(3),)),
    "constants": (
        lambda m, x, y: m.constants(x, y),
        (torch.randn(3, 1), torch.randn(4)),
    ),
    "rank 0": (lambda m, x: m.square(x), (torch.tensor(3.0),)),
    "edges": (lambda m, x, y: m.edges(x, y), (torch.randn(3, 1), torch.randn(4))),
}


def _run(function: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Outputs and gradients, with different upstream gradients in every place."""
    leaves = tuple(x.detach().clone().requires_grad_() for x in inputs)
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    loss = sum(
        (
            y.double() * torch.linspace(-2, 3, y.numel(), dtype=F64).reshape(y.shape)
        ).sum()
        for y in outputs
        if y.requires_grad
    )
    return (*outputs, *torch.autograd.grad(loss, leaves, materialize_grads=True))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CASES)
def test_compiled_is_eager(rules: ModuleType, name: str, backend: str) -> None:
    function, inputs = CASES[name]
    torch._dynamo.reset()

    def bound(*args: Any) -> Any:
        return function(rules, *args)

    compiled = torch.compile(bound, backend=backend, fullgraph=True)
    for got, want in zip(_run(compiled, inputs), _run(bound, inputs), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_compiled_for_any_shape(rules: ModuleType) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(
        rules.complex_op, backend="aot_eager", fullgraph=True, dynamic=True
    )
    for rows in (2, 3, 5):
        inputs = torch.randn(rows, 4), torch.randn(4)
        for got, want in zip(
            _run(compiled, inputs), _run(rules.complex_op, inputs), strict=True
        ):
            torch.testing.assert_close(got, want)


def test_func_grad_is_the_rule(rules: ModuleType) -> None:
    v = torch.tensor([-0.3, 0.0, 0.1])
    want = 1 / (1 + 25 * v.abs()) ** 2
    torch.testing.assert_close(torch.func.grad(lambda v: rules.spike(v).sum())(v), want)
    torch.testing.assert_close(torch.vmap(torch.func.grad(rules.spike))(v), want)
    second = torch.vmap(torch.func.grad(torch.func.grad(rules.spike)))(v)
    torch.testing.assert_close(second, -50 * v.sign() / (1 + 25 * v.abs()) ** 3)


def test_vmap_over_some_inputs(rules: ModuleType) -> None:
    x, y = torch.randn(5, 4), torch.randn(4)
    mapped = torch.vmap(rules.complex_op, in_dims=(0, None))(x, y)
    for got, want in zip(mapped, (x * y + x.sin(), (y**2).expand(5, 4)), strict=True):
        torch.testing.assert_close(got, want)
    assert torch.vmap(rules.parts)(x)[3].shape == (5, 4)


def test_vmapped_gradients_of_broadcast_inputs(rules: ModuleType) -> None:
    x, y = torch.randn(5, 3, 4), torch.randn(4)

    def loss(x: Any, y: Any) -> Any:
        z, w = rules.complex_op(x, y)
        s, d = rules.sums(x, y)
        return (z + s * d).sum() + w.sum()

    per_sample = torch.vmap(torch.func.grad(loss, argnums=(0, 1)), in_dims=(0, None))
    dx, dy = per_sample(x, y)
    assert dx.shape == (5, 3, 4) and dy.shape == (5, 4)
    for k in range(5):
        want = torch.func.grad(loss, argnums=(0, 1))(x[k], y)
        torch.testing.assert_close((dx[k], dy[k]), want)


def test_vjp_and_jacobian(rules: ModuleType) -> None:
    x, y = torch.randn(3, 4), torch.randn(4)
    (z, w), pull = torch.func.vjp(rules.complex_op, x, y)
    dx, dy = pull((torch.ones_like(z), 2 * torch.ones_like(w)))
    torch.testing.assert_close(dx, y + x.cos())
    torch.testing.assert_close(dy, x.sum(0) + 4 * y)
    jacobian = torch.func.jacrev(rules.complex_op, argnums=(0, 1))(x, y)
    assert [part.shape for pair in jacobian for part in pair] == [
        (3, 4, 3, 4),
        (3, 4, 4),
        (4, 3, 4),
        (4, 4),
    ]


def test_public_functions_are_picklable(rules: ModuleType) -> None:
    assert pickle.loads(pickle.dumps(rules.spike)) is rules.spike


def test_a_number_that_a_compiler_does_not_know(rules: ModuleType) -> None:
    def step(x: Any) -> Any:
        return rules.complex_op(x, x.detach().sum().item())[0].sum()

    x = torch.randn(4, dtype=F64, requires_grad=True)
    (expected,) = torch.autograd.grad(step(x), x)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
        (found,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
@pytest.mark.parametrize("name", ["complex_op", "sums", "mixed", "shared"])
def test_sizes_that_a_compiler_does_not_know(
    rules: ModuleType, name: str, shape: tuple[int, ...]
) -> None:
    """As many elements as there are positive ones, beside an input that is broadcast."""

    def function(x: Any, y: Any) -> Any:
        return sum(z.square().sum() for z in getattr(rules, name)(x[x > 0], y))

    inputs = (
        torch.tensor([0.5, -1.0, 2.0, 1.5], requires_grad=True),
        torch.full(shape, 0.75, requires_grad=True),
    )
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = torch.autograd.grad(compiled(*inputs), inputs)
    want = torch.autograd.grad(function(*inputs), inputs)
    torch.testing.assert_close(found, want)
