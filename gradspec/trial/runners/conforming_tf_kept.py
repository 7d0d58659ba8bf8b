"""Conformance of TensorFlow modules: saved, and loaded in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

import tensorflow as tf
from conforming import require
from conforming_tf_setting import Setting, feature

_RELOADED = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
given, probes, order = json.loads(sys.argv[2])
floats = [tf.constant(v, shape=s) for s, v in given]
probes = [tf.constant(v, shape=s) for s, v in probes]
zero = {"unconnected_gradients": "zero"}
with tf.GradientTape() as outer:
    outer.watch(floats)
    with tf.GradientTape() as tape:
        tape.watch(floats)
        total = model.total(*floats)
    gradients = tape.gradient(total, floats, **zero)
    whole = sum(tf.reduce_sum(g * p) for g, p in zip(gradients, probes))
if order == 2:
    gradients = outer.gradient(whole, floats, **zero)
print(json.dumps([[g.shape.as_list(), tf.reshape(g, [-1]).numpy().tolist()]
                  for g in gradients]))
"""


def _reloaded(s: Setting, specs: list[Any], order: int) -> Any:
    model = tf.Module()
    model.total = tf.function(s.total, input_signature=specs)
    given = json.dumps([s.listed(s.floats), s.listed(s.probes), order])
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder)
        child = subprocess.run(
            [sys.executable, "-c", _RELOADED, folder, given],
            capture_output=True,
            text=True,
            check=False,
        )
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    require(child.returncode == 0, last)
    return json.loads(child.stdout.splitlines()[-1])


def _specs(s: Setting) -> list[Any]:
    return [tf.TensorSpec(x.shape, x.dtype) for x in s.floats]


@feature("SavedModel, in a fresh process")
def saved_model(s: Setting) -> Any:
    return _reloaded(s, _specs(s), 1)


@feature("SavedModel, unknown shapes")
def saved_model_of_any_shape(s: Setting) -> Any:
    specs = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in s.floats]
    return _reloaded(s, specs, 1)


@feature("SavedModel, second order")
def saved_model_twice(s: Setting) -> Any:
    return _reloaded(s, _specs(s), 2)
