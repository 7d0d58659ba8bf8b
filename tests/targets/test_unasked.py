"""Outputs that nothing is asked of: their upstream gradient is 0, whatever stands beside it."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.plan.array import names, nodes
from gradspec.targets import numpy as numpy_target
from gradspec.targets import tf as tf_target
from gradspec.targets.unasked import answered, uses_times
from tests.targets.emission import imported, planned

RULES = """
rule pair(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2
    dx = dz * (y + cos(x))
    dy = dz * x + dw * 2 * y

rule parts(x, y) -> (p, q):
    p = x / y
    q = x - y if x > y else y * x

rule single(x, y) -> z:
    z = x * y
"""
_INF = math.inf


def test_products_of_upstream_gradients_alone() -> None:
    pair, parts, single = planned(RULES).rules
    for rule in (pair, parts):
        gradients = [g for g in answered(rule).gradients if g is not None]
        assert all(uses_times(g.whole) for g in gradients)
        for part in nodes(*(g.whole for g in gradients)):
            if getattr(part, "primitive", "") == "times":
                factor, upstream = part.args
                assert {*names(upstream)} <= {*rule.upstream}
                assert {*names(factor)}.isdisjoint(rule.upstream)
    assert answered(single) is single


# --- NumPy ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(numpy_target.module(planned(RULES)), "numpy_unasked")


@pytest.mark.parametrize("size", (1, 3, 5000))
def test_numpy_of_what_is_infinite(rules: ModuleType, size: int) -> None:
    x, y = np.full(size, _INF), np.full(size, 2.0)
    _, pullback = rules.pair_vjp(x, y)
    ones, zeros = np.ones(size), np.zeros(size)
    with np.errstate(invalid="ignore"):
        dx, dy = pullback(zeros, ones)
        assert (dx.tolist(), dy.tolist()) == ([0.0] * size, [4.0] * size)
        assert pullback(ones, zeros)[1].tolist() == [_INF] * size


def test_numpy_where_it_is_asked_of_some(rules: ModuleType) -> None:
    """The first of them tells nothing of the others."""
    x, y = np.array([1.0, 2.0, -3.0]), np.array([0.5, 4.0, 1.5])
    dz, dw = np.array([0.0, 1.0, -2.0]), np.array([3.0, 0.0, 0.25])
    _, pullback = rules.pair_vjp(x, y)
    dx, dy = pullback(dz, dw)
    np.testing.assert_allclose(dx, dz * (y + np.cos(x)))
    np.testing.assert_allclose(dy, dz * x + dw * 2 * y)


def test_numpy_keeps_shapes(rules: ModuleType) -> None:
    x, y = np.full((3, 1), _INF, np.float32), np.ones(4, np.float32)
    _, pullback = rules.pair_vjp(x, y)
    with np.errstate(invalid="ignore"):
        dx, dy = pullback(0.0, np.ones(4, np.float32))
    assert (dx.shape, dy.shape, dx.dtype) == ((3, 1), (4,), np.float32)
    assert dx.tolist() == [[0.0]] * 3
    assert dy.tolist() == [2.0] * 4
    empty = np.empty((0, 4), np.float32)
    _, pullback = rules.pair_vjp(empty, empty)
    assert [d.shape for d in pullback(empty, empty)] == [(0, 4)] * 2


# --- TensorFlow ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def tf_rules(tf: Any) -> ModuleType:
    return imported(tf_target.module(planned(RULES)), "tf_unasked")


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
@pytest.mark.parametrize("compiled", (False, True))
def test_tensorflow_of_what_is_infinite(
    tf: Any, tf_rules: ModuleType, dtype: str, compiled: bool
) -> None:
    def slopes(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            _, w = tf_rules.pair(x, y)
        return tape.gradient(w, [x, y])

    run = tf.function(slopes, jit_compile=True) if compiled else slopes
    dx, dy = run(tf.constant([_INF, 1.0], dtype), tf.constant([2.0, 3.0], dtype))
    assert dx.numpy().tolist() == [0.0, 0.0]
    assert dy.numpy().tolist() == [4.0, 6.0]


@pytest.mark.tf
def test_tensorflow_differentiates_by_what_is_not_asked(
    tf: Any, tf_rules: ModuleType
) -> None:
    """The slope in an upstream gradient is the same where that is 0."""
    x, y = tf.constant([1.5, -2.0]), tf.constant([0.5, 3.0])
    dz, dw = tf.zeros(2), tf.zeros(2)
    with tf.GradientTape() as outer:
        outer.watch([dz, dw])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            z, w = tf_rules.pair(x, y)
            whole = tf.reduce_sum(dz * z + dw * w)
        dy = inner.gradient(whole, y)
    of_dz, of_dw = outer.gradient(dy, [dz, dw])
    np.testing.assert_allclose(of_dz, x)
    np.testing.assert_allclose(of_dw, 2 * y)
