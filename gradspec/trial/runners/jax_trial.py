"""Trial of JAX modules: second derivatives, forward mode, the same compiled."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from trying import KINDS, RELATIVE, Adapter, Case, One, main, tuple_of


class JaxAdapter(Adapter):
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        return jnp.asarray(np.asarray(value, KINDS.get(kind, dtype)))

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        flat = np.asarray(values, np.float64).astype(KINDS.get(kind, "float64"))
        return jnp.asarray(flat.reshape(shape))

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in np.asarray(value).reshape(-1).tolist()]

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        rule = getattr(module, case["rule"])
        outputs, pullback = jax.vjp(lambda *x: tuple_of(rule(*x, **statics)), *inputs)

        def gradients(*upstream: Any) -> tuple[Any, ...]:
            found = pullback(_every(case, outputs, upstream))
            pairs = zip(case["inputs"], found, strict=True)
            return tuple(g if kind == "float" else None for (_, kind), g in pairs)

        return outputs, gradients

    def further(self, one: One) -> None:
        """Forward mode; gradients from a compiled function; second derivatives."""
        if not one.call["checked"]:
            return
        inputs, upstream = one.inputs(), one.cotangents()
        one.attempt("forward mode", lambda: self._forward(one, inputs, upstream))
        if one.case["axes"]:
            found = jax.jit(one.gradients)(*inputs, *upstream)
            one.compare_gradients(found, " compiled")
        if one.call["second"]:
            self._second(one, inputs, upstream)

    def _forward(self, one: One, inputs: list[Any], upstream: list[Any]) -> None:
        """For each input: cotangents · tangents is the sum of its gradient."""
        _, pullback = one.vjp(inputs)
        for k, gradient in enumerate(pullback(*upstream)):
            if gradient is None:
                continue

            def along(x: Any, k: int = k) -> Any:
                given = (*inputs[:k], x, *inputs[k + 1 :])
                return tuple_of(one.function(*given, **one.statics))

            x = inputs[k]
            push = jax.jit(lambda x, f=along: jax.jvp(f, (x,), (jnp.ones_like(x),))[1])
            try:
                tangents = push(x)
            except TypeError as fault:
                if "custom_vjp" in str(fault):
                    return  # not linear in its cotangent: no forward mode
                raise
            pairs = zip(one.floating(tangents), upstream, strict=True)
            got = float(sum(jnp.sum(t * u) for t, u in pairs))
            room = RELATIVE * max(1.0, float(jnp.sum(jnp.abs(gradient))))
            what = f"tangent of {one.case['inputs'][k][0]}"
            one.trial.expect(what, one.where, got, float(jnp.sum(gradient)), room)

    def _second(self, one: One, inputs: list[Any], upstream: list[Any]) -> None:
        """By reverse mode twice."""
        weights = one.probes()
        places = [k for k, weight in enumerate(weights) if weight is not None]

        def whole(*moved: Any) -> Any:
            given = list(inputs)
            for k, x in zip(places, moved, strict=True):
                given[k] = x
            pairs = zip(one.vjp(given)[1](*upstream), weights, strict=True)
            return sum(jnp.sum(g * p) for g, p in pairs if g is not None)

        gradient = jax.jit(jax.grad(whole, tuple(range(len(places)))))
        found = gradient(*(inputs[k] for k in places))
        second: list[Any] = [None] * len(inputs)
        for k, value in zip(places, found, strict=True):
            second[k] = value
        one.compare_second(second)


def _every(case: Case, outputs: tuple[Any, ...], upstream: Any) -> tuple[Any, ...]:
    """A cotangent for each output: none for integers, zero where none is due."""
    given = iter(upstream)
    return tuple(
        next(given) if kind == "float" else _zero(output)
        for (_, kind), output in zip(case["outputs"], outputs, strict=True)
    )


def _zero(output: Any) -> Any:
    if jnp.issubdtype(output.dtype, jnp.floating):
        return jnp.zeros_like(output)
    return np.zeros(output.shape, jax.dtypes.float0)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_traceback_filtering", "off")
    main(JaxAdapter())
