"""Static parameters of torch modules given as tensors, all of them or some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import torch_module

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

RULES = """
rule marked(x, low: static = -1.0, high: static = 2.0) -> y:
    y = high * sin(x) + low
    override dx = 3 * dy * high * cos(x) + low * dy because "a marker"

rule limited(x, low: static = -1.0, high: static = 1.0) -> y:
    y = x * x
    override dx = clip(6 * dy * x, low, high) because "a marker"

rule between(x, low: static = -1.0, high: static = 1.0) -> y:
    y = clip(x, low, high)

rule chosen(x, low: static = 0.2, high: static = 0.5) -> y:
    y = high if x > 0 else low
    surrogate y = high * x + low

rule beside(x, low: static = 0.3, high: static = 0.5) -> y:
    y = hypot(x, low) + atan2(x, high) + max(x, low)
"""

NAMES = ("marked", "limited", "between", "chosen", "beside")

GIVEN: dict[str, tuple[Any, Any]] = {
    "number, tensor": (-0.5, torch.tensor(0.75)),
    "tensor, number": (torch.tensor(-0.5), 0.75),
    "number of NumPy, tensor": (np.float32(-0.5), torch.tensor(0.75)),
    "two types": (torch.tensor(-0.5, dtype=torch.float64), torch.tensor(0.75)),
    "elements, number": (torch.full((5,), -0.5), 0.75),
    "elements": (torch.full((5,), -0.5), torch.full((1,), 0.75)),
    "half, number": (torch.tensor(-0.5, dtype=torch.bfloat16), 0.75),
}


def _exported(function: Callable[[Any], Any], x: Any, strict: bool) -> Any:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    return torch.export.export(Module(), (x,), strict=strict).module()


WAYS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "eager": lambda function, _: function,
    "compiled": lambda function, _: torch.compile(
        function, backend="aot_eager", fullgraph=True
    ),
    "exported": lambda function, x: _exported(function, x, strict=False),
    "exported strictly": lambda function, x: _exported(function, x, strict=True),
}


def _results(function: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    x = x.clone().requires_grad_()
    y = function(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    return y.detach(), dx


def _x() -> Any:
    return torch.tensor([-1.5, -0.25, 0.125, 0.625, 1.75])


CASES = [
    (kind, way)
    for kind in GIVEN
    for way in WAYS
    if not ("NumPy" in kind and way == "exported strictly")
]
"""In a strict export torch has a symbol without a value for ``float(numpy.float32(1))``."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_numbers_and_tensors_are_mixed(kind: str, way: str, name: str) -> None:
    rule, (low, high) = getattr(torch_module(RULES), name), GIVEN[kind]
    torch._dynamo.reset()
    found = WAYS[way](lambda x: rule(high=high, x=x, low=low), _x())
    want = _results(lambda x: rule(x, low=-0.5, high=0.75), _x())
    torch.testing.assert_close(_results(found, _x()), want)


@pytest.mark.parametrize("name", NAMES)
def test_a_number_beside_a_tensor_keeps_its_digits(name: str) -> None:
    """float32 for it would be seen where ``x`` is float64."""
    rule, x = getattr(torch_module(RULES), name), _x().double()
    low = torch.tensor(-0.5)
    found = _results(lambda x: rule(x, low=low, high=0.1), x)
    torch.testing.assert_close(
        found, _results(lambda x: rule(x, low=-0.5, high=0.1), x)
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_for_each_of_a_batch(name: str) -> None:
    rule, lows = getattr(torch_module(RULES), name), torch.tensor([-0.5, 0.25])

    def both(low: Any) -> Any:
        def value(x: Any) -> Any:
            return rule(x, low=low, high=0.75)

        return value(_x()), torch.func.grad(lambda x: value(x).sum())(_x())

    found = torch.func.vmap(both)(lows)
    each = [
        _results(lambda x, low=low: rule(x, low=low, high=0.75), _x())
        for low in lows.tolist()
    ]
    want = tuple(torch.stack(parts) for parts in zip(*each, strict=True))
    torch.testing.assert_close(found, want)
