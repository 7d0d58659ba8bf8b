"""Features of the runtime for JAX: derivatives, transformations, control flow, export,
devices."""

from __future__ import annotations

import copy
import os
from functools import partial
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from more import by_keyword, calls_between, copied, transforms

from gradspec.measure.frameworks.on_jax import Setting, feature
from gradspec.measure.frameworks.setting import do_job
from gradspec.measure.frameworks.shared import around_one, first_of, require

DEVICES = 8
ZERO, ONE = jnp.float32(0), jnp.float32(1)

feature |= transforms(jax) | dict(feature)  # its own come first

# --- derivatives and transformations ---------------------------------------------------


def _custom(s: Any) -> Any:
    total = jax.custom_vjp(s.total)
    total.defvjp(
        lambda *floats: (s.total(*floats), s.first(*floats)),
        lambda kept, upstream: tuple(upstream * g for g in kept),
    )
    return s.of(total)


def _of_jaxpr(s: Any) -> Any:
    total = jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(s.total)(*s.floats))
    return s.of(lambda *f: total(*f)[0])


def _named(s: Any) -> Any:
    mean = jax.grad(lambda *f: jax.lax.pmean(s.total(*f), "rows"), s.every)
    given = [jnp.stack([x, x]) for x in s.floats]
    return first_of(jax.vmap(mean, axis_name="rows")(*given))


def _abstract(s: Any) -> None:
    shapes = [g.shape for g in jax.eval_shape(s.first, *s.floats)]
    require(shapes == [x.shape for x in s.floats], f"shapes {shapes}")


_NOTHING_KEPT = {"policy": jax.checkpoint_policies.nothing_saveable}

feature |= {
    "linear_transpose of linearize": lambda s: jax.linear_transpose(
        jax.linearize(s.total, *s.floats)[1], *s.floats
    )(ONE),
    "one input at a time": lambda s: [jax.grad(s.total, k)(*s.floats) for k in s.every],
    "keyword call": lambda s: by_keyword(s).first(),
    "pickle and deepcopy": copied,
    "other calls between": calls_between,
    "jit, other calls between": lambda s: calls_between(
        s, partial(jax.jit, static_argnames=tuple(s.case["statics"]))
    ),
    "custom_vjp around": _custom,
    "jit, values": lambda s: jax.jit(s.outputs)(*s.floats),
    "grad of jit": lambda s: s.of(jax.jit(s.total)),
    "jaxpr evaluated, then grad": _of_jaxpr,
    "eval_shape": _abstract,
    "vmap with an axis name": _named,
    "remat": lambda s: s.of(jax.checkpoint(s.total)),
    "remat with a policy": lambda s: s.of(
        jax.jit(jax.checkpoint(s.total, **_NOTHING_KEPT))
    ),
    "remat, second order": lambda s: s.of(s.probing(jax.checkpoint(s.total))),
}

# --- control flow ----------------------------------------------------------------------


def _scan(s: Any, *floats: Any) -> Any:
    def step(carry: Any, weight: Any) -> Any:
        return carry + weight * s.total(*floats), None

    return jax.lax.scan(step, ZERO, jnp.eye(1, 4)[0])[0]


def _while(s: Any, *floats: Any) -> Any:
    def step(state: Any) -> Any:
        return state[0] + 1, state[1] + s.total(*floats) / 2

    return jax.lax.while_loop(lambda t: t[0] < 2, step, (0, ZERO))[1]


def _cond(s: Any, *floats: Any) -> Any:
    return jax.lax.cond(jnp.sum(floats[0]) < jnp.inf, s.total, lambda *f: ZERO, *floats)


def _scan_of_product(s: Any) -> None:
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


feature |= {
    "scan": lambda s: s.of(partial(_scan, s)),
    "scan, second order": lambda s: s.of(s.probing(partial(_scan, s))),
    "scan, second derivative of a product": _scan_of_product,
    "cond": lambda s: jax.jit(jax.grad(partial(_cond, s), s.every))(*s.floats),
    "while, forward mode": lambda s: jax.jacfwd(partial(_while, s), s.every)(*s.floats),
}

# --- export and checks -----------------------------------------------------------------


