"""Conformance of JAX modules: derivatives, transformations, control flow, export,
devices."""

from __future__ import annotations

import copy
import os
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from conforming import (
    EAGER,
    Register,
    emptied,
    first_of,
    jax_module,
    main,
    require,
    rows,
    transforms,
    unused,
)
from jax.experimental import checkify
from setting_jax import Setting

feature = Register()
DEVICES = 8

# --- eager -----------------------------------------------------------------------------


def _linear(s: Setting) -> Any:
    return jax.linearize(s.total, *s.floats)[1]


feature |= transforms(jax) | EAGER
feature |= {
    "values": lambda s: s.outputs(*s.floats),
    "value_and_grad": lambda s: jax.value_and_grad(s.total, s.every)(*s.floats)[1],
    "linear_transpose of linearize": lambda s: jax.linear_transpose(
        _linear(s), *s.floats
    )(jnp.float32(1)),
    "one input at a time": lambda s: [jax.grad(s.total, k)(*s.floats) for k in s.every],
    "grad with has_aux": lambda s: jax.grad(
        lambda *f: (s.total(*f), s.outputs(*f)), s.every, has_aux=True
    )(*s.floats)[0],
    "grad of grad, compiled": lambda s: jax.jit(s.second)(*s.floats),
}


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Two interleaved calls share no state but their own pullbacks."""
    s.rule = unused(s.rule, s.path, s.case)
    return _between(s)


def _between(s: Setting) -> Any:
    s.moved()
    _, pullback = jax.vjp(s.total, *s.floats)
    s.moved()
    return pullback(jnp.float32(1))


@feature("float64")
def float64(s: Setting) -> Any:
    with jax.enable_x64(True):
        s.double()
        found = s.first()
        require(all(g.dtype == jnp.float64 for g in found), "not float64")
        return [np.asarray(g) for g in found]


@feature("disable_jit")
def without_jit(s: Setting) -> Any:
    with jax.disable_jit():
        return s.first()


@feature("debug_nans")
def debug_nans(s: Setting) -> Any:
    with jax.debug_nans(True):
        return s.first()


@feature("custom_vjp around")
def within_custom_vjp(s: Setting) -> Any:
    total = jax.custom_vjp(s.total)
    total.defvjp(
        lambda *floats: (s.total(*floats), s.first(*floats)),
        lambda kept, upstream: tuple(upstream * g for g in kept),
    )
    return s.of(total)


@feature("empty arrays")
def empty(s: Setting) -> None:
    """Batches of size zero: gradients of the inputs' shapes."""
    s.inputs = emptied(s.case, s.inputs)
    shapes = [g.shape for g in s.of(lambda *f: sum(map(jnp.sum, s.outputs(*f))))]
    require(shapes == [x.shape for x in s.floats], f"gradients of shapes {shapes}")


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    floats = [x.astype(jnp.bfloat16) for x in s.floats]
    kinds = {y.dtype for y in s.outputs(*floats)}
    require(kinds == {jnp.dtype(jnp.bfloat16)}, f"results of {kinds}")
    gradients = s.first(*floats)
    require(all(g.dtype == jnp.bfloat16 for g in gradients), "not bfloat16")
    return gradients


# --- transformations -------------------------------------------------------------------


def _of_jaxpr(s: Setting) -> Any:
    total = jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(s.total)(*s.floats))
    return s.of(lambda *f: total(*f)[0])


feature |= {
    "jit, values": lambda s: jax.jit(s.outputs)(*s.floats),
    "jit": lambda s: jax.jit(s.first)(*s.floats),
    "grad of jit": lambda s: s.of(jax.jit(s.total)),
    "lowered and compiled": lambda s: (
        jax.jit(s.first).lower(*s.floats).compile()(*s.floats)
    ),
    "jaxpr evaluated, then grad": _of_jaxpr,
    "jacfwd, compiled": lambda s: jax.jit(jax.jacfwd(s.total, s.every))(*s.floats),
    "jit of hessian": lambda s: s.contracted(
        jax.jit(jax.hessian(s.total, s.every))(*s.floats)
    ),
    "remat": lambda s: s.of(jax.checkpoint(s.total)),
    "remat with a policy": lambda s: s.of(
        jax.jit(
            jax.checkpoint(s.total, policy=jax.checkpoint_policies.nothing_saveable)
        )
    ),
    "remat, second order": lambda s: s.of(s.probing(jax.checkpoint(s.total))),
}


