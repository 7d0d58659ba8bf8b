"""Conformance of TensorFlow modules: tapes and accumulators."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import copy
import functools
import pickle
from typing import Any

import conforming_tf_graph  # noqa: F401  (registers its features)
import conforming_tf_kept  # noqa: F401
import conforming_tf_keras  # noqa: F401
import tensorflow as tf
from conforming import emptied, main, require, unused
from conforming_plain import tf_module
from conforming_tf_setting import Setting, feature

# --- eager -----------------------------------------------------------------------------


@feature("values")
def outputs(s: Setting) -> Any:
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        return s.listed(s.outputs(*s.floats))


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
def three_tapes(s: Setting) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(s.floats)
        with tf.GradientTape() as middle:
            middle.watch(s.floats)
            whole = s.probed(s.first(s.floats))
        second = middle.gradient(whole, s.floats, unconnected_gradients="zero")
        again = s.probed(second)
    return s.listed(outer.gradient(again, s.floats, unconnected_gradients="zero"))


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
    return s.listed(found)


@feature("one output at a time")
def one_output(s: Setting) -> Any:
    """The others have no upstream gradient."""
    found = [tf.zeros_like(x) for x in s.floats]
    for k, upstream in enumerate(s.upstream):
        parts = s.gradient(
            lambda *f, k=k, u=upstream: tf.reduce_sum(s.outputs(*f)[k] * u), s.floats
        )
        found = [a + b for a, b in zip(found, parts, strict=True)]
    return s.listed(found)


@feature("persistent tape")
def persistent(s: Setting) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        total = s.total(*s.floats)
    recorded.gradient(total, s.floats)
    return s.listed(recorded.gradient(total, s.floats, unconnected_gradients="zero"))


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own gradient has."""
    s.rule = unused(s.rule, s.path, s.case)
    s.moved()
    with tf.GradientTape() as recorded:
        recorded.watch(s.floats)
        total = s.total(*s.floats)
    s.moved()
    return s.listed(recorded.gradient(total, s.floats, unconnected_gradients="zero"))


@feature("float64")
def float64(s: Setting) -> Any:
    s.double()
    found = s.first(s.floats)
    require(all(g.dtype == tf.float64 for g in found), "not float64")
    return s.listed(found)


@feature("custom_gradient around")
def within_custom_gradient(s: Setting) -> Any:
    @tf.custom_gradient
    def total(*floats: Any) -> Any:
        with tf.GradientTape() as recorded:
            recorded.watch(floats)
            made = s.total(*floats)
        found = recorded.gradient(made, floats, unconnected_gradients="zero")
        return made, lambda upstream: [upstream * g for g in found]

    return s.listed(s.gradient(total, s.floats))


