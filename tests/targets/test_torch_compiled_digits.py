"""What `torch.compile` computes keeps the digits that eager torch has: the compiler makes
``exp(x) - 1`` of an `expm1`, which has none about 0.
"""

from __future__ import annotations

import math
import shutil
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from tests.targets.emission import imported

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="nothing compiles C++"),
]
torch = pytest.importorskip("torch")

RULES = """
rule silu(x) -> y:
    y = x / (1 + exp(-x))

rule growth(x) -> y:
    y = exp(x) - 1

rule gelu(x) -> y:
    y = x * (1 + erf(x / sqrt(2))) / 2
"""
ZERO = -1.2784645427610738
GELU_ZERO = -0.75179152469356445


def test_about_a_zero() -> None:
    """Of the slope of silu, and of an exponential less 1."""
    rules = imported(compile_text(RULES, "torch"), "compiled_digits")

    def both(x: Any) -> tuple[Any, Any]:
        return rules.growth(x - ZERO), rules.silu(x)

    compiled = torch.compile(both, fullgraph=True)
    for dtype in (torch.float32, torch.float64):
        x = torch.linspace(ZERO - 1e-4, ZERO + 1e-4, 64).to(dtype).requires_grad_()
        for got, exact in zip(_asked(compiled, x), _asked(both, x), strict=True):
            unit = torch.finfo(dtype).eps
            torch.testing.assert_close(got, exact, rtol=8 * unit, atol=0.0)


def _asked(function: Any, x: Any) -> tuple[Any, Any]:
    """The growth, and the slope of silu."""
    grown, y = function(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    return grown.detach(), dx


def _silu_slope(x: float) -> float:
    """1 + x + exp(x) from its zero, where it cancels."""
    e = math.exp(-abs(x))
    if x >= 0:
        return (1 + e * (1 + x)) / (1 + e) ** 2
    d = x - ZERO
    grown = math.exp(ZERO) * math.expm1(d) + d if abs(d) < 0.1 else 1 + x + e
    return e * grown / (1 + e) ** 2


def _gelu_slope(x: float) -> float:
    """About its zero by the slope there, which cancels nowhere: it is 2 - x**2 bells."""
    u = x - GELU_ZERO
    if abs(u) > 1e-5:
        return math.erfc(-x / math.sqrt(2)) / 2 + x * _bell(x)
    middle = x - u / 2
    return u * (2 - middle * middle) * _bell(middle)


def _bell(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("name", "slope", "zero", "steps"),
    [("silu", _silu_slope, ZERO, 5.0), ("gelu", _gelu_slope, GELU_ZERO, 3.5)],
)
def test_a_whole_slope(name: str, slope: Any, zero: float, steps: float) -> None:
    """In one loop of float32: everywhere, about the zero, at ends; rounded once in half
    precision; and its own derivative."""
    rules = imported(compile_text(RULES, "torch"), "compiled_slopes")
    rule = torch.compile(getattr(rules, name), fullgraph=True)
    random = np.random.default_rng(5)
    near = zero + random.choice([-1, 1], 2000) * 2.0 ** random.uniform(-22, -1, 2000)
    places = np.concatenate([random.uniform(-12, 9, 20000), near]).astype(np.float32)
    ends = np.array([-math.inf, -3e38, 0.0, 3e38, math.inf], np.float32)
    x = torch.from_numpy(np.concatenate([places, ends])).requires_grad_()
    got = torch.autograd.grad(rule(x).sum(), x)[0].double().numpy()
    assert got[-5:].tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    true = np.array([slope(float(v)) for v in places])
    unit = np.spacing(np.abs(true).astype(np.float32))
    assert np.max(np.abs(got[:-5] - true) / unit) <= steps

    half = torch.linspace(-4.0, 4.0, 257, dtype=torch.float16).requires_grad_()
    (dx,) = torch.autograd.grad(rule(half).sum(), half)
    exact = torch.tensor([slope(float(v)) for v in half.detach()])
    assert dx.dtype == torch.float16 and torch.equal(dx, exact.half())


def test_the_derivative_of_a_whole_slope() -> None:
    """By `torch.func` within what is compiled, on both sides of what is chosen."""
    rules = imported(compile_text(RULES, "torch"), "compiled_second")
    x = torch.tensor([-9.0, -1.7, -1.63, -1.2785, -0.9, -0.1, 0.0, 0.3, 4.0])
    for rule in (rules.silu, rules.gelu):
        second = torch.func.vmap(torch.func.grad(torch.func.grad(rule)))
        exact = second(x.double())
        got = torch.compile(second)(x).double()
        torch.testing.assert_close(got, exact, rtol=2e-5, atol=2e-6)
