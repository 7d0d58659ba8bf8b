"""TensorFlow modules where shapes are known late, or are told as TensorFlow 1 tells them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradspec.driver.imported import put
from tests.targets.emission import emitted_module, tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

PRODUCT = """
rule product(x, y) -> z:
    z = x * y**2
    override dx = 3 * dz * y**2 because "a marker"
    override dy = 6 * dz * x * y because "a marker"
"""


def test_a_broadcast_in_a_loop_under_xla_twice_differentiated() -> None:
    """A sum over axes that only the graph knows has a derivative whose shape XLA cannot
    find in a loop, unless the axes are kept.
    """
    product = tf_module(PRODUCT).product

    def second(x: Any, y: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch([x, y])
                _, total = tf.while_loop(
                    lambda k, _: k < 2,
                    lambda k, total: (k + 1, total + tf.reduce_sum(product(x, y))),
                    (0, 0.0),
                    maximum_iterations=2,
                )
            dx, dy = inner.gradient(total, [x, y])
            whole = tf.reduce_sum(dx**2) + tf.reduce_sum(dy**2)
        return outer.gradient(whole, [x, y])

    draw = np.random.default_rng(3).normal
    x = tf.constant(draw(size=(2, 1)), tf.float32)
    y = tf.constant(draw(size=(1, 3)), tf.float32)
    compiled = tf.function(second, jit_compile=True)(x, y)
    for got, want in zip(compiled, second(x, y), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


_OF_TENSORFLOW_1 = """
import json, sys
import tensorflow as tf
sys.path.insert(0, sys.argv[1])
tf.compat.v1.disable_v2_behavior()
from product import rules as rows
x = tf.compat.v1.placeholder(tf.float32, [None, None])
g = tf.compat.v1.placeholder(tf.float32, [None])
found = tf.compat.v1.gradients(rows.scaled(x, g), [x, g])
with tf.compat.v1.Session() as session:
    found = session.run(found, {x: [[1, 2], [3, 4]], g: [5, 6]})
print(json.dumps([d.tolist() for d in found]))
"""


def test_sizes_that_tensorflow_1_does_not_know(tmp_path: Path) -> None:
    """There the size of an axis is an object, also where it is unknown."""
    rules = (
        "rule scaled(x[..., n], g[n]) -> y[..., n]:\n"
        "    m = sum(x[j] for j) / n\n"
        "    y[i] = (x[i] - m) * g[i]\n"
    )
    put(tmp_path / "product", emitted_module(rules, "tf"))
    made = subprocess.run(
        [sys.executable, "-c", _OF_TENSORFLOW_1, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    dx, dg = json.loads(made.stdout)
    np.testing.assert_allclose(dx, [[-0.5, 0.5], [-0.5, 0.5]])
    np.testing.assert_allclose(dg, [-1, 1])
