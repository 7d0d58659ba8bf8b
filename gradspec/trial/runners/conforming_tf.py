"""Conformance of TensorFlow modules: tapes and graphs."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import copy
import pickle
from typing import Any

import conforming_tf_kept  # noqa: F401  (registers its features)
import tensorflow as tf
from conforming import main, require
from conforming_tf_setting import Setting, feature

# --- eager -----------------------------------------------------------------------------


@feature("tape")
def tape(s: Setting) -> Any:
    return s.listed(s.first(s.floats))


@feature("nested tapes")
def nested_tapes(s: Setting) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(s.floats)
        whole = s.probed(s.first(s.floats))
    return s.listed(outer.gradient(whole, s.floats, unconnected_gradients="zero"))


@feature("three tapes")
def three_tapes(s: Setting) -> None:
    with tf.GradientTape() as outer:
        outer.watch(s.floats)
        with tf.GradientTape() as middle:
            middle.watch(s.floats)
            whole = s.probed(s.first(s.floats))
        second = middle.gradient(whole, s.floats, unconnected_gradients="zero")
        again = s.probed(second)
    third = outer.gradient(again, s.floats, unconnected_gradients="zero")
    finite = [bool(tf.reduce_all(tf.math.is_finite(g))) for g in third]
    require(all(finite), "not finite")


@feature("variables")
def variables(s: Setting) -> Any:
    weights = [tf.Variable(x) for x in s.floats]
    with tf.GradientTape() as recorded:
        total = s.total(*weights)
    return s.listed(recorded.gradient(total, weights))


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names, rule = [name for name, _ in s.case["inputs"]], s.rule
    s.rule = lambda *given, **statics: rule(
        **dict(zip(names, given, strict=True)), **statics
    )
    return tape(s)


@feature("ForwardAccumulator")
def accumulator(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(s.floats, tangents) as forward:
            total = s.total(*s.floats)
        return forward.jvp(total, unconnected_gradients="zero")

    return s.along(push)


@feature("accumulator in a tape")
def accumulator_in_tape(s: Setting) -> Any:
    """The gradient of the tangent along the probes."""
    with tf.GradientTape() as outer:
        outer.watch(s.floats)
        with tf.autodiff.ForwardAccumulator(s.floats, s.probes) as forward:
            total = s.total(*s.floats)
        whole = forward.jvp(total, unconnected_gradients="zero")
    found = outer.gradient(whole, s.floats)
    curved = any(any(values) for _, values in s.case["second"].values())
    require(not curved or any(g is not None for g in found), "the gradient is None")
    zeros = map(tf.zeros_like, s.floats)
    return s.listed([z if g is None else g for g, z in zip(found, zeros, strict=True)])


@feature("tape in an accumulator")
def tape_in_accumulator(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(s.floats, tangents) as forward:
            whole = s.probed(s.first(s.floats))
        return forward.jvp(whole, unconnected_gradients="zero")

    return s.along(push)


@feature("jacobian")
def jacobian(s: Setting) -> Any:
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        total = tf.stack([s.total(*s.floats)])
    return s.listed([g[0] for g in recorded.jacobian(total, s.floats)])


@feature("recompute_grad")
def recompute_grad(s: Setting) -> Any:
    again = tf.recompute_grad(s.total)
    return s.listed(s.gradient(again, s.floats))


@feature("pickle and deepcopy")
def pickled(s: Setting) -> Any:
    s.rule = copy.deepcopy(pickle.loads(pickle.dumps(s.rule)))
    return tape(s)


@feature("empty tensors")
def empty(s: Setting) -> None:
    s.inputs = [x[:0] if x.shape.rank and x.shape[0] == 2 else x for x in s.inputs]
    found = s.gradient(lambda *f: sum(map(tf.reduce_sum, s.outputs(*f))), s.floats)
    shapes = [tuple(g.shape) for g in found]
    require(shapes == [tuple(x.shape) for x in s.floats], f"shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    s.upstream = [tf.cast(u, tf.bfloat16) for u in s.upstream]
    found = s.first([tf.cast(x, tf.bfloat16) for x in s.floats])
    require(all(g.dtype == tf.bfloat16 for g in found), "not bfloat16")
    return s.listed(found)


# --- graphs ----------------------------------------------------------------------------


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


@feature("while loop")
def while_loop(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(k: Any, sum_: Any) -> Any:
            return k + 1, sum_ + tf.where(k == 0, 1.0, 0.0) * s.total(*floats)

        return tf.while_loop(lambda k, _: k < 2, step, (tf.constant(0), 0.0))[1]

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


@feature("batch_jacobian")
def batch_jacobian(s: Setting) -> None:
    stacked = [tf.stack([x, 2 * x]) for x in s.floats]
    with tf.GradientTape() as recorded:
        recorded.watch(stacked)
        rows = tf.stack([s.total(*(x[k] for x in stacked)) for k in range(2)])
    found = recorded.batch_jacobian(rows[:, tf.newaxis], stacked[0])
    require(found.shape[0] == 2, f"shape {found.shape}")


@feature("tf.data")
def data(s: Setting) -> None:
    rows = tf.data.Dataset.from_tensors(tuple(s.floats)).map(s.total)
    (found,) = list(rows)
    expected = s.total(*s.floats)
    require(bool(tf.abs(found - expected) <= 1e-5 * (1 + tf.abs(expected))), "differs")


# --- XLA -------------------------------------------------------------------------------


@feature("XLA")
def xla(s: Setting) -> Any:
    return s.listed(tf.function(lambda *f: s.first(f), jit_compile=True)(*s.floats))


@feature("XLA, second order")
def xla_second(s: Setting) -> Any:
    def second(*floats: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(floats)
            whole = s.probed(s.first(floats))
        return outer.gradient(whole, floats, unconnected_gradients="zero")

    return s.listed(tf.function(second, jit_compile=True)(*s.floats))


if __name__ == "__main__":
    main(feature, Setting)
