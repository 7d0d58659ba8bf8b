"""Rules over named axes in TensorFlow, against NumPy by differences and PyTorch by
derivatives of both orders; in graphs that know no shape.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module
from tests.targets.indexed_rules import RULES

pytestmark = [pytest.mark.tf, pytest.mark.torch]
tf = pytest.importorskip("tensorflow")

Shapes = tuple[tuple[int, ...], ...]

LABELS = np.array([0, 2])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


def _inputs(shapes: Shapes) -> list[Any]:
    made = np.random.default_rng(sum(map(sum, shapes)))
    return [made.normal(size=shape) for shape in shapes]


def test_an_unknown_number_of_rows(rules: ModuleType) -> None:
    wanted = [tf.TensorSpec((None, 3), tf.float32)]
    graph = tf.function(rules.softmax, input_signature=wanted)
    for rows in (1, 4):
        np.testing.assert_allclose(
            graph(tf.ones((rows, 3))).numpy(), np.full((rows, 3), 1 / 3), rtol=1e-6
        )


def test_half_precision_is_rounded_once(rules: ModuleType) -> None:
    x = tf.constant(_inputs(((2, 3),))[0], tf.bfloat16)
    exact = rules.softmax(tf.cast(x, tf.float64)).numpy()
    found = rules.softmax(x)
    assert found.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(found, tf.float64).numpy(), exact, rtol=2**-8)


def test_labels_of_either_integer_type(rules: ModuleType) -> None:
    x = tf.constant(_inputs(((2, 3),))[0])
    narrow, wide = (
        rules.cross_entropy(x, tf.constant(LABELS, dtype))
        for dtype in (tf.int32, tf.int64)
    )
    np.testing.assert_array_equal(narrow.numpy(), wide.numpy())


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_outside_is_an_error(rules: ModuleType, label: int) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        rules.cross_entropy(tf.ones((2, 3)), tf.constant([0, label]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: m.linear(tf.ones((2, 3)), tf.ones((4, 5)), tf.ones(4)),
            r"linear: w must have the shape \[m, k\] with k = 3, not \(4, 5\)",
        ),
        (
            lambda m: m.softmax(tf.constant(1.0)),
            r"softmax: x must have the shape \[\.\.\., n\], not \(\)",
        ),
        (
            lambda m: m.mse(tf.ones((2, 3)), tf.ones(3)),
            r"mse: x must have the shape \[n\], not \(2, 3\)",
        ),
        (
            lambda m: m.window(tf.ones((2, 3))),
            r"window: x must have the shape \[\.\.\., k\] with k = 2, not \(2, 3\)",
        ),
        (
            lambda m: m.third(tf.ones((2, 3))),
            r"third: x must have the shape \[\.\.\., 4\], not \(2, 3\)",
        ),
    ],
)
def test_shapes_other_than_declared_are_refused(
    rules: ModuleType, call: Callable[[ModuleType], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(rules)


def test_shapes_that_a_graph_learns_late_are_refused_then(rules: ModuleType) -> None:
    signature = [tf.TensorSpec(None, tf.float32)] * 2
    graph = tf.function(rules.two, input_signature=signature)
    s, _ = graph(tf.ones((2, 3)), tf.ones(3))
    assert s.shape == (2,)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"two: w must have"):
        graph(tf.ones((2, 1)), tf.ones(3))
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph(tf.ones((2, 3)), tf.ones((2, 3)))
