"""Conformance of JAX modules: exported, checked, on several devices."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from conforming import rows
from conforming_jax_setting import DEVICES, Setting, feature
from jax.experimental import checkify

# --- export and checks -----------------------------------------------------------------


@feature("export")
def export(s: Setting) -> Any:
    exported = jax.export.export(jax.jit(s.total))(*s.floats)
    again = jax.export.deserialize(exported.serialize(vjp_order=1))
    return s.listed(jax.grad(again.call, s.every)(*s.floats))


@feature("export, second order")
def export_twice(s: Setting) -> Any:
    exported = jax.export.export(jax.jit(s.total))(*s.floats)
    again = jax.export.deserialize(exported.serialize(vjp_order=2))
    return s.listed(jax.grad(s.probed(again.call), s.every)(*s.floats))


@feature("export of a gradient")
def export_of_gradient(s: Setting) -> Any:
    exported = jax.export.export(jax.jit(s.first))(*s.floats)
    return s.listed(jax.export.deserialize(exported.serialize()).call(*s.floats))


@feature("export, sizes unknown")
def export_symbolic(s: Setting) -> Any:
    """The first axis of a batch."""
    size, *marks = rows(s.case)
    if size < 2:
        return export(s)
    (symbol,) = jax.export.symbolic_shape("rows")

    def kinds(arrays: Any, have_rows: Any) -> list[Any]:
        return [
            jax.ShapeDtypeStruct((symbol, *x.shape[1:]) if has else x.shape, x.dtype)
            for x, has in zip(arrays, have_rows, strict=True)
        ]

    def gradients(inputs: Any, upstream: Any) -> Any:
        here = copy.copy(s)
        here.inputs, here.upstream = inputs, upstream
        return here.first(*(inputs[k] for k in s.places))

    given = s.inputs, s.upstream
    exported = jax.export.export(jax.jit(gradients))(*map(kinds, given, marks))
    return s.listed(jax.export.deserialize(exported.serialize()).call(*given))


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


@feature("shard_map, sums over devices")
def shard_map_sum(s: Setting) -> Any:
    """Inputs are shared; every device adds a part of the upstream gradients."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("i",))
    spec = jax.sharding.PartitionSpec
    parts = [
        u * (jnp.arange(u.size).reshape(u.shape) % DEVICES == k)
        for k in range(DEVICES)
        for u in s.upstream
    ]
    count = len(s.upstream)
    stacked = [jnp.stack(parts[k::count]) for k in range(count)]

    def each(floats: Any, upstream: Any) -> Any:
        here = copy.copy(s)
        here.upstream = [u[0] for u in upstream]
        return jax.lax.psum(here.total(*floats), "i")

    whole = jax.shard_map(
        each, mesh=mesh, in_specs=(spec(), spec("i")), out_specs=spec()
    )
    return s.listed(jax.jit(jax.grad(whole))(tuple(s.floats), stacked))


@feature("shard_map, inputs that devices share")
def shard_map_shared(s: Setting) -> Any:
    """One input is split, the others are shared. What the first device finds counts."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:DEVICES]), ("i",))
    spec = jax.sharding.PartitionSpec

    def gradients(place: int, given: tuple[Any, ...]) -> Any:
        def each(*floats: Any) -> Any:
            own = [x[0] if k == place else x for k, x in enumerate(floats)]
            is_first = jax.lax.axis_index("i") == 0
            return jax.lax.psum(jnp.where(is_first, s.total(*own), 0.0), "i")

        split = tuple(spec("i") if k == place else spec() for k in s.every)
        whole = jax.shard_map(each, mesh=mesh, in_specs=split, out_specs=spec())
        return jax.jit(jax.grad(whole, s.every))(*given)

    return s.each_repeated(gradients, DEVICES)


@feature("jit over sharded arrays")
def sharded_jit(s: Setting) -> Any:
    """The last axis of each input that 3 devices can share is spread over them."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:3]), ("i",))

    def spread(x: Any) -> Any:
        axes: list[str | None] = [None] * x.ndim
        if x.ndim and x.shape[-1] % 3 == 0:
            axes[-1] = "i"
        spec = jax.sharding.PartitionSpec(*axes)
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

    return s.listed(jax.jit(s.first)(*map(spread, s.floats)))


@feature("pmap")
def pmapped(s: Setting) -> Any:
    stacked = [jnp.stack([x] * DEVICES) for x in s.floats]
    return s.listed([g[-1] for g in jax.pmap(s.first)(*stacked)])
