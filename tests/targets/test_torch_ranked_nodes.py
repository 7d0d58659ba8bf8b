"""Array operations that know axes, as PyTorch text: values, derivatives, batches."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from gradspec.runtime.torch import _axes, _gradspec
from gradspec.targets.expressions import Scope, render
from gradspec.targets.page import Page
from gradspec.targets.torch.dialect import DIALECT
from tests.targets.ranked_nodes import CASES, POSITIONS

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

_ALONE = [name for name in CASES if name not in ("arange", "spread number")]
_INDEX = torch.from_numpy(POSITIONS)


@cache
def _function(name: str) -> Any:
    text = render(CASES[name][0], Scope(DIALECT, Page("rules.py", "xwt")))
    known = {**vars(_gradspec), **vars(_axes), "torch": torch, "math": math}
    return eval(f"lambda x, w, t: {text}", known)


def _inputs(name: str) -> list[Any]:
    made = torch.Generator().manual_seed(7)
    shapes = [*CASES[name][1], (1,)][:2]
    return [torch.randn(s, dtype=torch.float64, generator=made) for s in shapes]


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_what_numpy_says(name: str) -> None:
    x, w = _inputs(name)
    found = _function(name)(x, w, _INDEX)
    wanted = CASES[name][2](x.numpy(), w.numpy(), POSITIONS)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", _ALONE)
def test_first_and_second_derivatives(name: str) -> None:
    inputs = [x.requires_grad_() for x in _inputs(name)][: len(CASES[name][1])]
    rest = _inputs(name)[len(inputs) :]

    def bound(*values: Any) -> Any:
        return _function(name)(*values, *rest, _INDEX)

    assert torch.autograd.gradcheck(bound, inputs)
    assert torch.autograd.gradgradcheck(bound, inputs)


@pytest.mark.parametrize("name", _ALONE)
def test_batched_by_vmap(name: str) -> None:
    """Both ways of batching: that of `torch.func` and that of `is_grads_batched`."""
    from torch._vmap_internals import _vmap

    function, (x, w) = _function(name), _inputs(name)
    stack = torch.stack([x, 2 * x, -x])
    wanted = torch.stack([function(each, w, _INDEX) for each in stack])
    for way in (torch.func.vmap, _vmap):
        found = way(lambda each: function(each, w, _INDEX))(stack)
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["take", "take vector", "gather", "scatter"])
@pytest.mark.parametrize("position", [-1, 4])
def test_a_position_outside_is_an_error(name: str, position: int) -> None:
    x, w = _inputs(name)
    with pytest.raises((IndexError, RuntimeError)):
        _function(name)(x, w, torch.full((2, 3), position))
