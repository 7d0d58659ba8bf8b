"""Masked positions and rows of which nothing is left, as emitted from the shipped rules.

A position that is -inf, or that a mask excludes, has probability 0 and gradient 0, of the
second order too. A row that is -inf throughout gives what the framework's own gives.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import torch

import gradspec

ROWS = Path(__file__).parents[2] / "rules" / "tensor" / "softmax.grad"
INF = float("inf")
pytestmark = pytest.mark.shared_cache  # the searches are those of all who compile them


@cache
def _module(target: str) -> ModuleType:
    return gradspec.load(ROWS, target)


def _torch_derivatives(f: Any, row: list[float]) -> list[torch.Tensor]:
    """Value, gradient and second derivative, with upstream 0 where the value is -inf."""
    x = torch.tensor(row, dtype=torch.float64, requires_grad=True)
    y = f(x)
    weights = torch.arange(1.0, 1 + y.numel(), dtype=y.dtype).reshape(y.shape)
    weights = torch.where(y == -INF, 0.0, weights)
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
    found = _torch_derivatives(getattr(_module("torch"), name), row)
    wanted = _torch_derivatives(lambda x: own(x, -1), row)
    for value, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(value, other, equal_nan=True)


MASKS = [[True, False, True], [False, False, False], [True, True, True]]
ROW = [[0.5, 1e4, -1.0], [2.0, 1.0, 0.0], [-INF, 1.0, 2.0]]


def test_a_mask_in_torch() -> None:
    x = torch.tensor(ROW, dtype=torch.float64, requires_grad=True)
    keep = torch.tensor(MASKS)
    y = _module("torch").masked_softmax(x, keep)
    dy = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    (dx,) = torch.autograd.grad(y, x, dy, create_graph=True)
    (second,) = torch.autograd.grad((dx * dy).sum(), x)
    own = torch.where(keep, x, -INF).detach().requires_grad_()
    kept = torch.softmax(own, -1)
    (dkept,) = torch.autograd.grad(kept, own, dy, create_graph=True)
    (second_kept,) = torch.autograd.grad((dkept * dy).sum(), own)
    for value, wanted in ((y, kept), (dx, dkept), (second, second_kept)):
        torch.testing.assert_close(value[0], wanted[0])
        torch.testing.assert_close(value[2], wanted[2])
        assert not value[1].any()
        assert not value[~keep].any()


def test_a_mask_in_tensorflow() -> None:
    x, keep = tf.constant(ROW, tf.float64), tf.constant(MASKS)
    dy = tf.reshape(tf.range(9, dtype=tf.float64), (3, 3))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = _module("tf").masked_softmax(x, keep)
        dx = inner.gradient(y, x, dy)
        total = tf.reduce_sum(dx * dy)
    second = outer.gradient(total, x)
    for value in (y, dx, second):
        assert np.isfinite(value).all()
        assert not value.numpy()[~np.array(MASKS)].any()


def test_a_mask_in_numpy() -> None:
    module = _module("numpy")
    x, keep = np.array(ROW), np.array(MASKS)
    with np.errstate(all="raise"):
        y, pullback = module.masked_softmax_vjp(x, keep)
        dx, _ = pullback(np.ones((3, 3)))
    np.testing.assert_allclose(y.sum(axis=-1), [1.0, 0.0, 1.0])
    assert not y[~keep].any()
    assert not dx[~keep].any()
    assert np.isfinite(dx).all()
