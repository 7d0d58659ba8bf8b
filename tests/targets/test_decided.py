"""Choices that statics decide: a branch that is a number has the shape of the other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.vjps import TARGETS, Array, upstream_of

RULES = """
rule root(x, k: static = -4.0) -> y:
    y = sqrt(k) * x if k > 0 else 0

rule two(x, t, k: static = -4.0) -> (y, z):
    y = sqrt(k) * x if k > 0 else 0
    z = y + t

rule chained(x, k: static = -4.0) -> y:
    h = x * k if k > 0 else 3
    y = h if k < 0 else x

rule rows(x[..., n], k: static = -4.0) -> y[..., n]:
    y[i] = (sqrt(k) * x[i] if k > 0 else 0) + 2 * x[i]

rule either(a[..., n], b[..., n], first: static int = 0) -> y[..., n]:
    y[i] = a[i] if first > 0 else b[i]

rule total(x[..., n], k: static = -4.0) -> y[...]:
    y = sum(x[i] * k if k > 0 else 3 for i) + x[0]
"""
X, T, W = np.ones(3), np.ones((2, 1)), np.ones((4, 2, 3))

CASES: list[
    tuple[str, tuple[Array, ...], tuple[tuple[float, tuple[int, ...]], ...]]
] = [
    ("root", (X,), ((0, (3,)),)),
    ("two", (X, T), ((0, (3,)), (1, (2, 3)))),
    ("chained", (X,), ((3, (3,)),)),
    ("rows", (W,), ((2, (4, 2, 3)),)),
    ("either", (W, X), ((1, (4, 2, 3)),)),
    ("either", (X, W), ((1, (4, 2, 3)),)),
    ("total", (W,), ((10, (4, 2)),)),
]
SLOPES = {"root": 0.0, "chained": 0.0, "rows": 2.0, "total": np.array([1.0, 0.0, 0.0])}
SHAPES = {"rows": (4, 2, 3), "total": (4, 2, 1)}


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
    if name in SLOPES:
        wanted = SLOPES[name] * upstream_of(found[0]).reshape(SHAPES.get(name, (3,)))
        np.testing.assert_allclose(gradients[0], wanted)
