"""Array operations that know axes, as TensorFlow text: values, gradients, graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from gradspec.runtime.tf import _axes
from gradspec.targets.expressions import Scope, render
from gradspec.targets.page import Page
from gradspec.targets.tf.dialect import DIALECT
from tests.targets.ranked_nodes import CASES, POSITIONS

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

_ALONE = [name for name in CASES if name not in ("arange", "spread number")]


@cache
def _function(name: str) -> Callable[..., Any]:
    scope = Scope(DIALECT, Page("rules.py", "xwt"))
    text = render(CASES[name][0], scope)
    found = eval(f"lambda x, w, t: {text}", {"tf": tf, **vars(_axes)})
    assert callable(found)
    return found


def _inputs(name: str) -> list[Any]:
    made = np.random.default_rng(7)
    shapes = [*CASES[name][1], (1,)][:2]
    return [tf.constant(made.normal(size=shape)) for shape in shapes]


def _unknown(function: Callable[..., Any]) -> Any:
    """As a graph that knows no shape and no rank."""
    wanted = [tf.TensorSpec(None, d) for d in (tf.float64, tf.float64, tf.int64)]
    return tf.function(function, input_signature=wanted)


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_what_numpy_says(name: str) -> None:
    x, w = _inputs(name)
    wanted = CASES[name][2](x.numpy(), w.numpy(), POSITIONS)
    for function in (_function(name), _unknown(_function(name))):
        found = function(x, w, tf.constant(POSITIONS))
        assert tuple(found.shape) == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", _ALONE)
def test_gradients_in_graphs_that_know_no_shape(name: str) -> None:
    function = _function(name)

    def gradient(x: Any, w: Any, t: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(tf.sin(function(x, w, t)))
        return tape.gradient(value, x)

    x, w = _inputs(name)
    found = _unknown(gradient)(x, w, tf.constant(POSITIONS))
    found = tf.convert_to_tensor(found).numpy()
    step, direction = 1e-6, np.random.default_rng(3).normal(size=x.shape)
    ahead, behind = (
        tf.reduce_sum(tf.sin(function(x + s * direction, w, tf.constant(POSITIONS))))
        for s in (step, -step)
    )
    slope = (ahead.numpy() - behind.numpy()) / (2 * step)
    np.testing.assert_allclose(np.sum(found * direction), slope, atol=1e-7)
