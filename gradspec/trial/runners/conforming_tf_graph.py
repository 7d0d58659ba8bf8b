"""Conformance of TensorFlow modules: graphs, loops in them, and XLA."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from conforming import unused
from conforming_tf_setting import Setting, feature

# --- graphs ----------------------------------------------------------------------------


@feature("tf.function, values")
def values(s: Setting) -> Any:
    return s.listed(tf.function(s.outputs)(*s.floats))


@feature("tf.function, other calls between")
def calls_between(s: Setting) -> Any:
    """Python numbers are known when a graph is traced: other statics, another graph."""
    s.rule = tf.function(unused(s.rule, s.path, s.case))
    with tf.GradientTape() as recorded:
        s.moved()
        recorded.watch(s.floats)
        total = s.total(*s.floats)
        s.moved()
    return s.listed(recorded.gradient(total, s.floats, unconnected_gradients="zero"))


@feature("tf.function")
def graph(s: Setting) -> Any:
    return s.listed(tf.function(lambda *f: s.first(f))(*s.floats))


@feature("tf.function, unknown shapes")
def unknown_shapes(s: Setting) -> Any:
    specs = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in s.floats]
    return s.listed(tf.function(lambda *f: s.first(f), specs)(*s.floats))


@feature("tf.function, unknown ranks")
def unknown_ranks(s: Setting) -> Any:
    specs = [tf.TensorSpec(None, x.dtype) for x in s.floats]
    return s.listed(tf.function(lambda *f: s.first(f), specs)(*s.floats))


@feature("tf.gradients")
def gradients(s: Setting) -> Any:
    found = tf.function(lambda *f: tf.gradients(s.total(*f), list(f)))(*s.floats)
    return s.listed(found)


@feature("tf.function, second order")
def second_order(s: Setting) -> Any:
    return s.listed(tf.function(_second_of(s))(*s.floats))


def _second_of(s: Setting) -> Any:
    def second(*floats: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(floats)
            whole = s.probed(s.first(floats))
        return outer.gradient(whole, floats, unconnected_gradients="zero")

    return second


@feature("tf.function, ForwardAccumulator")
def accumulator(s: Setting) -> Any:
    return s.along(tf.function(lambda tangents: _pushed(s, tangents)))


def _pushed(s: Setting, tangents: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(s.floats, tangents) as forward:
        total = s.total(*s.floats)
    return forward.jvp(total, unconnected_gradients="zero")


@feature("gradient of a tf.function")
def gradient_of_graph(s: Setting) -> Any:
    return s.listed(s.gradient(tf.function(s.total), s.floats))


@feature("ForwardAccumulator of a tf.function")
def accumulator_of_graph(s: Setting) -> Any:
    s.rule = tf.function(s.rule)
    return s.along(lambda tangents: _pushed(s, tangents))


@feature("tf.gradients twice")
def gradients_twice(s: Setting) -> Any:
    def second(*floats: Any) -> Any:
        options = {"unconnected_gradients": "zero"}
        first = tf.gradients(s.total(*floats), floats, **options)
        return tf.gradients(s.probed(first), floats, **options)

    return s.listed(tf.function(second)(*s.floats))


@feature("while loop")
def while_loop(s: Setting) -> Any:
    return s.listed(tf.function(lambda *f: s.gradient(_looped(s), f))(*s.floats))


def _looped(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(k: Any, sum_: Any) -> Any:
            return k + 1, sum_ + tf.where(k == 0, 1.0, 0.0) * s.total(*floats)

        start = (tf.constant(0), 0.0)
        return tf.while_loop(lambda k, _: k < 2, step, start, maximum_iterations=2)[1]

    return total


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

    return s.listed(gradients(tf.constant(3), *s.floats))


@feature("switch_case")
def switch_case(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        ways = [lambda: 0.0, lambda: s.total(*floats)]
        return tf.switch_case(tf.cast(tf.size(floats[0]) > 0, tf.int32), ways)

    return s.listed(tf.function(lambda *f: s.gradient(total, f))(*s.floats))


@feature("scan")
def scan(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(sum_: Any, weight: Any) -> Any:
            return sum_ + weight * s.total(*floats)

        return tf.scan(step, tf.constant([0.0, 1.0]), 0.0)[-1]

    return s.listed(tf.function(lambda *f: s.gradient(total, f))(*s.floats))


@feature("cond")
def cond(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        flag = tf.reduce_all(floats[0] == floats[0])
        return tf.cond(flag, lambda: s.total(*floats), lambda: 0.0)

    return s.listed(tf.function(lambda *f: s.gradient(total, f))(*s.floats))


@feature("map_fn")
def map_fn(s: Setting) -> Any:
    stacked = [tf.stack([x, 2 * x]) for x in s.floats]
    kinds = [x.dtype for x in s.floats]
    found = tf.function(
        lambda *f: tf.map_fn(
            lambda row: tuple(s.first(row)), f, fn_output_signature=tuple(kinds)
        )
    )(*stacked)
    return s.listed([g[0] for g in found])


@feature("vectorized_map")
def vectorized_map(s: Setting) -> Any:
    stacked = tuple(tf.stack([x, 2 * x]) for x in s.floats)
    found = tf.vectorized_map(lambda f: tuple(s.first(f)), stacked)
    return s.listed([g[0] for g in found])


@feature("vectorized_map of one input")
def vectorized_map_of_one(s: Setting) -> Any:
    first, *others = s.floats
    rows = tf.vectorized_map(
        lambda x: tuple(s.first([x, *others])), tf.stack([first, 2 * first])
    )
    return s.listed([g[0] for g in rows])


@feature("vectorized_map in vectorized_map")
def vectorized_map_twice(s: Setting) -> Any:
    stacked = tuple(tf.stack([tf.stack([x, 2 * x])] * 3) for x in s.floats)
    found = tf.vectorized_map(
        lambda row: tf.vectorized_map(lambda f: tuple(s.first(f)), row), stacked
    )
    return s.listed([g[2, 0] for g in found])


@feature("batch_jacobian")
def batch_jacobian(s: Setting) -> Any:
    """Two calls in a batch of one operation: one input at a time."""
    found = []
    for place, x in enumerate(s.floats):
        two = tf.stack([x, 2 * x])
        with tf.GradientTape() as recorded:
            recorded.watch(two)
            totals = []
            for k in range(2):
                given = list(s.floats)
                given[place] = two[k]
                totals.append(s.total(*given))
            made = tf.stack(totals)[:, tf.newaxis]
        found.append(recorded.batch_jacobian(made, two)[0, 0])
    return s.listed(found)


@feature("tf.data")
def data(s: Setting) -> Any:
    rows = tf.data.Dataset.from_tensors(tuple(s.floats))
    (found,) = list(rows.map(lambda *f: tuple(s.outputs(*f))))
    return s.listed(found)


@feature("tf.data, gradients within")
def data_gradients(s: Setting) -> Any:
    rows = tf.data.Dataset.from_tensors(tuple(s.floats))
    (found,) = list(rows.map(lambda *f: tuple(s.first(f))))
    return s.listed(found)


# --- XLA -------------------------------------------------------------------------------


@feature("XLA, values")
def xla_values(s: Setting) -> Any:
    return s.listed(tf.function(s.outputs, jit_compile=True)(*s.floats))


@feature("XLA")
def xla(s: Setting) -> Any:
    return s.listed(tf.function(lambda *f: s.first(f), jit_compile=True)(*s.floats))


@feature("XLA, second order")
def xla_second(s: Setting) -> Any:
    return s.listed(tf.function(_second_of(s), jit_compile=True)(*s.floats))


@feature("XLA, while loop")
def xla_loop(s: Setting) -> Any:
    run = tf.function(lambda *f: s.gradient(_looped(s), f), jit_compile=True)
    return s.listed(run(*s.floats))


@feature("XLA, jacobian")
def xla_jacobian(s: Setting) -> Any:
    def rows(*floats: Any) -> Any:
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            total = tf.stack([s.total(*floats), 0.0])
        return recorded.jacobian(total, floats, unconnected_gradients="zero")

    found = tf.function(rows, jit_compile=True)(*s.floats)
    return s.listed([g[0] for g in found])


@feature("XLA, ForwardAccumulator")
def xla_accumulator(s: Setting) -> Any:
    run = tf.function(lambda tangents: _pushed(s, tangents), jit_compile=True)
    return s.along(run)
