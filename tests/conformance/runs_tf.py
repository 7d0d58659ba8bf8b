"""Features of the runtime for TensorFlow: tapes, accumulators, graphs, XLA, SavedModel,
layers of Keras, several devices."""

from __future__ import annotations

import functools
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from more import by_keyword, calls_between, copied, each_alone

from gradspec.measure.frameworks.on_tf import (
    ZERO,
    Setting,
    feature,
    in_graph,
    mapped,
    pushed,
)
from gradspec.measure.frameworks.setting import do_job
from gradspec.measure.frameworks.shared import first_of, require

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
# Two devices for `MirroredStrategy`; they must be asked for before anything runs.

# --- eager -----------------------------------------------------------------------------


def _custom(s: Any) -> Any:
    @tf.custom_gradient
    def total(*floats: Any) -> Any:
        found = s.first(*floats)
        return s.total(*floats), lambda upstream: [upstream * g for g in found]

    return s.of(total)


def _variables(s: Any) -> Any:
    weights = list(map(tf.Variable, s.floats))
    with tf.GradientTape() as recorded:
        total = s.total(*weights)
    return recorded.gradient(total, weights)


def _moved(s: Any, place: int, tangent: Any) -> list[Any]:
    """Tangents of the inputs: of one of them, zero for the others."""
    return [tangent if k == place else tf.zeros_like(x) for k, x in enumerate(s.floats)]


