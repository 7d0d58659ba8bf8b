"""Choices that statics decide: a branch that is a number has the shape of the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.vjps import TARGETS, Array

RULES = """
rule root(x, k: static = -4.0) -> y:
    y = sqrt(k) * x if k > 0 else 0

rule two(x, t, k: static = -4.0) -> (y, z):
    y = sqrt(k) * x if k > 0 else 0
    z = y + t

rule chained(x, k: static = -4.0) -> y:
    h = x * k if k > 0 else 3
    y = h if k < 0 else x

rule root_of_rows(x[..., n], k: static = -4.0) -> y[..., n]:
    y[i] = sqrt(k) * x[i] if k > 0 else 0

rule two_rows(x[..., n], t[..., n], k: static = -4.0) -> (y[..., n], z[..., n]):
    y[i] = sqrt(k) * x[i] if k > 0 else 0
    z[i] = y[i] + t[i]

rule chained_rows(x[..., n], k: static = -4.0) -> y[..., n]:
    h[i] = x[i] * k if k > 0 else 3
    y[i] = h[i] if k < 0 else x[i]

rule total(x[..., n], k: static = -4.0) -> y[...]:
    h = sum(x[i] for i) * k if k > 0 else 3
    y = h * 2 if k < 0 else h
"""
X, T, W = np.ones(3), np.ones((2, 1)), np.ones((4, 2, 3))

CASES: list[
    tuple[str, tuple[Array, ...], tuple[tuple[float, tuple[int, ...]], ...]]
] = [
    ("root", (X,), ((0, (3,)),)),
    ("two", (X, T), ((0, (3,)), (1, (2, 3)))),
    ("chained", (X,), ((3, (3,)),)),
    ("root_of_rows", (W,), ((0, (4, 2, 3)),)),
    ("two_rows", (X, W), ((0, (3,)), (1, (4, 2, 3)))),
    ("two_rows", (W, X), ((0, (4, 2, 3)), (1, (4, 2, 3)))),
    ("chained_rows", (W,), ((3, (4, 2, 3)),)),
    ("total", (W,), ((6, (4, 2)),)),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "given", "outputs"), CASES)
def test_outputs_and_gradients_are_in_full(
    target: str,
    name: str,
    given: tuple[Array, ...],
    outputs: tuple[tuple[float, tuple[int, ...]], ...],
) -> None:
    framework, module, vjp = TARGETS[target]
    pytest.importorskip(framework)
    found, gradients = vjp(module(RULES), name, given)
    for output, (value, shape) in zip(found, outputs, strict=True):
        np.testing.assert_array_equal(output, np.full(shape, value))
    for x, gradient in zip(given, gradients, strict=True):
        assert gradient is not None
        assert gradient.shape == x.shape
    if len(given) == 1:
        np.testing.assert_array_equal(gradients[0], np.zeros(given[0].shape))
