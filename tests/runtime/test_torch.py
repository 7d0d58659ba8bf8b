"""The core of the PyTorch runtime: arguments, types, what is kept, exported operations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradspec import __version__
from tests.targets.emission import module_of

torch = pytest.importorskip("torch")

from gradspec.runtime.torch import _gradspec as runtime  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.shared_cache,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
F64 = torch.float64
X = torch.tensor([0.5, -1.0, 2.0])
ON = torch.tensor([True, False, True])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(Path(__file__).with_name("rules.grad"), "torch")


@runtime.rule("wide_square", computed_in=runtime.WIDE)
class WideSquare(runtime.Rule):
    @staticmethod
    def value(x: Any) -> Any:
        assert x.dtype == F64
        return x * x

    @staticmethod
    def pullback(_: Any, x: Any, dy: Any) -> Any:
        assert x.dtype == dy.dtype == F64
        return 2.0 * x * dy

    pushforward = None


def test_the_runtime_names_its_version() -> None:
    assert f"gradspec {__version__} " in (runtime.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(rules: ModuleType, dtype: Any) -> None:
    x = torch.linspace(-4, 4, 33).to(dtype).requires_grad_()
    y = rules.square(x)
    y.sum().backward()
    wide = x.detach().float()
    assert torch.equal(y, (wide * wide).to(dtype))
    assert torch.equal(x.grad, (2 * wide).to(dtype))


def test_what_is_computed_in_float64() -> None:
    x = X.clone().requires_grad_()
    y = WideSquare.call(x)
    y.sum().backward()
    assert y.dtype == torch.float32 and torch.equal(x.grad, 2 * X)
    with pytest.raises(NotImplementedError, match="wide_square has no forward mode"):
        torch.func.jvp(WideSquare.call, (X,), (X,))


ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda m: m.square(torch.arange(3)), TypeError, r"x\.to\(torch\.float32\)"),
    (lambda m: m.square(X * 1j), TypeError, "floating tensor, not torch.complex64"),
    (lambda m: m.rows(X, X, 1.0, ON), TypeError, "n must be an integer tensor"),
    (lambda m: m.rows(X, X, 1, X), TypeError, "on must be a boolean tensor"),
    (lambda m: m.rows(X, X, 1, ON, k=2.0), TypeError, "integer"),
    (lambda m: m.rows(X, X[:2], 1, ON), ValueError, r"g .* \[k\] with k = 3"),
    (lambda m: m.rows(X, X, 1, ON, k=4), ValueError, r"x .*, k\] with k = 4"),
    (lambda m: m.rows(X, X, torch.ones(1).int(), ON), ValueError, r"n .* shape \[\]"),
    (lambda m: m.gate(X, X, k="2"), TypeError, "k must be a number, not a string"),
    (lambda m: m.gate(X, X, k=X * 1j), TypeError, "k must be a real number"),
    (lambda m: m.gate(X, X, k=X.clone().requires_grad_()), TypeError, "k is static"),
]


@pytest.mark.parametrize(("call", "fault", "words"), ERRORS)
def test_errors(
    rules: ModuleType, call: Callable[[Any], Any], fault: Any, words: str
) -> None:
    with pytest.raises(fault, match=words):
        call(rules)


def test_numbers_take_the_type_and_device_of_tensors(rules: ModuleType) -> None:
    assert rules.square(2).dtype == torch.get_default_dtype()
    for x, w, k, wanted in (
        (torch.ones(2, dtype=torch.bfloat16), 0.1, 2.0, torch.bfloat16),
        (X, torch.ones(1, dtype=F64), torch.tensor(2.0), F64),
    ):
        assert {t.dtype for t in rules.gate(x, w, k=k)} == {wanted}
    made = rules.gate(torch.empty(3, device="meta"), 0.1)
    assert {t.device.type for t in made} == {"meta"}


def test_named_axes_integers_and_booleans(rules: ModuleType) -> None:
    x, g = torch.stack([X, 2 * X]).requires_grad_(), X.clone().requires_grad_()
    y, at = rules.rows(x, g, torch.tensor(2, dtype=torch.int8), ON)
    assert int(at.max()) == 4 and at.dtype == torch.int64 and not at.requires_grad
    dx, dg = torch.autograd.grad(y.sum(), (x, g))
    torch.testing.assert_close(dx, torch.where(ON, 3 * X * x.detach() ** 2, 0.0))
    torch.testing.assert_close(dg, torch.where(ON, 9 * X**3, 0.0))


def test_locals_that_are_kept_and_cotangents_that_are_absent(rules: ModuleType) -> None:
    x, w = (v.double().requires_grad_() for v in (torch.stack([X, -X]), X))
    y, z = rules.gate(x, w)
    both = torch.autograd.grad((y.sum(), z.sum()), (x, w), retain_graph=True)
    first = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    (second,) = torch.autograd.grad(z.sum(), w)
    torch.testing.assert_close(both, (first[0], first[1] + second))
    assert torch.equal(second, torch.full_like(w, 6.0))
    (again,) = torch.autograd.grad(first[0].sum(), x)  # through what was kept
    torch.testing.assert_close(again, 3 * x.exp() * w)


def test_an_operation_in_an_exported_graph(rules: ModuleType) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any, w: Any) -> Any:
            return rules.gate(x, w)

    exported = torch.export.export(Module(), (X, X + 1))
    names = [str(n.target) for n in exported.graph.nodes]
    assert any(name.startswith("gradspec.gate_") for name in names)
    x = X.clone().requires_grad_()
    exported.module()(x, X)[0].sum().backward()
    torch.testing.assert_close(x.grad, 3 * X.exp() * X)


def test_shapes() -> None:
    x = torch.ones(2, 1)
    sum_to, filled, like = (
        runtime.sum_to,
        runtime.broadcast_full,
        runtime.broadcast_like,
    )
    assert torch.equal(sum_to(torch.ones(4, 2, 3), x), 12 * x)
    assert sum_to(x, x) is x and runtime.plus(None, x) is x
    assert sum_to(torch.ones(0, 2, 1), x).tolist() == [[0.0], [0.0]]
    assert filled(0.5, x, torch.ones(3)).tolist() == [[0.5] * 3] * 2
    assert filled(torch.tensor(2.0), x).shape == (2, 1)
    assert runtime.scalar_like(x.double(), torch.tensor(2.0)).dtype == F64
    nan = torch.tensor([float("nan"), -0.0, 2.0])
    assert torch.equal(like(x, nan), torch.ones(2, 3))
    batch = torch.func.vmap(lambda y: like(x, y))(torch.ones(4, 3))
    assert torch.equal(batch, torch.ones(4, 2, 3))
