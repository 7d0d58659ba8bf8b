"""Conformance of JAX modules."""

from __future__ import annotations

import os
import pickle
from functools import partial
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from conforming import Case, Register, main, require
from conforming_plain import jax_module
from jax.experimental import checkify

feature = Register()
DEVICES = 8


class Setting:
    """A rule at one point: a number made of its outputs, as a function of its floating
    inputs.
    """

    def __init__(self, module: ModuleType, case: Case) -> None:
        self.rule, self.case = getattr(module, case["rule"]), case
        self.kinds = [kind for _, kind in case["inputs"]]
        self.inputs = [
            _array(case["given"][name], kind) for name, kind in case["inputs"]
        ]
        self.places = [k for k, kind in enumerate(self.kinds) if kind == "float"]
        self.floats = tuple(self.inputs[k] for k in self.places)
        self.upstream = [_array(value, "float") for value in case["upstream"].values()]
        probes = case.get("probes", {})
        self.probes = [
            _array(probes[name], "float") if probes else jnp.ones_like(x)
            for name, x in zip(
                (n for n, kind in case["inputs"] if kind == "float"),
                self.floats,
                strict=True,
            )
        ]

    def outputs(self, *floats: Any) -> list[Any]:
        """The outputs that take an upstream gradient."""
        given = list(self.inputs)
        for place, x in zip(self.places, floats, strict=True):
            given[place] = x
        made = self.rule(*given, **self.case["statics"])
        made = made if isinstance(made, tuple) else (made,)
        kinds = (kind for _, kind in self.case["outputs"])
        return [y for y, kind in zip(made, kinds, strict=True) if kind == "float"]

    def total(self, *floats: Any) -> Any:
        """Upstream gradients times outputs."""
        pairs = zip(self.outputs(*floats), self.upstream, strict=True)
        return sum(jnp.sum(y * u) for y, u in pairs)

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.floats)))

    def listed(self, gradients: Any) -> list[Any]:
        """[shape, values] of each gradient."""
        arrays = [np.asarray(g, np.float64) for g in gradients]
        return [[a.shape, a.ravel().tolist()] for a in arrays]

    def contracted(self, matrices: Any) -> list[Any]:
        """Probes times second derivatives: one row of blocks for each gradient."""
        found = []
        for by, x in enumerate(self.floats):
            parts = [
                jnp.tensordot(p, matrices[k][by], p.ndim)
                for k, p in enumerate(self.probes)
            ]
            found.append(jnp.reshape(sum(parts), x.shape))
        return self.listed(found)

    def along(self, push: Any) -> list[Any]:
        """Gradients from tangents, one element at a time."""
        found = []
        for place, x in enumerate(self.floats):
            slopes = []
            for k in range(x.size):
                tangents = [jnp.zeros_like(v) for v in self.floats]
                tangents[place] = jnp.eye(x.size)[k].reshape(x.shape)
                slopes.append(push(tuple(tangents)))
            found.append(jnp.asarray(slopes).reshape(x.shape))
        return self.listed(found)


def _array(value: Any, kind: str) -> Any:
    shape, flat = value
    dtype = {"int": np.int32, "bool": np.bool_}.get(kind, np.float32)
    return jnp.asarray(np.asarray(flat, np.float64).reshape(shape).astype(dtype))


# --- eager -----------------------------------------------------------------------------


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


@feature("pickle")
def pickled(s: Setting) -> Any:
    s.rule = pickle.loads(pickle.dumps(s.rule))
    return grad(s)


