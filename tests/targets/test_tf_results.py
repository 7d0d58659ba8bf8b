"""Gradients that use results, in TensorFlow: a tape keeps nothing else, and second
derivatives see through them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = """
rule both(x, t) -> (y, z):
    y = exp(x * t)
    z = t
    dx = dy * y * t
    dt = dy * y * x + dz

rule logistic(x) -> y:
    y = 1 / (1 + exp(-x))
    dx = dy * y * sigmoid(-x)

rule spread(x[..., n]) -> v:
    m = mean(x[j] for j)
    v = mean((x[j] - m)**2 for j)
    dx[i] = 2 * dv * (x[i] - m) / n
"""


@pytest.fixture(scope="module")
def rules() -> Iterator[ModuleType]:
    yield tf_module(RULES)


def _alive() -> int:
    gc.collect()
    return sum(isinstance(o, tf.Tensor) for o in gc.get_objects())


def test_a_tape_keeps_the_result_alone(rules: ModuleType) -> None:
    x = tf.ones(100)
    with tf.GradientTape() as tape:
        tape.watch(x)
        before = _alive()
        y = rules.logistic(x)
        assert _alive() <= before + 2  # as it is returned, and as it is kept
    assert np.allclose(tape.gradient(y, x), y * (1 - y))


def test_an_argument_among_the_results_is_another_tensor(rules: ModuleType) -> None:
    x, t = tf.constant([0.5]), tf.constant([0.25])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch((x, t))
        with tf.GradientTape() as inner:
            inner.watch((x, t))
            y, z = rules.both(x, t)
            total = y + 3 * z
        dx, dt = inner.gradient(total, (x, t))
    e = np.exp(0.125)
    assert np.allclose([dx, dt], [[0.25 * e], [0.5 * e + 3]])
    mixed = outer.gradient(dx, t)
    assert np.allclose(mixed, 1.125 * e)


DECLARED = """
rule tripled(x) -> y:
    y = exp(x)
    override dx = 3 * dy * y because "a marker"

rule sharpened(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
    override dx[i] = 2 * y[i] * dy[i] because "a marker"
"""


@pytest.mark.parametrize("compiled", (False, True))
def test_a_second_derivative_is_that_of_the_gradient_as_computed(
    compiled: bool,
) -> None:
    """Where it is declared, a result has another derivative than its values: the gradient
    does not see it through the declaration, in a graph or out of it.
    """
    declared = tf_module(DECLARED)
    x = tf.constant([0.5, -0.25], tf.float64)

    def second(x: Any, function: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            slope = inner.gradient(y, x)
        return slope, outer.gradient(slope, x)

    run = tf.function(second) if compiled else second
    e = np.exp([0.5, -0.25])
    assert np.allclose(run(x, declared.tripled), (3 * e, 3 * e))
    p = e / e.sum()
    slope, bend = run(x, declared.sharpened)
    assert np.allclose(slope, 2 * p)
    assert np.allclose(bend, 2 * (p - p * p.sum()))
