"""The PyTorch spellings, and their derivatives by autograd, against balls."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.primitives.lookup import primitive
from gradspec.primitives.table import ROWS
from tests.primitives.primitive_frameworks import (
    FLOAT32,
    FLOAT64,
    INFINITE,
    ODD,
    Framework,
    at_infinity,
    at_nan,
    forward_error,
    groups,
    keeps_the_sign_of_zero,
    partial_error,
)
from tests.primitives.primitive_truth import OPERATORS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TORCH = Framework("torch", torch, lambda a: torch.from_numpy(np.array(a)), torch.where)

# digamma: next to its zeros between the poles on the left.
FLOAT32_KNOWN = {
    "digamma": 20.0,
    "sinc_slope": 13.0,
}

# Only where a rule's backward uses these and is differentiated again. sigmoid, tanh and
# expm1: 1 - out and out + 1, which are 0 in a tail. acosh: rsqrt(x**2 - 1) next to 1.
AUTOGRAD_KNOWN = {
    "sigmoid": 2.0,
    "sigmoid_sum": 2.0,
    "expm1_sum": 2.0,
    "expm1_product": 2.0,
    "sigmoid_product": 2.0,
    "tanh": 2.0,
    "expm1": 2.0,
    "acosh": 1e-8,
}

names = pytest.mark.parametrize("name", OPERATORS)
PARTIALS = [
    (row.name, position)
    for row in ROWS
    for position, text in enumerate(row.partials)
    if text is not None
]


@names
def test_float64(name: str) -> None:
    error, point = forward_error(TORCH, name, np.float64)
    assert error <= FLOAT64, point


@names
def test_float32(name: str) -> None:
    error, point = forward_error(TORCH, name, np.float32)
    assert error <= FLOAT32_KNOWN.get(name, FLOAT32), point


@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name: str) -> None:
    at_infinity(TORCH, name)


@pytest.mark.parametrize("name", ODD)
def test_the_sign_of_zero(name: str) -> None:
    keeps_the_sign_of_zero(TORCH, name)


@names
def test_nan(name: str) -> None:
    if primitive(name).keeps_nan:
        at_nan(TORCH, name)
    else:
        assert name == "sign", "emitted rules pass the NaN of these on themselves"


@pytest.mark.parametrize(("name", "position"), PARTIALS)
def test_autograd(name: str, position: int) -> None:
    worst: tuple[float, object] = (0.0, ())
    for group in groups(name, 2 if primitive(name).arity == 1 else 5):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        args = TORCH.arguments(name, columns)
        args[position].requires_grad_(True)
        out = TORCH.call(name, args).sum()
        (slope,) = torch.autograd.grad(out, args[position], allow_unused=True)
        slopes = np.zeros(len(group)) if slope is None else slope.numpy()
        worst = max(worst, partial_error(TORCH, name, position, slopes, group))
    assert worst[0] <= AUTOGRAD_KNOWN.get(name, 1e-9), worst


@pytest.mark.parametrize(
    "name", ["softplus", "logaddexp", "sinc", "cbrt", "logit", "gamma", "erfcx_slope"]
)
def test_gradgradcheck(name: str) -> None:
    args = [
        torch.tensor([0.3, 0.6], dtype=torch.float64, requires_grad=True)
        for _ in primitive(name).params
    ]
    assert torch.autograd.gradgradcheck(lambda *xs: TORCH.call(name, list(xs)), args)
