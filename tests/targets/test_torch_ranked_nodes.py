"""Array operations that know axes, as PyTorch text: values, derivatives, transforms."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from gradspec.targets import torch_ranked_texts as texts
from gradspec.targets.python import Scope, render
from gradspec.targets.torch_ranked import ranked
from gradspec.targets.torch_texts import DIALECT, FILLED
from tests.targets.ranked_nodes import CASES, POSITIONS

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

_CONSTANT = ("arange", "spread number")
_ALONE = [name for name in CASES if name not in _CONSTANT]
_INDEX = torch.from_numpy(POSITIONS)


def _text(name: str) -> str:
    scope = Scope(replace(DIALECT, ranked=ranked("x")), frozenset(), frozenset())
    return render(CASES[name][0], scope)


@cache
def _function(name: str) -> Any:
    known: dict[str, Any] = {"torch": torch, "math": math}
    helpers = (FILLED, *texts.HELPERS)
    exec("\n".join(helper.text for helper in helpers), known)
    return eval(f"lambda x, w, t: {_text(name)}", known)


def _inputs(name: str) -> list[Any]:
    made = torch.Generator().manual_seed(7)
    shapes = CASES[name][1]
    values = [
        torch.randn(s, dtype=torch.float64, generator=made, requires_grad=True)
        for s in shapes
    ]
    return [*values, *[torch.ones(1, dtype=torch.float64)] * (2 - len(values))]


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_what_numpy_says(name: str) -> None:
    x, w = _inputs(name)
    found = _function(name)(x, w, _INDEX)
    wanted = CASES[name][2](x.detach().numpy(), w.detach().numpy(), POSITIONS)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", _ALONE)
def test_first_and_second_derivatives(name: str) -> None:
    function, (x, w) = _function(name), _inputs(name)
    inputs = [value for value in (x, w) if value.requires_grad]

    def bound(*values: Any) -> Any:
        return function(*values, *[w] * (2 - len(values)), _INDEX)

    assert torch.autograd.gradcheck(bound, inputs)
    assert torch.autograd.gradgradcheck(bound, inputs)


@pytest.mark.parametrize("name", _ALONE)
def test_batched_by_vmap(name: str) -> None:
    """Both ways of batching: that of `torch.func` and that of `is_grads_batched`."""
    from torch._vmap_internals import _vmap

    function, (x, w) = _function(name), _inputs(name)
    x, w = x.detach(), w.detach()
    stack = torch.stack([x, 2 * x, -x])
    wanted = torch.stack([function(each, w, _INDEX) for each in stack])
    ways = [torch.func.vmap, _vmap]
    for way in ways:
        found = way(lambda each: function(each, w, _INDEX))(stack)
        torch.testing.assert_close(found, wanted)


def test_compiled_with_sizes_that_vary() -> None:
    torch._dynamo.reset()
    functions = [_function(name) for name in ("linear", "weights", "window last")]

    def every(x: Any, w: Any, t: Any) -> Any:
        return [function(x, w, t) for function in functions]

    compiled = torch.compile(every, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (2, 5):
        x, w = torch.randn(rows, 4), torch.randn(rows, 4)
        for found, wanted in zip(
            compiled(x, w, _INDEX), every(x, w, _INDEX), strict=True
        ):
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["take", "take vector", "gather", "scatter"])
@pytest.mark.parametrize("position", [-1, 4])
def test_a_position_outside_is_an_error(name: str, position: int) -> None:
    x, w = _inputs(name)
    with pytest.raises((IndexError, RuntimeError)):
        _function(name)(x, w, torch.full((2, 3), position))