def _accumulator_in_tape(s: Any) -> Any:
    """The gradients of tangents, one element of the probes at a time."""
    wholes = [tf.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        for unit in s.units(probe):
            tangents = _moved(s, place, probe * unit)
            found = s.of(lambda *f, t=tangents: pushed(s.total, f, t))
            wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return wholes


def _accumulator_twice(s: Any) -> Any:
    def once(*floats: Any) -> Any:
        moved = (_moved(s, place, probe) for place, probe in enumerate(s.probes))
        return sum(pushed(s.total, floats, tangents) for tangents in moved)

    return s.along(lambda tangents: pushed(once, s.floats, tangents))


def _jacobian_of_gradient(s: Any) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        first = s.first()
    return s.contracted([recorded.jacobian(g, list(s.floats), **ZERO) for g in first])


feature |= {
    "variables": _variables,
    "keyword call": lambda s: by_keyword(s).first(),
    "one input at a time": each_alone,
    "other calls between": calls_between,
    "tf.function, other calls between": lambda s: calls_between(s, tf.function),
    "custom_gradient around": _custom,
    "accumulator in a tape": _accumulator_in_tape,
    "accumulator in an accumulator": _accumulator_twice,
    "jacobian of a gradient": _jacobian_of_gradient,
    "recompute_grad": lambda s: s.of(tf.recompute_grad(s.total)),
    "recompute_grad, second order": lambda s: s.of(
        s.probing(tf.recompute_grad(s.total))
    ),
    "pickle and deepcopy": copied,
}

# --- graphs ----------------------------------------------------------------------------


def _while(s: Any, *floats: Any) -> Any:
    def step(k: Any, whole: Any) -> Any:
        return k + 1, whole + tf.where(k == 0, 1.0, 0.0) * s.total(*floats)

    start = (tf.constant(0), 0.0)
    return tf.while_loop(lambda k, _: k < 2, step, start, maximum_iterations=2)[1]


def _scan(s: Any, *floats: Any) -> Any:
    def step(whole: Any, weight: Any) -> Any:
        return whole + weight * s.total(*floats)

    return tf.scan(step, tf.constant([0.0, 1.0]), 0.0)[-1]


def _cond(s: Any, *floats: Any) -> Any:
    flag = tf.reduce_all(floats[0] == floats[0])
    return tf.cond(flag, lambda: s.total(*floats), lambda: 0.0)


def _within(function: Any, **options: Any) -> Any:
    """The gradients of a use of the rule, in a graph."""
    return lambda s: in_graph(s, functools.partial(function, s), **options)


def _rows(s: Any, *floats: Any) -> Any:
    return tf.map_fn(
        lambda row: tuple(s.first(*row)),
        floats,
        fn_output_signature=tuple(x.dtype for x in s.floats),
    )


def _gradients(s: Any, *floats: Any) -> Any:
    return tf.gradients(s.total(*floats), list(floats), **ZERO)


def _pushed_graph(s: Any) -> Any:
    s.rule = tf.function(s.rule)
    return feature["ForwardAccumulator"](s)


def _push_in_graph(**options: Any) -> Any:
    return lambda s: s.along(
        tf.function(lambda t: pushed(s.total, s.floats, t), **options)
    )


def _data(s: Any) -> Any:
    rows = tf.data.Dataset.from_tensors(tuple(s.floats))
    (found,) = list(rows.map(lambda *f: tuple(s.first(*f))))
    return found


def _map_of_one(s: Any) -> Any:
    others = s.floats[1:]
    return first_of(mapped(lambda x: s.first(x, *others), s.stacked()[:1]))


def _map_twice(s: Any) -> Any:
    thrice = [tf.stack([x] * 3) for x in s.stacked()]
    found = mapped(lambda *row: mapped(s.first, row), thrice)
    return [g[2, 0] for g in found]


def _jacobian(s: Any, *floats: Any) -> Any:
    with tf.GradientTape() as recorded:
        recorded.watch(floats)
        total = tf.stack([s.total(*floats), 0.0])
    return recorded.jacobian(total, floats, **ZERO)


feature |= {
    "tf.function, values": lambda s: tf.function(s.outputs)(*s.floats),
    "tf.function, ForwardAccumulator": _push_in_graph(),
    "XLA, ForwardAccumulator": _push_in_graph(jit_compile=True),
    "gradient of a tf.function": lambda s: s.of(tf.function(s.total)),
    "ForwardAccumulator of a tf.function": _pushed_graph,
    "tf.gradients": lambda s: tf.function(functools.partial(_gradients, s))(*s.floats),
    "while loop": _within(_while),
    "XLA, while loop": _within(_while, jit_compile=True),
    "scan": _within(_scan),
    "cond": _within(_cond),
    "map_fn": lambda s: first_of(
        tf.function(functools.partial(_rows, s))(*s.stacked())
    ),
    "vectorized_map of one input": _map_of_one,
    "vectorized_map in vectorized_map": _map_twice,
    "tf.data, gradients within": _data,
    "XLA, jacobian": lambda s: first_of(
        tf.function(functools.partial(_jacobian, s), jit_compile=True)(*s.floats)
    ),
}

# --- saved, and loaded in a fresh process ----------------------------------------------

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


def _reloaded(order: int, shape: Any = lambda x: x.shape) -> Any:
    def run(s: Any) -> Any:
        model = tf.Module()
        specs = [tf.TensorSpec(shape(x), x.dtype) for x in s.floats]
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
        return [s.tensor(g, "float") for g in json.loads(child.stdout.splitlines()[-1])]

    return run


feature |= {
    "SavedModel, in a fresh process": _reloaded(1),
    "SavedModel, unknown shapes": _reloaded(1, lambda x: [None] * len(x.shape)),
    "SavedModel, second order": _reloaded(2),
}

# --- two devices -----------------------------------------------------------------------


@functools.cache
def _strategy() -> Any:
    """One for the process: collective operations of several would take turns."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def _mirrored(s: Any) -> Any:
    """Each replica has every other element of the upstream gradients."""
    strategy = _strategy()
    with strategy.scope():
        weights = [tf.Variable(x) for x in s.floats]
    places = [tf.reshape(tf.range(tf.size(u)), u.shape) for u in s.upstream]
    pairs = list(zip(s.upstream, places, strict=True))

    def each() -> Any:
        context = tf.distribute.get_replica_context()
        here = context.replica_id_in_sync_group
        s.upstream = [u * tf.cast(p % 2 == here, u.dtype) for u, p in pairs]
        with tf.GradientTape() as tape:
            total = s.total(*map(tf.convert_to_tensor, weights))
        return context.all_reduce("SUM", tape.gradient(total, weights, **ZERO))

    found = tf.function(lambda: strategy.run(each))()
    return [strategy.experimental_local_results(g)[0] for g in found]


feature["MirroredStrategy, two devices"] = _mirrored


if __name__ == "__main__":
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    if not {one["name"] for one in job["features"]} <= {*feature}:
        importlib.import_module("tf_layers")
    do_job(Setting, feature)
