"""What `torch.compile` computes keeps the digits that eager torch has: the compiler makes
``exp(x) - 1`` of an `expm1`, which has none about 0.
"""

from __future__ import annotations

import shutil
from typing import Any

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
"""
ZERO = -1.2784645427610738


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
