"""Conformance of TensorFlow modules: tapes, accumulators, graphs, XLA, SavedModel."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf
from conforming import EAGER, emptied, main, require, tf_module, unused
from setting_tf import ZERO, Setting, feature

_accumulator = tf.autodiff.ForwardAccumulator
Tangents = Any

# --- eager -----------------------------------------------------------------------------


def _with_tape(s: Setting) -> Any:
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        return s.outputs(*s.floats)


def _pushed(s: Setting, tangents: Tangents, at: Any = None) -> Any:
    at = s.floats if at is None else at
    with _accumulator(list(at), list(tangents)) as forward:
        total = s.total(*at)
    return forward.jvp(total, **ZERO)


def _over_variables(s: Setting) -> Any:
    weights = list(map(tf.Variable, s.floats))
    return s.along(lambda tangents: _pushed(s, tangents, weights))


def _tape_pushed(s: Setting, tangents: Tangents) -> Any:
    with _accumulator(list(s.floats), list(tangents)) as forward:
        whole = s.probed(s.first())
    return forward.jvp(whole, **ZERO)


def _eagerly(run: Callable[[], Any]) -> Any:
    tf.config.run_functions_eagerly(True)
    try:
        return run()
    finally:
        tf.config.run_functions_eagerly(False)


def _first_in_graph(s: Setting, **options: Any) -> Any:
    return tf.function(s.first, **options)(*s.floats)


feature |= EAGER
feature |= {
    "values": _with_tape,
    "tape": lambda s: s.first(),
    "nested tapes": lambda s: s.second(),
    "three tapes": lambda s: s.of(lambda *f: s.probed(s.second(*f))),
    "ForwardAccumulator": lambda s: s.along(lambda t: _pushed(s, t)),
    "ForwardAccumulator over variables": _over_variables,
    "tape in an accumulator": lambda s: s.along(lambda t: _tape_pushed(s, t)),
    "recompute_grad": lambda s: s.of(tf.recompute_grad(s.total)),
    "recompute_grad, second order": lambda s: s.of(
        lambda *f: s.probed(s.gradient(tf.recompute_grad(s.total), f))
    ),
    "functions run eagerly": lambda s: _eagerly(lambda: _first_in_graph(s)),
    "functions run eagerly, ForwardAccumulator": lambda s: _eagerly(
        lambda: s.along(lambda t: _pushed(s, t))
    ),
}


@feature("one input at a time")
def one_input(s: Setting) -> Any:
    found = []
    for place, x in enumerate(s.floats):
        given = list(s.floats)
        with tf.GradientTape() as recorded:
            given[place] = tf.identity(x)
            recorded.watch(given[place])
            total = s.total(*given)
        found.append(recorded.gradient(total, given[place]))
    return found


@feature("persistent tape")
def persistent(s: Setting) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        total = s.total(*s.floats)
    recorded.gradient(total, s.floats)
    return recorded.gradient(total, s.floats, **ZERO)


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own gradient has."""
    s.rule = unused(s.rule, s.path, s.case)
    s.moved()
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        total = s.total(*s.floats)
    s.moved()
    return recorded.gradient(total, s.floats, **ZERO)


@feature("float64")
def float64(s: Setting) -> Any:
    s.double()
    found = s.first()
    require(all(g.dtype == tf.float64 for g in found), "not float64")
    return found


@feature("custom_gradient around")
def within_custom_gradient(s: Setting) -> Any:
    @tf.custom_gradient
    def total(*floats: Any) -> Any:
        found = s.first(*floats)
        return s.total(*floats), lambda upstream: [upstream * g for g in found]

    return s.of(total)