@feature("empty arrays")
def empty(s: Setting) -> None:
    """Batches of size zero: gradients of the inputs' shapes."""
    s.inputs = [x[:0] if x.ndim and x.shape[0] == 2 else x for x in s.inputs]
    floats = tuple(s.inputs[k] for k in s.places)
    gradients = jax.grad(lambda *f: sum(map(jnp.sum, s.outputs(*f))), s.every)(*floats)
    shapes = [g.shape for g in gradients]
    require(shapes == [x.shape for x in floats], f"gradients of shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    floats = [x.astype(jnp.bfloat16) for x in s.floats]
    gradients = jax.grad(s.total, s.every)(*floats)
    require(all(g.dtype == jnp.bfloat16 for g in gradients), "not bfloat16")
    return s.listed(gradients)


# --- transformations -------------------------------------------------------------------


@feature("jit")
def jit(s: Setting) -> Any:
    return s.listed(jax.jit(jax.grad(s.total, s.every))(*s.floats))


@feature("grad of jit")
def grad_of_jit(s: Setting) -> Any:
    return s.listed(jax.grad(jax.jit(s.total), s.every)(*s.floats))


@feature("vmap")
def vmap(s: Setting) -> Any:
    stacked = [jnp.stack([x, 2 * x]) for x in s.floats]
    found = jax.vmap(jax.grad(s.total, s.every))(*stacked)
    return s.listed([g[0] for g in found])


@feature("jacfwd")
def jacfwd(s: Setting) -> Any:
    return s.listed(jax.jacfwd(s.total, s.every)(*s.floats))


@feature("jacrev")
def jacrev(s: Setting) -> Any:
    return s.listed(jax.jacrev(s.total, s.every)(*s.floats))


def _second(outer: Any, inner: Any) -> Any:
    def run(s: Setting) -> Any:
        return s.contracted(outer(inner(s.total, s.every), s.every)(*s.floats))

    return run


for _name, _outer, _inner in (
    ("jacrev of jacrev", jax.jacrev, jax.jacrev),
    ("jacfwd of jacrev (hessian)", jax.jacfwd, jax.jacrev),
    ("jacrev of jacfwd", jax.jacrev, jax.jacfwd),
    ("jacfwd of jacfwd", jax.jacfwd, jax.jacfwd),
):
    feature(_name)(_second(_outer, _inner))


@feature("jit of hessian")
def jit_of_hessian(s: Setting) -> Any:
    return s.contracted(jax.jit(jax.hessian(s.total, s.every))(*s.floats))


@feature("remat")
def remat(s: Setting) -> Any:
    return s.listed(jax.grad(jax.checkpoint(s.total), s.every)(*s.floats))


@feature("scan")
def scan(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(carry: Any, weight: Any) -> tuple[Any, None]:
            return carry + weight * s.total(*floats), None

        return jax.lax.scan(step, jnp.float32(0), jnp.eye(1, 4)[0])[0]

    return s.listed(jax.grad(total, s.every)(*s.floats))


@feature("cond")
def cond(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        flag = jnp.sum(floats[0]) < jnp.inf
        return jax.lax.cond(flag, s.total, lambda *f: jnp.float32(0), *floats)

    return s.listed(jax.jit(jax.grad(total, s.every))(*s.floats))


@feature("while, forward mode")
def while_forward(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(state: Any) -> Any:
            return state[0] + 1, state[1] + s.total(*floats) / 2

        return jax.lax.while_loop(lambda t: t[0] < 2, step, (0, jnp.float32(0)))[1]

    return s.listed(jax.jacfwd(total, s.every)(*s.floats))


# --- export and checks -----------------------------------------------------------------


@feature("export")
def export(s: Setting) -> Any:
    exported = jax.export.export(jax.jit(s.total))(*s.floats)
    again = jax.export.deserialize(exported.serialize(vjp_order=1))
    return s.listed(jax.grad(again.call, s.every)(*s.floats))


@feature("checkify")
def checkified(s: Setting) -> Any:
    checked = checkify.checkify(jax.grad(s.total, s.every), errors=checkify.all_checks)
    error, gradients = jax.jit(checked)(*s.floats)
    error.throw()
    return s.listed(gradients)


@feature("grad of checkify")
def grad_of_checkify(s: Setting) -> Any:
    checked = checkify.checkify(s.total, errors=checkify.all_checks)
    return s.listed(jax.grad(lambda *f: checked(*f)[1], s.every)(*s.floats))


# --- several devices -------------------------------------------------------------------


def _sharded(s: Setting) -> tuple[Any, Any]:
    """Each device has a copy of the inputs for itself."""
    spec = jax.sharding.PartitionSpec("i")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("i",))
    stacked = tuple(jnp.stack([x] * DEVICES) for x in s.floats)
    return partial(jax.shard_map, mesh=mesh, in_specs=spec, out_specs=spec), stacked


@feature("shard_map, gradient outside")
def shard_map_outside(s: Setting) -> Any:
    mapped, stacked = _sharded(s)
    each = mapped(lambda *f: s.total(*(x[0] for x in f))[None])
    found = jax.grad(lambda *f: jnp.sum(each(*f)), s.every)(*stacked)
    return s.listed([g[-1] for g in found])


@feature("shard_map, gradient inside")
def shard_map_inside(s: Setting) -> Any:
    mapped, stacked = _sharded(s)

    def each(*floats: Any) -> Any:
        return jax.grad(lambda *f: s.total(*(x[0] for x in f)), s.every)(*floats)

    return s.listed([g[-1] for g in mapped(each)(*stacked)])


if __name__ == "__main__":
    main(feature, Setting, jax_module)
