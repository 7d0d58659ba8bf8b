"""Trial of TensorFlow modules: tapes, nested tapes, and the same under tf.function."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf
from ranked_trying import compare, compare_second, cotangents, probes, tensors
from reporting import RELATIVE, SECOND_ORDER, Trial, slack
from trying import arrays, main, runs, smooth, upstreams

KINDS = {"int": "int64", "bool": "bool"}
CHECKED_POINTS = 5


class TensorFlowAdapter:
    """See `trying.Adapter`."""

    def __init__(self) -> None:
        self.traces: dict[tuple[str, str], Any] = {}

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return tf.cast(tf.constant(value, tf.float64), KINDS.get(kind, dtype))

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape.as_list())

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in tf.reshape(value, [-1]).numpy().tolist()]

    def vjp(
        self,
        module: ModuleType,
        case: dict[str, Any],
        inputs: list[Any],
        statics: dict[str, Any],
    ) -> tuple[tuple[Any, ...], Any]:
        tape = tf.GradientTape(persistent=True)
        with tape:
            tape.watch([x for x in inputs if x.dtype.is_floating])
            outputs = _tuple(getattr(module, case["rule"])(*inputs, **statics))
        return outputs, lambda *upstream: _gradients(
            tape, _floating(case, outputs), inputs, upstream
        )

    def further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        chosen = smooth(case, group, CHECKED_POINTS)
        if chosen is not None:
            self._second(trial, module, case, chosen)
            trial.attempt(
                "tf.function", "", lambda: self._graph(trial, module, case, chosen)
            )

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        flat = tf.constant(values, tf.float64, [len(values)])
        return tf.cast(tf.reshape(flat, shape), KINDS.get(kind, "float64"))

    def restrided(self, tensor: Any) -> Any:
        return tensor

    def ranked_further(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
    ) -> None:
        """Nested tapes; the same function traced for unknown sizes and unknown ranks."""
        inputs, upstream = tensors(self, case, call), cotangents(self, case, call)
        if call["second"] is not None:
            self._ranked_second(trial, module, case, call)
        names = [f"d{name}" for name, kind, _ in case["inputs"] if kind == "float"]
        for traced in self._ranked_traced(module, case, call, (*inputs, *upstream)):
            for name, got in zip(names, traced(*inputs, *upstream), strict=True):
                what = f"{name} in tf.function"
                expected = call["expected"][name]
                compare(trial, self, case, call, what, got, expected, RELATIVE)

    def _ranked_traced(
        self,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
        values: tuple[Any, ...],
    ) -> Iterator[Any]:
        """Traced once for unknown ranks; for known ranks and unknown sizes at one call,
        since tracing takes longer than all the rest.
        """
        statics = call["statics"]
        key = (case["rule"], repr(statics))
        if key not in self.traces:
            unknown = [tf.TensorSpec(None, v.dtype) for v in values]
            self.traces[key] = self._graphed(module, case, statics, unknown)
        yield self.traces[key]
        if call is case["calls"][-2 % len(case["calls"])]:
            yield self._traced(module, case, statics, values)

    def _ranked_second(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        call: dict[str, Any],
    ) -> None:
        inputs, upstream = tensors(self, case, call), cotangents(self, case, call)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x for x in inputs if x.dtype.is_floating])
            _, pullback = self.vjp(module, case, inputs, call["statics"])
            whole = tf.add_n(
                [
                    tf.reduce_sum(g * p)
                    for g, p in zip(
                        pullback(*upstream), probes(self, case, call), strict=True
                    )
                    if g is not None and p is not None
                ]
            )
        second = [
            outer.gradient(whole, x, unconnected_gradients="zero")
            if kind == "float"
            else None
            for (_, kind, _), x in zip(case["inputs"], inputs, strict=True)
        ]
        compare_second(trial, self, case, call, second)

    def _second(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        """∂(dx)/∂x by a tape around a tape."""
        for numbered, run in runs(case, group):
            inputs = arrays(self, case, run)
            upstream = upstreams(self, case, run)
            with tf.GradientTape(persistent=True) as outer:
                outer.watch([x for x in inputs if x.dtype.is_floating])
                _, pullback = self.vjp(module, case, inputs, group["statics"])
                first = pullback(*upstream)
            for (name, kind, _), x, gradient in zip(
                case["inputs"], inputs, first, strict=True
            ):
                if kind != "float" or gradient is None:
                    continue
                second = outer.gradient(
                    gradient, x, unconnected_gradients=tf.UnconnectedGradients.ZERO
                )
                for place, number in enumerate(numbered):
                    expected = group["second"][number][f"d{name}"]
                    point = group["points"][number]
                    room = slack(expected, point, SECOND_ORDER)
                    got = self.listed(second)[place]
                    trial.expect(
                        f"second derivative by {name}", str(point), got, expected, room
                    )

    def _graph(
        self,
        trial: Trial,
        module: ModuleType,
        case: dict[str, Any],
        group: dict[str, Any],
    ) -> None:
        """The same gradients when traced, once, with unknown sizes."""
        traced = None
        for numbered, run in runs(case, group):
            values = (*arrays(self, case, run), *upstreams(self, case, run))
            traced = traced or self._traced(module, case, group["statics"], values)
            found = traced(*values)
            names = [
                f"d{n}" for n, _, _ in case["inputs"] if f"d{n}" in group["expected"]
            ]
            for name, gradient in zip(names, found, strict=True):
                got = self.listed(gradient)
                for place, number in enumerate(numbered):
                    expected = group["expected"][name][number]
                    point = group["points"][number]
                    room = slack(expected, point, RELATIVE)
                    what = f"{name} in tf.function"
                    trial.expect(what, str(point), got[place], expected, room)

    def _traced(
        self,
        module: ModuleType,
        case: dict[str, Any],
        statics: dict[str, Any],
        values: tuple[Any, ...],
    ) -> Any:
        signature = [tf.TensorSpec([None] * len(v.shape), v.dtype) for v in values]
        return self._graphed(module, case, statics, signature)

    def _graphed(
        self,
        module: ModuleType,
        case: dict[str, Any],
        statics: dict[str, Any],
        signature: list[Any],
    ) -> Any:
        count = len(case["inputs"])

        def gradients(*tensors: Any) -> Any:
            _, pullback = self.vjp(module, case, list(tensors[:count]), statics)
            return [g for g in pullback(*tensors[count:]) if g is not None]

        return tf.function(gradients, input_signature=signature)


def _gradients(
    tape: Any, outputs: tuple[Any, ...], inputs: list[Any], upstream: Any
) -> tuple[Any, ...]:
    watched = [x for x in inputs if x.dtype.is_floating]
    found = iter(
        tape.gradient(list(outputs), watched, output_gradients=list(upstream))
        if watched
        else ()
    )
    return tuple(next(found) if x.dtype.is_floating else None for x in inputs)


def _floating(case: dict[str, Any], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs that take an upstream gradient."""
    return tuple(
        output
        for (_, kind), output in zip(case["outputs"], outputs, strict=True)
        if kind == "float"
    )


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


if __name__ == "__main__":
    main(TensorFlowAdapter())