@feature("py_function")
def py_function(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        return tf.py_function(s.total, floats, tf.float32)

    return tf.function(lambda *f: s.gradient(total, f))(*s.floats)


@feature("ragged, map_flat_values")
def ragged(s: Setting) -> None:
    """The first input's elements as rows of different lengths."""
    if len(s.inputs) > 1 or len(s.case["outputs"]) > 1 or s.case["axes"]:
        return
    flat = tf.reshape(s.floats[0], [-1])
    rows = tf.RaggedTensor.from_row_lengths(flat, [1, len(flat) - 1])
    call = functools.partial(s.rule, **s.case["statics"])
    with tf.GradientTape() as recorded:
        recorded.watch(rows.flat_values)
        made = tf.ragged.map_flat_values(call, rows).flat_values
        whole = tf.reduce_sum(made * tf.reshape(s.upstream[0], [-1]))
    got = recorded.gradient(whole, rows.flat_values)
    true = tf.reshape(s.first()[0], [-1])
    require(bool(tf.reduce_all(got == true)), "differs")


@feature("variables")
def variables(s: Setting) -> Any:
    weights = [tf.Variable(x) for x in s.floats]
    with tf.GradientTape() as recorded:
        total = s.total(*weights)
    return recorded.gradient(total, weights)


@feature("accumulator in a tape")
def accumulator_in_tape(s: Setting) -> Any:
    """The gradients of tangents, one element of the probes at a time."""
    wholes = [tf.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        for unit in s.units(probe):
            tangents = [tf.zeros_like(x) for x in s.floats]
            tangents[place] = probe * unit
            found = s.of(lambda *f, t=tangents: _pushed(s, t, f))
            wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return wholes


@feature("accumulator in an accumulator")
def accumulator_twice(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        with _accumulator(list(s.floats), list(tangents)) as outer:
            whole = 0.0
            for place, probe in enumerate(s.probes):
                moved = [tf.zeros_like(x) for x in s.floats]
                moved[place] = probe
                whole += _pushed(s, moved)
        return outer.jvp(whole, **ZERO)

    return s.along(push)


def _jacobian(s: Setting, totals: Any, **options: Any) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        made = tf.stack(totals(*s.floats))
    return [g[0] for g in recorded.jacobian(made, list(s.floats), **options)]


feature |= {
    "jacobian": lambda s: _jacobian(s, lambda *f: [s.total(*f)]),
    "jacobian without pfor": lambda s: _jacobian(
        s, lambda *f: [s.total(*f)], experimental_use_pfor=False
    ),
}


@feature("jacobian of a gradient")
def jacobian_of_gradient(s: Setting) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        first = s.first()
    return s.contracted([recorded.jacobian(g, list(s.floats), **ZERO) for g in first])


@feature("empty tensors")
def empty(s: Setting) -> None:
    s.inputs = emptied(s.case, s.inputs)
    found = s.of(lambda *f: sum(map(tf.reduce_sum, s.outputs(*f))))
    shapes = [tuple(g.shape) for g in found]
    require(shapes == [tuple(x.shape) for x in s.floats], f"shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    s.upstream = [tf.cast(u, tf.bfloat16) for u in s.upstream]
    floats = [tf.cast(x, tf.bfloat16) for x in s.floats]
    kinds = {y.dtype for y in s.outputs(*floats)}
    require(kinds == {tf.bfloat16}, "results not bfloat16")
    found = s.first(*floats)
    require(all(g.dtype == tf.bfloat16 for g in found), "not bfloat16")
    return found


# --- graphs ----------------------------------------------------------------------------


def _unknown(s: Setting, shape: Callable[[Any], Any]) -> Any:
    specs = [tf.TensorSpec(shape(x), x.dtype) for x in s.floats]
    return _first_in_graph(s, input_signature=specs)


def _gradients(s: Setting, floats: Any) -> Any:
    return tf.gradients(s.total(*floats), list(floats), **ZERO)


def _of_in_graph(s: Setting, total: Any, **options: Any) -> Any:
    """The gradients of a function, in a graph."""
    return tf.function(lambda *f: s.gradient(total, f), **options)(*s.floats)


def _while(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(k: Any, whole: Any) -> Any:
            return k + 1, whole + tf.where(k == 0, 1.0, 0.0) * s.total(*floats)

        start = (tf.constant(0), 0.0)
        return tf.while_loop(lambda k, _: k < 2, step, start, maximum_iterations=2)[1]

    return total


def _switch(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        ways = [lambda: 0.0, lambda: s.total(*floats)]
        return tf.switch_case(tf.cast(tf.size(floats[0]) > 0, tf.int32), ways)

    return total


def _scan(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(whole: Any, weight: Any) -> Any:
            return whole + weight * s.total(*floats)

        return tf.scan(step, tf.constant([0.0, 1.0]), 0.0)[-1]

    return total


def _cond(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        flag = tf.reduce_all(floats[0] == floats[0])
        return tf.cond(flag, lambda: s.total(*floats), lambda: 0.0)

    return total


def _rows(s: Setting, *floats: Any) -> Any:
    return tf.map_fn(
        lambda row: tuple(s.first(*row)),
        floats,
        fn_output_signature=tuple(x.dtype for x in s.floats),
    )


def _mapped(s: Setting, inner: Any, stacked: Any) -> Any:
    return tf.vectorized_map(lambda f: tuple(inner(*f)), tuple(stacked))


def _accumulated_graph(s: Setting) -> Any:
    s.rule = tf.function(s.rule)
    return s.along(lambda t: _pushed(s, t))


def _data(s: Setting, function: Any) -> Any:
    rows = tf.data.Dataset.from_tensors(tuple(s.floats))
    (found,) = list(rows.map(lambda *f: tuple(function(*f))))
    return found


_XLA = {"jit_compile": True}

feature |= {
    "tf.function, values": lambda s: tf.function(s.outputs)(*s.floats),
    "tf.function": _first_in_graph,
    "tf.function, unknown shapes": lambda s: _unknown(
        s, lambda x: [None] * len(x.shape)
    ),
    "tf.function, unknown ranks": lambda s: _unknown(s, lambda x: None),
    "tf.function, second order": lambda s: tf.function(s.second)(*s.floats),
    "tf.function, ForwardAccumulator": lambda s: s.along(
        tf.function(lambda t: _pushed(s, t))
    ),
    "gradient of a tf.function": lambda s: s.of(tf.function(s.total)),
    "ForwardAccumulator of a tf.function": _accumulated_graph,
    "tf.gradients": lambda s: tf.function(lambda *f: _gradients(s, f))(*s.floats),
    "tf.gradients twice": lambda s: tf.function(
        lambda *f: tf.gradients(s.probed(_gradients(s, f)), list(f), **ZERO)
    )(*s.floats),
    "while loop": lambda s: _of_in_graph(s, _while(s)),
    "switch_case": lambda s: _of_in_graph(s, _switch(s)),
    "scan": lambda s: _of_in_graph(s, _scan(s)),
    "cond": lambda s: _of_in_graph(s, _cond(s)),
    "map_fn": lambda s: [
        g[0] for g in tf.function(functools.partial(_rows, s))(*s.stacked())
    ],
    "vectorized_map": lambda s: [g[0] for g in _mapped(s, s.first, s.stacked())],
    "vectorized_map in vectorized_map": lambda s: [
        g[2, 0]
        for g in _mapped(
            s,
            lambda *row: _mapped(s, s.first, row),
            [tf.stack([x] * 3) for x in s.stacked()],
        )
    ],
    "tf.data": lambda s: _data(s, s.outputs),
    "tf.data, gradients within": lambda s: _data(s, s.first),
    "XLA, values": lambda s: tf.function(s.outputs, **_XLA)(*s.floats),
    "XLA": lambda s: _first_in_graph(s, **_XLA),
    "XLA, second order": lambda s: tf.function(s.second, **_XLA)(*s.floats),
    "XLA, while loop": lambda s: _of_in_graph(s, _while(s), **_XLA),
    "XLA, ForwardAccumulator": lambda s: s.along(
        tf.function(lambda t: _pushed(s, t), **_XLA)
    ),
}


@feature("tf.function, other calls between")
def graph_calls_between(s: Setting) -> Any:
    """Python numbers are known when a graph is traced: other statics, another graph."""
    s.rule = tf.function(unused(s.rule, s.path, s.case))
    with tf.GradientTape() as recorded:
        s.moved()
        recorded.watch(s.floats)
        total = s.total(*s.floats)
        s.moved()
    return recorded.gradient(total, s.floats, **ZERO)


@feature("autograph loop")
def autograph_loop(s: Setting) -> Any:
    @tf.function
    def gradients(count: Any, *floats: Any) -> Any:
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            whole = 0.0
            for k in tf.range(count):
                if k == 1:
                    whole += s.total(*floats)
        return recorded.gradient(whole, floats, unconnected_gradients="zero")

    return gradients(tf.constant(3), *s.floats)


@feature("vectorized_map of one input")
def vectorized_map_of_one(s: Setting) -> Any:
    first, *others = s.floats
    rows = tf.vectorized_map(
        lambda x: tuple(s.first(x, *others)), tf.stack([first, 2 * first])
    )
    return [g[0] for g in rows]


@feature("batch_jacobian")
def batch_jacobian(s: Setting) -> Any:
    """Two calls in a batch of one operation: one input at a time."""
    found = []
    for place, two in enumerate(s.stacked()):
        with tf.GradientTape() as recorded:
            recorded.watch(two)
            totals = []
            for k in range(2):
                given = list(s.floats)
                given[place] = two[k]
                totals.append(s.total(*given))
            made = tf.stack(totals)[:, tf.newaxis]
        found.append(recorded.batch_jacobian(made, two)[0, 0])
    return found


@feature("XLA, jacobian")
def xla_jacobian(s: Setting) -> Any:
    def rows(*floats: Any) -> Any:
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            total = tf.stack([s.total(*floats), 0.0])
        return recorded.jacobian(total, floats, **ZERO)

    return [g[0] for g in tf.function(rows, **_XLA)(*s.floats)]


# --- saved, and loaded in a fresh process ------------------------------------------------

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


def _reloaded(s: Setting, shape: Callable[[Any], Any], order: int) -> Any:
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


feature |= {
    "SavedModel, in a fresh process": lambda s: _reloaded(s, lambda x: x.shape, 1),
    "SavedModel, unknown shapes": lambda s: _reloaded(
        s, lambda x: [None] * len(x.shape), 1
    ),
    "SavedModel, second order": lambda s: _reloaded(s, lambda x: x.shape, 2),
}


if __name__ == "__main__":
    parts = dict.fromkeys(("keras", "strategy"), "conforming_tf_keras")
    main(feature, Setting, tf_module, parts)
