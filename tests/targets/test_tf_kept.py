"""Rules that keep what the forward pass has computed, in TensorFlow: an eager tape keeps that
alone and nothing of the way to it; where the gradient is recorded, it is computed again, and a
derivative sees through it in every nesting.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = """
rule standard(x[..., n], g[n]) -> y[..., n]:
    m = mean(x[j] for j)
    c[i] = x[i] - m
    r = 1 / sqrt(mean(c[j]**2 for j) + 1 / 1000)
    z[i] = c[i] * r
    y[i] = g[i] * z[i]
    h[i] = dy[i] * g[i]
    dx[i] = r * (h[i] - mean(h[j] for j) - z[i] * mean(h[j] * z[j] for j))
    dg[i] = dy[i] * z[i]

rule tripled(x[..., n]) -> y[..., n]:
    r = exp(sum(x[j] for j))
    y[i] = x[i] * r
    override dx[i] = 3 * dy[i] * r because "a marker"

rule gated(x) -> y:
    s = 1 / (1 + exp(-x))
    y = x * s
    override dx = 3 * dy * s because "a marker"
    save s
"""

X = tf.constant([[0.3, -0.7, 1.2], [2.0, 0.8, -0.4]], tf.float64)
G = tf.constant([1.0, 2.0, 0.5], tf.float64)
V = tf.constant([[0.1, 1.0, -0.6], [0.4, -0.2, 0.9]], tf.float64)


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    yield tf_module(RULES)


def _along(f: Callable[[Any], Any], x: Any) -> Any:
    """The accumulator is gone when anything is made of the tangent."""
    with tf.autodiff.ForwardAccumulator(x, V) as along:
        y = f(x)
    return along.jvp(y)


def _twice(f: Callable[[Any], Any]) -> Any:
    return _along(lambda x: _along(f, x), X)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_accumulators_in_a_graph_of_a_rule_that_compares(
    rules: ModuleType, is_compiled: bool
) -> None:
    """A graph has no tangent of a tangent of a comparison: none may be recorded."""
    graph = tf.function(
        lambda: _twice(rules.gated), autograph=False, jit_compile=is_compiled
    )
    s = 1 / (1 + np.exp(-X.numpy()))
    wanted = 3 * s * (1 - s) * V.numpy() ** 2
    np.testing.assert_allclose(graph(), wanted, rtol=1e-9)
    np.testing.assert_allclose(_twice(rules.gated), wanted, rtol=1e-9)


def _alive() -> int:
    gc.collect()
    return sum(isinstance(o, tf.Tensor) for o in gc.get_objects())


def test_a_tape_keeps_what_the_gradient_uses(rules: ModuleType) -> None:
    with tf.GradientTape() as tape:
        tape.watch([X, G])
        before = _alive()
        y = rules.standard(X, G)
        # the result twice (the tape's, and of the forward pass), means and deviations
        assert _alive() <= before + 4
    assert tape.gradient(y, X).shape == X.shape
