"""Trial of JAX modules: values, second derivatives, forward mode, the same compiled."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from ranked_trying import compare, compare_second, cotangents, probes, tensors
from reporting import RELATIVE, SECOND_ORDER, Trial, slack
from trying import arrays, main, runs, smooth, upstreams

KINDS = {"int": "int64", "bool": "bool"}
CHECKED_POINTS = 5

Case = dict[str, Any]


class JaxAdapter:
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return jnp.asarray(np.asarray(value, KINDS.get(kind, dtype)))

    def shape(self, value: Any) -> tuple[int, ...]:
        return tuple(value.shape)

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in np.asarray(value).reshape(-1).tolist()]

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        flat = np.asarray(values, np.float64).astype(KINDS.get(kind, "float64"))
        return jnp.asarray(flat.reshape(shape))

    def restrided(self, tensor: Any) -> Any:
        return tensor

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        function = _function(module, case, statics)
        outputs, pullback = jax.vjp(function, *inputs)

        def gradients(*upstream: Any) -> tuple[Any, ...]:
            found = pullback(_every(case, outputs, upstream))
            pairs = zip(case["inputs"], found, strict=True)
            return tuple(g if kind == "float" else None for (_, kind, _), g in pairs)

        return outputs, gradients

    def further(
        self, trial: Trial, module: ModuleType, case: Case, group: Case
    ) -> None:
        """Second derivatives; tangents against gradients, where there is forward mode."""
        chosen = smooth(case, group, CHECKED_POINTS)
        if chosen is None:
            return
        for numbered, run in runs(case, chosen):
            inputs, upstream = arrays(self, case, run), upstreams(self, case, run)
            self._second(trial, module, case, chosen, (inputs, upstream, numbered))
            trial.attempt(
                "forward mode",
                str(run),
                lambda i=inputs, u=upstream: self._forward(
                    trial, module, case, (i, u, chosen["statics"])
                ),
            )

    def _second(
        self,
        trial: Trial,
        module: ModuleType,
        case: Case,
        group: Case,
        given: tuple[list[Any], list[Any], list[int]],
    ) -> None:
        """∂(dx)/∂x, by reverse mode twice."""
        inputs, upstream, numbered = given
        for position, (name, kind, _) in enumerate(case["inputs"]):
            if kind != "float":
                continue

            def first(x: Any, position: int = position) -> Any:
                moved = [*inputs[:position], x, *inputs[position + 1 :]]
                _, pullback = self.vjp(module, case, moved, group["statics"])
                return jnp.sum(pullback(*upstream)[position])

            second = jax.grad(first)(inputs[position])
            for place, number in enumerate(numbered):
                expected = group["second"][number][f"d{name}"]
                point = group["points"][number]
                room = slack(expected, point, SECOND_ORDER)
                got = self.listed(second)[place]
                what = f"second derivative by {name}"
                trial.expect(what, str(point), got, expected, room)

    def _forward(
        self,
        trial: Trial,
        module: ModuleType,
        case: Case,
        given: tuple[list[Any], list[Any], Case],
    ) -> None:
        """For each input: upstream · tangents is the sum of its gradient."""
        inputs, upstream, statics = given
        _, pullback = self.vjp(module, case, inputs, statics)
        gradients = pullback(*upstream)
        function = _function(module, case, statics)
        for position, gradient in enumerate(gradients):
            if gradient is None:
                continue

            def along(x: Any, position: int = position) -> Any:
                return function(*inputs[:position], x, *inputs[position + 1 :])

            x = inputs[position]
            try:
                _, tangents = jax.jvp(along, (x,), (jnp.ones_like(x),))
            except TypeError as fault:
                if "custom_vjp" in str(fault):
                    return  # not linear in its upstream gradient: no forward mode
                raise
            pairs = zip(_floating(case, tangents), upstream, strict=True)
            got = float(sum(jnp.sum(t * u) for t, u in pairs))
            expected = float(jnp.sum(gradient))
            size = float(jnp.sum(jnp.abs(gradient)))
            what = f"tangent of {case['inputs'][position][0]}"
            trial.expect(what, "", got, expected, RELATIVE * max(1.0, size))

    def ranked_further(
        self, trial: Trial, module: ModuleType, case: Case, call: Case
    ) -> None:
        """The same, and the gradients once more from a compiled function."""
        inputs, upstream = tensors(self, case, call), cotangents(self, case, call)
        statics = call["statics"]
        self._forward(trial, module, case, (inputs, upstream, statics))

        def gradients(*given: Any) -> Any:
            _, pullback = self.vjp(module, case, list(given[: len(inputs)]), statics)
            return [g for g in pullback(*given[len(inputs) :]) if g is not None]

        names = [f"d{name}" for name, kind, _ in case["inputs"] if kind == "float"]
        found = jax.jit(gradients)(*inputs, *upstream)
        for name, got in zip(names, found, strict=True):
            expected = call["expected"][name]
            compare(
                trial, self, case, call, f"{name} compiled", got, expected, RELATIVE
            )
        if call["second"] is not None:
            self._ranked_second(trial, module, case, call)

    def _ranked_second(
        self, trial: Trial, module: ModuleType, case: Case, call: Case
    ) -> None:
        inputs, upstream = tensors(self, case, call), cotangents(self, case, call)
        weights = probes(self, case, call)
        places = [k for k, (_, kind, _) in enumerate(case["inputs"]) if kind == "float"]

        def whole(*moved: Any) -> Any:
            given = list(inputs)
            for k, x in zip(places, moved, strict=True):
                given[k] = x
            _, pullback = self.vjp(module, case, given, call["statics"])
            pairs = zip(pullback(*upstream), weights, strict=True)
            return sum(jnp.sum(g * p) for g, p in pairs if g is not None)

        found = jax.grad(whole, tuple(range(len(places))))(*(inputs[k] for k in places))
        second: list[Any] = [None] * len(inputs)
        for k, value in zip(places, found, strict=True):
            second[k] = value
        compare_second(trial, self, case, call, second)


def _function(module: ModuleType, case: Case, statics: Case) -> Any:
    """The rule with its statics; always a tuple of outputs."""

    def function(*inputs: Any) -> tuple[Any, ...]:
        outputs = getattr(module, case["rule"])(*inputs, **statics)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    return function


def _every(case: Case, outputs: tuple[Any, ...], upstream: Any) -> tuple[Any, ...]:
    """An upstream gradient for each output: none for integers, zero where none is due."""
    given = iter(upstream)
    return tuple(
        next(given) if kind == "float" else _zero(output)
        for (_, kind), output in zip(case["outputs"], outputs, strict=True)
    )


def _zero(output: Any) -> Any:
    if jnp.issubdtype(output.dtype, jnp.floating):
        return jnp.zeros_like(output)
    return np.zeros(output.shape, jax.dtypes.float0)


def _floating(case: Case, values: tuple[Any, ...]) -> tuple[Any, ...]:
    pairs = zip(case["outputs"], values, strict=True)
    return tuple(value for (_, kind), value in pairs if kind == "float")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_traceback_filtering", "off")
    main(JaxAdapter())
