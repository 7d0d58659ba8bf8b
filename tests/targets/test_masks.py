"""Masked positions and rows of which nothing is left, as emitted from the shipped rules.

A position that is -inf, or that a mask excludes, has probability 0 and gradient 0, of the
second order too. A row that is -inf throughout gives what the framework's own gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calling import by_target, called, cotangent
from tests.targets.emission import module_of

torch = pytest.importorskip("torch")

ROWS = Path(__file__).parents[2] / "rules" / "tensor" / "softmax.grad"
INF = float("inf")
pytestmark = pytest.mark.torch


def _torch_derivatives(f: Any, row: Any, weights: Any) -> list[Any]:
    """Value, gradient and second derivative, with upstream 0 where the value is -inf."""
    x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    y = f(x)
    weights = torch.where(y == -INF, 0.0, torch.tensor(weights))
    (dx,) = torch.autograd.grad(y, x, weights, create_graph=True)
    (second,) = torch.autograd.grad((dx * torch.arange(3.0)).sum(), x)
    return [y.detach(), dx.detach(), second]


@pytest.mark.parametrize("row", [[0.0, -INF, 1.0], [-INF, -INF, -INF]])
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("softmax", torch.softmax),
        ("log_softmax", torch.log_softmax),
        ("log_sum_exp", torch.logsumexp),
    ],
)
def test_infinities_give_what_torch_gives(
    name: str, own: Any, row: list[float]
) -> None:
    rule = getattr(module_of(ROWS, "torch"), name)
    weights = np.float64(1.0) if name == "log_sum_exp" else np.arange(1.0, 4.0)
    found = _torch_derivatives(rule, row, weights)
    wanted = _torch_derivatives(lambda x: own(x, -1), row, weights)
    for value, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(value, other, equal_nan=True)


MASKS = np.array([[True, False, True], [False, False, False], [True, True, True]])
ROW = np.array([[0.5, 1e4, -1.0], [2.0, 1.0, 0.0], [-INF, 1.0, 2.0]])


def test_a_mask_is_as_minus_infinity_in_torch() -> None:
    keep, rule = torch.tensor(MASKS), module_of(ROWS, "torch").masked_softmax
    weights = np.arange(9.0).reshape(3, 3)
    found = _torch_derivatives(lambda x: rule(x, keep), ROW, weights)
    wanted = _torch_derivatives(
        lambda x: torch.softmax(torch.where(keep, x, -INF), -1), ROW, weights
    )
    for value, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(value[[0, 2]], other[[0, 2]])
        assert not value[1].any() and not value[~keep].any()


@by_target
def test_masked_rows(target: str) -> None:
    with np.errstate(all="raise"):
        found = called(target, module_of(ROWS, target), "masked_softmax", (ROW, MASKS))
    ((y,), (dx, *_)) = found
    np.testing.assert_allclose(y.sum(axis=-1), [1.0, 0.0, 1.0])
    assert dx is not None and np.isfinite(dx).all() and cotangent(y).any()
    assert not y[~MASKS].any() and not dx[~MASKS].any()


TURNED = """
rule turned(x[a, b, c, d], keep[d, c, b, a]: bool) -> y[a, b, c, d]:
    y[i, j, k, l] = x[i, j, k, l] if keep[l, k, j, i] else 0

rule crossed(x[a, b, a], keep[a, b, a]: bool) -> y[a, b]:
    y[i, j] = x[i, j, i] if keep[i, j, i] else 0
"""


@by_target
def test_a_mask_has_its_axes_in_another_order(target: str) -> None:
    module, random = module_of(TURNED, target), np.random.default_rng(0)
    x, keep = random.random((2, 3, 4, 5)), random.random((5, 4, 3, 2)) > 0.5
    (y,), (dx, _) = called(target, module, "turned", (x, keep), (np.ones(x.shape),))
    np.testing.assert_array_equal(y, np.where(keep.T, x, 0))
    np.testing.assert_array_equal(dx, keep.T)
    x, keep = random.random((3, 4, 3)), random.random((3, 4, 3)) > 0.5
    (y,), _ = called(target, module, "crossed", (x, keep))
    np.testing.assert_array_equal(y, np.einsum("iji->ij", np.where(keep, x, 0)))
