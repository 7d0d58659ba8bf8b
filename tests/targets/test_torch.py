"""PyTorch modules in PyTorch: values, gradients, types, shapes, arguments."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.targets.emission import RULES, torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
F64 = torch.float64


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return torch_module(RULES)


def _uniform(*shape: int, low: float = 0.2, high: float = 0.8) -> Any:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    values = torch.rand(shape, dtype=F64, generator=generator)
    return (low + (high - low) * values).requires_grad_()


# --- surrogates and overrides ------------------------------------------------------------


def test_overrides(rules: ModuleType) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    upstream = torch.tensor([0.5, -3.0, 2.0])
    (reversed_,) = torch.autograd.grad(
        rules.reverse_gradient(x, scale=2.0), x, upstream
    )
    assert reversed_.tolist() == [-1.0, 6.0, -4.0]
    (clipped,) = torch.autograd.grad(rules.clip_gradient(x), x, upstream)
    assert clipped.tolist() == [0.5, -1.0, 1.0]
    (squared,) = torch.autograd.grad(rules.keep_positive(x), x, upstream)
    assert squared.tolist() == [0.25, 18.0, 12.0]


def test_an_override_may_mix_upstream_gradients(rules: ModuleType) -> None:
    x, y = _uniform(3, 4), _uniform(4)
    z, w = rules.mixed(x, y)
    dx, dy = torch.autograd.grad((z, w), (x, y), (torch.full_like(z, 2.0), 3 + w))
    torch.testing.assert_close(dx, (2 * (3 + w)).expand(3, 4))
    torch.testing.assert_close(dy, (2 * x).sum(0) + 3 + w)
    (only,) = torch.autograd.grad(rules.mixed(x, y)[0].sum(), x)
    assert only.tolist() == torch.zeros(3, 4).tolist()


def test_constants_have_shape_and_type(rules: ModuleType) -> None:
    x = torch.ones(3, 1, dtype=torch.float16, requires_grad=True)
    z, c = rules.constants(x, torch.ones(4, dtype=torch.float16))
    assert c.shape == (3, 4) and c.dtype == torch.float16
    (dx,) = torch.autograd.grad(z.sum(), x)
    assert dx.dtype == torch.float16
    assert dx.tolist() == [[8.0]] * 3  # two, in each of four places
    levels = rules.levels(torch.tensor([-1.0, 1.0], dtype=F64, requires_grad=True))
    assert levels.tolist() == [0.2, 0.1]
    assert levels.requires_grad


# --- outputs without gradient --------------------------------------------------------------


def test_outputs_without_gradient(rules: ModuleType) -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y, sgn, up, side = rules.parts(x)
    assert [t.requires_grad for t in (y, sgn, up, side)] == [True, False, False, False]
    assert [t.dtype for t in (sgn, up, side)] == [
        torch.float32,
        torch.bool,
        torch.int64,
    ]
    assert side.tolist() == [2, 1] and up.tolist() == [False, True]


def test_rules_without_gradients_and_constant_outputs(rules: ModuleType) -> None:
    assert rules.counts(4).item() == 2.5
    t = torch.tensor([1.0, 2.0], dtype=F64, requires_grad=True)
    assert rules.labels(t, torch.tensor([True, False])).tolist() == [2.0, 0.1]
    _, on, k = rules.boolout(torch.ones(3, 1), torch.zeros(2))
    assert k.tolist() == [[3, 3]] * 3 and k.dtype == torch.int64
    assert on.tolist() == [[True, True]] * 3


def test_what_is_not_needed_is_skipped(rules: ModuleType) -> None:
    x, y = torch.ones(3), torch.ones(3, requires_grad=True)
    z, _ = rules.complex_op(x, y)
    (dy,) = torch.autograd.grad(z.sum(), y)
    assert dy.tolist() == [1.0, 1.0, 1.0]
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    assert torch.autograd.grad(
        rules.complex_op(a, b)[1].sum(), a, allow_unused=True
    ) == (None,)


# --- types and values --------------------------------------------------------------------


def test_mixed_types_promote_and_gradients_go_back(rules: ModuleType) -> None:
    x = torch.ones(3, 4, dtype=torch.float16, requires_grad=True)
    y = torch.ones(4, dtype=F64, requires_grad=True)
    z, w = rules.complex_op(x, y)
    assert z.dtype == w.dtype == F64
    (z.sum() + w.sum()).backward()
    assert (x.grad.dtype, x.grad.shape) == (torch.float16, (3, 4))
    assert (y.grad.dtype, y.grad.shape) == (F64, (4,))
    rank0 = torch.tensor(1.0, dtype=F64)
    assert rules.complex_op(torch.ones(2), rank0)[0].dtype == F64


def test_a_comparison_with_nan_is_false(rules: ModuleType) -> None:
    nan = torch.tensor([float("nan")])
    assert rules.spike(nan).item() == rules.guarded(nan).item() == 0.0
    assert rules.swish(nan).isnan().item()


def test_nothing_is_kept_beyond_inputs_and_outputs(rules: ModuleType) -> None:
    x = torch.ones(1000, dtype=torch.bfloat16, requires_grad=True)
    kept = rules.log1pexp(x).grad_fn.saved_tensors
    assert [t.data_ptr() for t in kept] == [x.data_ptr()]
