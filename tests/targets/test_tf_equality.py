"""Equality of tensors, in TensorFlow: between tensors of a graph of TensorFlow 1 the operator
asks whether they are the same object, and is false without a word.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

RULES = """
rule picked(x[..., n], t: int) -> y:
    y = sum(x[j]**2 if j == t else 0 for j)

rule jumping(x, t: nograd) -> y:
    y = 3 * x if t != 0 else x

rule apart(x, y) -> z:
    z = hypot(x, y)

rule root(x) -> y:
    y = cbrt(x)
"""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


def _pass(rules: ModuleType) -> list[Any]:
    x = tf.constant([0.5, 0.0, -2.0], tf.float64)
    t = tf.constant([0.0, 1.0, 2.0], tf.float64)
    made = [
        rules.picked(x, tf.constant(2)),
        rules.jumping(x, t),
        rules.apart(x, tf.zeros_like(x)),
        rules.root(x),
    ]
    return [*made, *(tf.gradients(y, x)[0] for y in made[:2])]


def test_graphs_of_both_versions(rules: ModuleType) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        first = session.run(_pass(rules))
    second = tf.function(lambda: _pass(rules))()
    for old, new in zip(first, second, strict=True):
        assert np.allclose(old, new)
    picked, jumping, apart, root, _, slope = first
    assert picked == 4.0
    assert np.allclose(jumping, [0.5, 0.0, -6.0])
    assert np.allclose(apart, [0.5, 0.0, 2.0])
    assert np.allclose(root, np.cbrt([0.5, 0.0, -2.0]))
    assert np.allclose(slope, [1.0, 3.0, 3.0])
