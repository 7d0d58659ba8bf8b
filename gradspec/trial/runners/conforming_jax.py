"""Conformance of JAX modules: derivatives; all else is in files beside."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import conforming_jax_kept  # noqa: F401  (registers its features)
import conforming_jax_transforms  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
from conforming import emptied, main, require, unused
from conforming_jax_setting import Setting, feature
from conforming_plain import jax_module

# --- eager -----------------------------------------------------------------------------


@feature("values")
def outputs(s: Setting) -> Any:
    return s.listed(s.outputs(*s.floats))


@feature("vjp, values")
def vjp_values(s: Setting) -> Any:
    """Those that the forward pass of a rule has, beside what it keeps."""
    return s.listed(jax.vjp(s.outputs, *s.floats)[0])


@feature("jvp, values")
def jvp_values(s: Setting) -> Any:
    return s.listed(
        jax.jvp(s.outputs, s.floats, tuple(map(jnp.ones_like, s.floats)))[0]
    )


@feature("grad")
def grad(s: Setting) -> Any:
    return s.listed(jax.grad(s.total, s.every)(*s.floats))


@feature("value_and_grad")
def value_and_grad(s: Setting) -> Any:
    return s.listed(jax.value_and_grad(s.total, s.every)(*s.floats)[1])


@feature("vjp")
def vjp(s: Setting) -> Any:
    _, pullback = jax.vjp(s.outputs, *s.floats)
    return s.listed(pullback(s.upstream))


@feature("jvp")
def jvp(s: Setting) -> Any:
    return s.along(lambda tangents: jax.jvp(s.total, s.floats, tangents)[1])


@feature("linearize")
def linearize(s: Setting) -> Any:
    _, push = jax.linearize(s.total, *s.floats)
    return s.along(lambda tangents: push(*tangents))


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names = [name for name, _ in s.case["inputs"]]
    rule = s.rule
    s.rule = lambda *given, **statics: rule(
        **dict(zip(names, given, strict=True)), **statics
    )
    return grad(s)


@feature("one input at a time")
def one_input(s: Setting) -> Any:
    return s.listed([jax.grad(s.total, k)(*s.floats) for k in s.every])


@feature("one output at a time")
def one_output(s: Setting) -> Any:
    """The others have no upstream gradient."""
    found = [jnp.zeros_like(x) for x in s.floats]
    for k, upstream in enumerate(s.upstream):

        def whole(*floats: Any, k: int = k, upstream: Any = upstream) -> Any:
            return jnp.sum(s.outputs(*floats)[k] * upstream)

        parts = jax.grad(whole, s.every)(*s.floats)
        found = [a + b for a, b in zip(found, parts, strict=True)]
    return s.listed(found)


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own pullback has."""
    s.rule = unused(s.rule, s.path, s.case)
    s.moved()
    _, pullback = jax.vjp(s.total, *s.floats)
    s.moved()
    return s.listed(pullback(jnp.float32(1)))


@feature("grad with has_aux")
def with_aux(s: Setting) -> Any:
    def pair(*floats: Any) -> Any:
        return s.total(*floats), s.outputs(*floats)

    return s.listed(jax.grad(pair, s.every, has_aux=True)(*s.floats)[0])


@feature("grad of grad")
def grad_of_grad(s: Setting) -> Any:
    return s.listed(jax.grad(s.probed(s.total), s.every)(*s.floats))


@feature("grad of grad of grad")
def third_grad(s: Setting) -> Any:
    return s.listed(jax.grad(s.probed(s.probed(s.total)), s.every)(*s.floats))


@feature("jvp of grad (hvp)")
def jvp_of_grad(s: Setting) -> Any:
    whole = s.probed(s.total)
    return s.along(lambda tangents: jax.jvp(whole, s.floats, tangents)[1])


@feature("linear_transpose of linearize")
def transposed(s: Setting) -> Any:
    _, push = jax.linearize(s.total, *s.floats)
    return s.listed(jax.linear_transpose(push, *s.floats)(jnp.float32(1)))


@feature("float64")
def float64(s: Setting) -> Any:
    with jax.enable_x64(True):
        inputs = [np.asarray(x) for x in s.inputs]
        s.inputs = [jnp.asarray(x) for x in inputs]
        s.floats = tuple(s.inputs[k] for k in s.places)
        s.double()
        found = s.first(*s.floats)
        require(all(g.dtype == jnp.float64 for g in found), "not float64")
        return s.listed(found)


@feature("disable_jit")
def without_jit(s: Setting) -> Any:
    with jax.disable_jit():
        return grad(s)


@feature("debug_nans")
def debug_nans(s: Setting) -> Any:
    with jax.debug_nans(True):
        return grad(s)


@feature("custom_vjp around")
def within_custom_vjp(s: Setting) -> Any:
    @jax.custom_vjp
    def total(*floats: Any) -> Any:
        return s.total(*floats)

    def forward(*floats: Any) -> Any:
        return s.total(*floats), s.first(*floats)

    total.defvjp(forward, lambda kept, upstream: tuple(upstream * g for g in kept))
    return s.listed(jax.grad(total, s.every)(*s.floats))


@feature("pickle and deepcopy")
def pickled(s: Setting) -> Any:
    s.rule = copy.deepcopy(pickle.loads(pickle.dumps(s.rule)))
    return grad(s)


@feature("empty arrays")
def empty(s: Setting) -> None:
    """Batches of size zero: gradients of the inputs' shapes."""
    s.inputs = emptied(s.case, s.inputs)
    floats = tuple(s.inputs[k] for k in s.places)
    gradients = jax.grad(lambda *f: sum(map(jnp.sum, s.outputs(*f))), s.every)(*floats)
    shapes = [g.shape for g in gradients]
    require(shapes == [x.shape for x in floats], f"gradients of shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    floats = [x.astype(jnp.bfloat16) for x in s.floats]
    kinds = {y.dtype for y in s.outputs(*floats)}
    require(kinds == {jnp.dtype(jnp.bfloat16)}, f"results of {kinds}")
    gradients = jax.grad(s.total, s.every)(*floats)
    require(all(g.dtype == jnp.bfloat16 for g in gradients), "not bfloat16")
    return s.listed(gradients)


if __name__ == "__main__":
    main(feature, Setting, jax_module)
