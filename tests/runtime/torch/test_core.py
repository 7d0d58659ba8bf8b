"""The core of the PyTorch runtime, by rules as gradspec emits them, written by hand."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gradspec import __version__  # noqa: E402
from gradspec.runtime.torch import _gradspec  # noqa: E402
from gradspec.runtime.torch._gradspec import (  # noqa: E402
    WIDE,
    Rule,
    broadcast_like,
    filled,
    plus,
    rule,
    scalar_like,
    sum_to,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
F64 = torch.float64
X = torch.tensor([0.5, -1.0, 2.0])


@rule("square")
class Square(Rule):
    @staticmethod
    def value(x):
        return x * x

    @staticmethod
    def pullback(_, x, dy):
        return 2.0 * x * dy

    @staticmethod
    def pushforward(x, x_dot):
        return 2.0 * x * x_dot


@rule("wide_square", computed_in=WIDE)
class WideSquare(Rule):
    @staticmethod
    def value(x):
        assert x.dtype == F64
        return x * x

    @staticmethod
    def pullback(_, x, dy):
        assert x.dtype == dy.dtype == F64
        return 2.0 * x * dy


@rule("gate", kinds={"k": "number"}, extra=1, outputs=2, is_exact=False)
class Gate(Rule):
    """It keeps a local; its gradient, three times the true one, is an operation."""

    @staticmethod
    def value(x, w, k):
        e = torch.exp(x)
        return e * w, k * w, e

    @staticmethod
    def residuals(x, w, k, y, z, e):
        return e, w, k

    @staticmethod
    def pullback(needs, e, w, k, dy, dz):
        dx = dw = None
        if needs[0] and dy is not None:
            dx = 3.0 * dy * e * w
        if needs[1] and dy is not None:
            dw = sum_to(3.0 * dy * e, w)
        if needs[1] and dz is not None:
            dw = plus(dw, 3.0 * k * dz)
        return dx, dw


@rule(
    "rows",
    kinds={"n": "integer", "on": "boolean", "k": "whole"},
    axes={"x": "... k", "g": "k", "n": ""},
    constant=(1,),
    outputs=2,
)
class Rows(Rule):
    @staticmethod
    def value(x, g, n, on, k):
        return torch.where(on, x * g + n, 0.0), n * k

    @staticmethod
    def pullback(_, x, g, n, on, k, dy):
        dy = torch.where(on, dy, 0.0)
        return dy * g, dy * x


def gate(x: Any, w: Any, k: Any = 2.0) -> Any:
    return Gate.call(x, w, k)


def rows(x: Any, g: Any, n: Any = 1, on: Any = True, k: Any = 3) -> Any:
    return Rows.call(x, g, n, on, k)


def test_the_runtime_names_its_version() -> None:
    assert f"gradspec {__version__} " in (_gradspec.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype: Any) -> None:
    x = torch.linspace(-4, 4, 33).to(dtype).requires_grad_()
    y = Square.call(x)
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


@pytest.mark.parametrize(
    ("call", "fault", "words"),
    [
        (lambda: Square.call(torch.arange(3)), TypeError, r"x\.to\(torch\.float32\)"),
        (
            lambda: Square.call(X * 1j),
            TypeError,
            "floating tensor, not torch.complex64",
        ),
        (lambda: rows(X, X, 1.0), TypeError, "n must be an integer tensor"),
        (lambda: rows(X, X, on=1), TypeError, "on must be a boolean tensor"),
        (lambda: rows(X, X, k=2.0), TypeError, "integer"),
        (lambda: rows(X, X[:2]), ValueError, r"g .* \[k\] with k = 3"),
        (lambda: rows(X, X, k=4), ValueError, r"x .*, k\] with k = 4"),
        (lambda: rows(X, X, torch.ones(1).int()), ValueError, r"n .* shape \[\]"),
        (lambda: gate(X, X, "2"), TypeError, "k must be a number, not a string"),
        (lambda: gate(X, X, X * 1j), TypeError, "k must be a real number"),
        (lambda: gate(X, X, X.clone().requires_grad_()), TypeError, "k is static"),
    ],
)
def test_errors(call: Any, fault: type[Exception], words: str) -> None:
    with pytest.raises(fault, match=words):
        call()


def test_numbers_take_the_type_and_device_of_tensors() -> None:
    assert Square.call(2).dtype == torch.get_default_dtype()
    y, z = gate(torch.ones(2, dtype=torch.bfloat16), 0.1)
    assert y.dtype == z.dtype == torch.bfloat16
    y, z = gate(X, torch.ones(1, dtype=F64), torch.tensor(2.0))
    assert y.dtype == z.dtype == F64
    y, z = gate(torch.empty(3, device="meta"), 0.1)
    assert y.device.type == z.device.type == "meta"


def test_named_axes_integers_and_booleans() -> None:
    x, on = torch.stack([X, 2 * X]).requires_grad_(), torch.tensor([True, False, True])
    g = X.clone().requires_grad_()
    y, at = rows(x, g, torch.tensor(2, dtype=torch.int8), on)
    assert at.item() == 6 and at.dtype == torch.int64 and not at.requires_grad
    dx, dg = torch.autograd.grad(y.sum(), (x, g))
    assert torch.equal(dx, torch.where(on, X, 0.0).expand(2, 3))
    assert torch.equal(dg, torch.where(on, 3 * X, 0.0))


def test_locals_that_are_kept_and_cotangents_that_are_absent() -> None:
    x, w = (v.double().requires_grad_() for v in (torch.stack([X, -X]), X))
    y, z = gate(x, w)
    both = torch.autograd.grad((y.sum(), z.sum()), (x, w), retain_graph=True)
    first = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    (second,) = torch.autograd.grad(z.sum(), w)
    torch.testing.assert_close(both, (first[0], first[1] + second))
    assert torch.equal(second, torch.full_like(w, 6.0))
    (again,) = torch.autograd.grad(first[0].sum(), x)  # through what was kept
    torch.testing.assert_close(again, 3 * x.exp() * w)


def test_an_operation_in_an_exported_graph() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any, w: Any) -> Any:
            return gate(x, w)

    exported = torch.export.export(Module(), (X, X + 1))
    names = [str(n.target) for n in exported.graph.nodes]
    assert any(name.startswith("gradspec.gate_") for name in names)
    x = X.clone().requires_grad_()
    exported.module()(x, X)[0].sum().backward()
    torch.testing.assert_close(x.grad, 3 * X.exp() * X)


def test_shapes() -> None:
    x = torch.ones(2, 1)
    assert torch.equal(sum_to(torch.ones(4, 2, 3), x), 12 * x)
    assert sum_to(x, x) is x and plus(None, x) is x
    assert sum_to(torch.ones(0, 2, 1), x).tolist() == [[0.0], [0.0]]
    assert filled(0.5, x, torch.ones(3)).tolist() == [[0.5] * 3] * 2
    assert filled(torch.tensor(2.0), x).shape == (2, 1)
    assert scalar_like(x.double(), torch.tensor(2.0)).dtype == F64
    nan = torch.tensor([float("nan"), -0.0, 2.0])
    assert torch.equal(broadcast_like(x, nan), torch.ones(2, 3))
    batch = torch.func.vmap(lambda y: broadcast_like(x, y))(torch.ones(4, 3))
    assert torch.equal(batch, torch.ones(4, 2, 3))
