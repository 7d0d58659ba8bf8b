"""Trial of TensorFlow modules: tapes, nested tapes, and the same under tf.function."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf
from trying import KINDS, Adapter, Case, One, main, tuple_of


class TensorFlowAdapter(Adapter):
    """See `trying.Adapter`."""

    def __init__(self) -> None:
        self.traces: dict[tuple[str, str], Any] = {}

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return tf.cast(tf.constant(value, tf.float64), KINDS.get(kind, dtype))

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        flat = tf.constant(values, tf.float64, [len(values)])
        return tf.cast(tf.reshape(flat, shape), KINDS.get(kind, "float64"))

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape.as_list())

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in tf.reshape(value, [-1]).numpy().tolist()]

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        watched = [x for x in inputs if x.dtype.is_floating]
        tape = tf.GradientTape(persistent=True)
        with tape:
            tape.watch(watched)
            outputs = tuple_of(getattr(module, case["rule"])(*inputs, **statics))
        pairs = zip(case["outputs"], outputs, strict=True)
        floats = [output for (_, kind), output in pairs if kind == "float"]

        def gradients(*upstream: Any) -> tuple[Any, ...]:
            made = tape.gradient(floats, watched, list(upstream)) if watched else ()
            found = iter(made)
            return tuple(next(found) if x.dtype.is_floating else None for x in inputs)

        return outputs, gradients

    def further(self, one: One) -> None:
        """Nested tapes; the gradients from a function traced once for unknown ranks,
        and of a rule with axes, at one call, for known ranks and unknown sizes.
        """
        if not one.call["checked"]:
            return
        if one.call["second"]:
            self._second(one)
        values = (*one.inputs(), *one.cotangents())
        key = (one.case["rule"], repr(one.statics))
        if key not in self.traces:
            unknown = [tf.TensorSpec(None, v.dtype) for v in values]
            self.traces[key] = tf.function(one.gradients, input_signature=unknown)
        ways = [self.traces[key]]
        calls = one.case["calls"]
        if one.case["axes"] and one.call is calls[-2 % len(calls)]:
            known = [tf.TensorSpec([None] * len(v.shape), v.dtype) for v in values]
            ways.append(tf.function(one.gradients, input_signature=known))
        for traced in ways:
            one.compare_gradients(traced(*values), " in tf.function")

    def _second(self, one: One) -> None:
        inputs, probes = one.inputs(), one.probes()
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x for x in inputs if x.dtype.is_floating])
            _, pullback = one.vjp(inputs)
            pairs = zip(pullback(*one.cotangents()), probes, strict=True)
            whole = tf.add_n(
                [
                    tf.reduce_sum(g * p)
                    for g, p in pairs
                    if g is not None and p is not None
                ]
            )
        one.compare_second(
            [
                None
                if p is None
                else outer.gradient(whole, x, unconnected_gradients="zero")
                for p, x in zip(probes, inputs, strict=True)
            ]
        )


if __name__ == "__main__":
    main(TensorFlowAdapter())