@feature("jit, other calls between")
def jitted_calls_between(s: Setting) -> Any:
    """Statics are known when a function is traced: others, another trace."""
    statics = tuple(s.case["statics"])
    s.rule = jax.jit(unused(s.rule, s.path, s.case), static_argnames=statics)
    return _between(s)


@feature("grad of vmap over one input")
def grad_around_one(s: Setting) -> Any:
    """An output that depends on the others alone must not count once for each call. Of
    two calls the first counts.
    """

    def gradients(place: int, given: tuple[Any, ...]) -> Any:
        axes = tuple(0 if k == place else None for k in s.every)
        return s.gradient(lambda *f: jax.vmap(s.total, axes)(*f)[0], given)

    return s.each_repeated(gradients, 2)


@feature("vmap with an axis name")
def named_axis(s: Setting) -> Any:
    mean = s.grad(lambda *floats: jax.lax.pmean(s.total(*floats), "rows"))
    given = [jnp.stack([x, x]) for x in s.floats]
    return first_of(jax.vmap(mean, axis_name="rows")(*given))


@feature("eval_shape")
def abstract(s: Setting) -> None:
    shapes = [g.shape for g in jax.eval_shape(s.first, *s.floats)]
    require(shapes == [x.shape for x in s.floats], f"shapes {shapes}")


# --- control flow ----------------------------------------------------------------------


def _fori_loop(s: Setting, *floats: Any) -> Any:
    def step(k: Any, whole: Any) -> Any:
        return whole + jnp.where(k == 1, s.total(*floats), 0)

    return jax.lax.fori_loop(0, 3, step, jnp.float32(0))


def _map(s: Setting, *floats: Any) -> Any:
    stacked = tuple(jnp.stack([x, 2 * x]) for x in floats)
    return jax.lax.map(lambda row: s.total(*row), stacked)[0]


def _switch(s: Setting, *floats: Any) -> Any:
    ways = [lambda *f: jnp.float32(0), s.total]
    return jax.lax.switch(jnp.int32(jnp.sum(floats[0]) < jnp.inf), ways, *floats)


def _scan(s: Setting, *floats: Any) -> Any:
    def step(carry: Any, weight: Any) -> tuple[Any, None]:
        return carry + weight * s.total(*floats), None

    return jax.lax.scan(step, jnp.float32(0), jnp.eye(1, 4)[0])[0]


def _cond(s: Setting, *floats: Any) -> Any:
    flag = jnp.sum(floats[0]) < jnp.inf
    return jax.lax.cond(flag, s.total, lambda *f: jnp.float32(0), *floats)


def _while(s: Setting, *floats: Any) -> Any:
    def step(state: Any) -> Any:
        return state[0] + 1, state[1] + s.total(*floats) / 2

    return jax.lax.while_loop(lambda t: t[0] < 2, step, (0, jnp.float32(0)))[1]


feature |= {
    "fori_loop": lambda s: s.of(partial(_fori_loop, s)),
    "map": lambda s: s.of(partial(_map, s)),
    "switch": lambda s: s.of(partial(_switch, s)),
    "scan": lambda s: s.of(partial(_scan, s)),
    "scan, second order": lambda s: s.of(s.probing(partial(_scan, s))),
    "cond": lambda s: jax.jit(s.grad(partial(_cond, s)))(*s.floats),
    "while, forward mode": lambda s: jax.jacfwd(partial(_while, s), s.every)(*s.floats),
}


@feature("scan, second derivative of a product")
def scan_of_product(s: Setting) -> None:
    """A nonlinear use of the rule's outputs in a scan needs both derivative terms."""

    def product(*floats: Any) -> Any:
        rows = tuple(jnp.stack([x, x / 2]) for x in floats)
        step = lambda carry, row: (carry, s.total(*row))  # noqa: E731
        first, second = jax.lax.scan(step, None, rows)[1]
        return first * second

    def plain(*floats: Any) -> Any:
        return s.total(*floats) * s.total(*(x / 2 for x in floats))

    pairs = zip(s.of(s.probing(product)), s.of(s.probing(plain)), strict=True)
    for one, other in pairs:
        close = jnp.allclose(one, other, 1e-4, 1e-4, equal_nan=True)
        require(bool(close), f"{one} in a scan, {other} outside")


# --- export and checks -----------------------------------------------------------------


def _exported(function: Any, floats: Any, **options: Any) -> Any:
    data = jax.export.export(jax.jit(function))(*floats).serialize(**options)
    return jax.export.deserialize(data).call


def _checked(s: Setting, function: Any) -> Any:
    return checkify.checkify(function, errors=checkify.all_checks)