def _exported(function: Any, floats: Any, **options: Any) -> Any:
    data = jax.export.export(jax.jit(function))(*floats).serialize(**options)
    return jax.export.deserialize(data).call


def _checked(function: Any) -> Any:
    return checkify.checkify(function, errors=checkify.all_checks)


def _checkified(s: Any) -> Any:
    error, gradients = jax.jit(_checked(s.first))(*s.floats)
    error.throw()
    return gradients


feature |= {
    "export": lambda s: s.of(_exported(s.total, s.floats, vjp_order=1)),
    "export, second order": lambda s: s.of(
        s.probing(_exported(s.total, s.floats, vjp_order=2))
    ),
    "checkify": _checkified,
    "grad of checkify": lambda s: s.of(lambda *f: _checked(s.total)(*f)[1]),
}

# --- several devices -------------------------------------------------------------------

SHARED, SPLIT = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("i")


def _mesh(count: int = DEVICES) -> Any:
    return jax.sharding.Mesh(np.array(jax.devices()[:count]), ("i",))


def _over(function: Any, given: Any = SPLIT, made: Any = SPLIT) -> Any:
    """A function on every device."""
    return jax.shard_map(function, mesh=_mesh(), in_specs=given, out_specs=made)


def _copies(s: Any) -> tuple[Any, ...]:
    """Each device has a copy of the inputs for itself."""
    return tuple(jnp.stack([x] * DEVICES) for x in s.floats)


def _own(s: Any, *floats: Any) -> Any:
    return s.total(*(x[0] for x in floats))


def _last(gradients: Any) -> list[Any]:
    return [g[-1] for g in gradients]


def _outside(s: Any) -> Any:
    each = _over(lambda *f: _own(s, *f)[None])
    return _last(s.gradient(lambda *f: jnp.sum(each(*f)), _copies(s)))


def _inside(s: Any) -> Any:
    return _last(_over(jax.grad(partial(_own, s), s.every))(*_copies(s)))


def _sums(s: Any) -> Any:
    """Inputs are shared; every device adds a part of the cotangents."""
    places = [jnp.arange(u.size).reshape(u.shape) % DEVICES for u in s.upstream]
    stacked = [
        jnp.stack([u * (p == k) for k in range(DEVICES)])
        for u, p in zip(s.upstream, places, strict=True)
    ]

    def each(floats: Any, upstream: Any) -> Any:
        here = copy.copy(s)
        here.upstream = [u[0] for u in upstream]
        return jax.lax.psum(here.total(*floats), "i")

    whole = _over(each, (SHARED, SPLIT), SHARED)
    return jax.jit(jax.grad(whole))(tuple(s.floats), stacked)


def _some_shared(s: Any) -> Any:
    """One input is split, the others are shared. What the first device finds counts."""

    def over_first(function: Any, axes: Any) -> Any:
        """As `vmap` over one input, of whose calls the first counts."""

        def each(*given: Any) -> Any:
            pairs = zip(given, axes, strict=True)
            own = [x[0] if axis == 0 else x for x, axis in pairs]
            is_first = jax.lax.axis_index("i") == 0
            return jax.lax.psum(jnp.where(is_first, function(*own), 0.0), "i")[None]

        split = tuple(SPLIT if axis == 0 else SHARED for axis in axes)
        return _over(each, split, SHARED)

    run = lambda first, floats: jax.jit(jax.grad(first, s.every))(*floats)  # noqa: E731
    return around_one(s, over_first, run, DEVICES)


def _sharded(s: Any) -> Any:
    """The last axis of each input that 3 devices can share is spread over them."""

    def spread(x: Any) -> Any:
        axes = [None] * x.ndim
        if x.ndim and x.shape[-1] % 3 == 0:
            axes[-1] = "i"
        spec = jax.sharding.PartitionSpec(*axes)
        return jax.device_put(x, jax.sharding.NamedSharding(_mesh(3), spec))

    return jax.jit(s.first)(*map(spread, s.floats))


feature |= {
    "shard_map, gradient outside": _outside,
    "shard_map, gradient inside": _inside,
    "shard_map, sums over devices": _sums,
    "shard_map, inputs that devices share": _some_shared,
    "jit over sharded arrays": _sharded,
}


if __name__ == "__main__":
    do_job(Setting, feature)