@feature("py_function")
def py_function(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        return tf.py_function(s.total, floats, tf.float32)

    return s.listed(tf.function(lambda *f: s.gradient(total, f))(*s.floats))


@feature("ragged, map_flat_values")
def ragged(s: Setting) -> None:
    """The first input's elements as rows of different lengths."""
    if len(s.inputs) > 1 or len(s.case["outputs"]) > 1 or s.case.get("probes"):
        return
    flat = tf.reshape(s.floats[0], [-1])
    rows = tf.RaggedTensor.from_row_lengths(flat, [1, len(flat) - 1])
    call = functools.partial(s.rule, **s.case["statics"])
    with tf.GradientTape() as recorded:
        recorded.watch(rows.flat_values)
        made = tf.ragged.map_flat_values(call, rows).flat_values
        whole = tf.reduce_sum(made * tf.reshape(s.upstream[0], [-1]))
    got = recorded.gradient(whole, rows.flat_values)
    true = s.first(s.floats)[0]
    require(bool(tf.reduce_all(got == tf.reshape(true, [-1]))), "differs")


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


@feature("ForwardAccumulator over variables")
def accumulator_of_variables(s: Setting) -> Any:
    weights = [tf.Variable(x) for x in s.floats]

    def push(tangents: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(weights, tangents) as forward:
            total = s.total(*weights)
        return forward.jvp(total, unconnected_gradients="zero")

    return s.along(push)


@feature("accumulator in a tape")
def accumulator_in_tape(s: Setting) -> Any:
    """The gradients of tangents, one element of the probes at a time."""
    wholes = [tf.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        parts = _gradients_of_tangents(s, place, probe)
        wholes = [a + b for a, b in zip(wholes, parts, strict=True)]
    return s.listed(wholes)


def _gradients_of_tangents(s: Setting, place: int, probe: Any) -> list[Any]:
    wholes = [tf.zeros_like(x) for x in s.floats]
    for k in range(int(tf.size(probe))):
        tangents = [tf.zeros_like(x) for x in s.floats]
        tangents[place] = probe * s.unit(place, k)
        with tf.GradientTape() as outer:
            outer.watch(s.floats)
            with tf.autodiff.ForwardAccumulator(s.floats, tangents) as forward:
                total = s.total(*s.floats)
            tangent = forward.jvp(total, unconnected_gradients="zero")
        found = outer.gradient(tangent, s.floats, unconnected_gradients="zero")
        wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return wholes


@feature("accumulator in an accumulator")
def accumulator_twice(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(s.floats, tangents) as outer:
            whole = 0.0
            for place, probe in enumerate(s.probes):
                moved = [tf.zeros_like(x) for x in s.floats]
                moved[place] = probe
                with tf.autodiff.ForwardAccumulator(s.floats, moved) as inner:
                    total = s.total(*s.floats)
                whole += inner.jvp(total, unconnected_gradients="zero")
        return outer.jvp(whole, unconnected_gradients="zero")

    return s.along(push)


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


@feature("jacobian without pfor")
def jacobian_without_pfor(s: Setting) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        total = tf.stack([s.total(*s.floats)])
    found = recorded.jacobian(total, s.floats, experimental_use_pfor=False)
    return s.listed([g[0] for g in found])


@feature("jacobian of a gradient")
def jacobian_of_gradient(s: Setting) -> Any:
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(s.floats)
        first = s.first(s.floats)
    rows = [recorded.jacobian(g, s.floats, unconnected_gradients="zero") for g in first]
    return s.contracted(rows)


@feature("recompute_grad")
def recompute_grad(s: Setting) -> Any:
    again = tf.recompute_grad(s.total)
    return s.listed(s.gradient(again, s.floats))


@feature("recompute_grad, second order")
def recompute_grad_twice(s: Setting) -> Any:
    again = tf.recompute_grad(s.total)
    with tf.GradientTape() as outer:
        outer.watch(s.floats)
        whole = s.probed(s.gradient(again, s.floats))
    return s.listed(outer.gradient(whole, s.floats, unconnected_gradients="zero"))


@feature("pickle and deepcopy")
def pickled(s: Setting) -> Any:
    s.rule = copy.deepcopy(pickle.loads(pickle.dumps(s.rule)))
    return tape(s)


@feature("empty tensors")
def empty(s: Setting) -> None:
    s.inputs = emptied(s.case, s.inputs)
    found = s.gradient(lambda *f: sum(map(tf.reduce_sum, s.outputs(*f))), s.floats)
    shapes = [tuple(g.shape) for g in found]
    require(shapes == [tuple(x.shape) for x in s.floats], f"shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    s.upstream = [tf.cast(u, tf.bfloat16) for u in s.upstream]
    floats = [tf.cast(x, tf.bfloat16) for x in s.floats]
    kinds = {y.dtype for y in s.outputs(*floats)}
    require(kinds == {tf.bfloat16}, "results not bfloat16")
    found = s.first(floats)
    require(all(g.dtype == tf.bfloat16 for g in found), "not bfloat16")
    return s.listed(found)


@feature("functions run eagerly")
def run_eagerly(s: Setting) -> Any:
    return _eagerly(lambda: s.listed(tf.function(lambda *f: s.first(f))(*s.floats)))


@feature("functions run eagerly, ForwardAccumulator")
def run_eagerly_forward(s: Setting) -> Any:
    return _eagerly(lambda: accumulator(s))


def _eagerly(run: Any) -> Any:
    tf.config.run_functions_eagerly(True)
    try:
        return run()
    finally:
        tf.config.run_functions_eagerly(False)


if __name__ == "__main__":
    main(feature, Setting, tf_module)