feature |= {
    "export": lambda s: s.of(_exported(s.total, s.floats, vjp_order=1)),
    "export, second order": lambda s: s.of(
        s.probing(_exported(s.total, s.floats, vjp_order=2))
    ),
    "export of a gradient": lambda s: _exported(s.first, s.floats)(*s.floats),
    "grad of checkify": lambda s: s.of(lambda *f: _checked(s, s.total)(*f)[1]),
}


@feature("export, sizes unknown")
def export_symbolic(s: Setting) -> Any:
    """The first axis of a batch."""
    size, *marks = rows(s.case)
    if size < 2:
        return feature["export"](s)
    (symbol,) = jax.export.symbolic_shape("rows")

    def kinds(arrays: Any, have_rows: Any) -> list[Any]:
        return [
            jax.ShapeDtypeStruct((symbol, *x.shape[1:]) if has else x.shape, x.dtype)
            for x, has in zip(arrays, have_rows, strict=True)
        ]

    def gradients(inputs: Any, upstream: Any) -> Any:
        here = copy.copy(s)
        here.inputs, here.upstream = inputs, upstream
        return here.first()

    given = s.inputs, s.upstream
    exported = jax.export.export(jax.jit(gradients))(*map(kinds, given, marks))
    return jax.export.deserialize(exported.serialize()).call(*given)


@feature("checkify")
def checkified(s: Setting) -> Any:
    error, gradients = jax.jit(_checked(s, s.first))(*s.floats)
    error.throw()
    return gradients


# --- several devices -------------------------------------------------------------------

_SPEC = jax.sharding.PartitionSpec


def _mesh(count: int = DEVICES) -> Any:
    return jax.sharding.Mesh(np.array(jax.devices()[:count]), ("i",))


def _copies(s: Setting) -> tuple[Any, ...]:
    """Each device has a copy of the inputs for itself."""
    return tuple(jnp.stack([x] * DEVICES) for x in s.floats)


def _last(gradients: Any) -> list[Any]:
    return [g[-1] for g in gradients]


def _own(s: Setting, *floats: Any) -> Any:
    return s.total(*(x[0] for x in floats))


@feature("shard_map, gradient outside")
def shard_map_outside(s: Setting) -> Any:
    split = partial(
        jax.shard_map, mesh=_mesh(), in_specs=_SPEC("i"), out_specs=_SPEC("i")
    )
    each = split(lambda *f: _own(s, *f)[None])
    return _last(s.gradient(lambda *f: jnp.sum(each(*f)), _copies(s)))


@feature("shard_map, gradient inside")
def shard_map_inside(s: Setting) -> Any:
    split = partial(
        jax.shard_map, mesh=_mesh(), in_specs=_SPEC("i"), out_specs=_SPEC("i")
    )
    return _last(split(s.grad(partial(_own, s)))(*_copies(s)))


@feature("shard_map, sums over devices")
def shard_map_sum(s: Setting) -> Any:
    """Inputs are shared; every device adds a part of the cotangents."""
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
        each, mesh=_mesh(), in_specs=(_SPEC(), _SPEC("i")), out_specs=_SPEC()
    )
    return jax.jit(jax.grad(whole))(tuple(s.floats), stacked)


@feature("shard_map, inputs that devices share")
def shard_map_shared(s: Setting) -> Any:
    """One input is split, the others are shared. What the first device finds counts."""

    def gradients(place: int, given: tuple[Any, ...]) -> Any:
        def each(*floats: Any) -> Any:
            own = [x[0] if k == place else x for k, x in enumerate(floats)]
            is_first = jax.lax.axis_index("i") == 0
            return jax.lax.psum(jnp.where(is_first, s.total(*own), 0.0), "i")

        split = tuple(_SPEC("i") if k == place else _SPEC() for k in s.every)
        whole = jax.shard_map(each, mesh=_mesh(), in_specs=split, out_specs=_SPEC())
        return jax.jit(s.grad(whole))(*given)

    return s.each_repeated(gradients, DEVICES)


@feature("jit over sharded arrays")
def sharded_jit(s: Setting) -> Any:
    """The last axis of each input that 3 devices can share is spread over them."""
    mesh = _mesh(3)

    def spread(x: Any) -> Any:
        axes: list[str | None] = [None] * x.ndim
        if x.ndim and x.shape[-1] % 3 == 0:
            axes[-1] = "i"
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, _SPEC(*axes)))

    return jax.jit(s.first)(*map(spread, s.floats))


feature["pmap"] = lambda s: _last(jax.pmap(s.first)(*_copies(s)))


if __name__ == "__main__":
    main(feature, Setting, jax_module)
