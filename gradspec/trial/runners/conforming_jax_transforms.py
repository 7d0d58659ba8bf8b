"""Conformance of JAX modules: transformations, nested, and control flow."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from conforming import require, unused
from conforming_jax_setting import Setting, feature

# --- transformations -------------------------------------------------------------------


@feature("jit, values")
def jit_values(s: Setting) -> Any:
    return s.listed(jax.jit(s.outputs)(*s.floats))


@feature("jit, other calls between")
def calls_between(s: Setting) -> Any:
    """Statics are known when a function is traced: others, another trace."""
    s.rule = jax.jit(
        unused(s.rule, s.path, s.case), static_argnames=tuple(s.case["statics"])
    )
    s.moved()
    _, pullback = jax.vjp(s.total, *s.floats)
    s.moved()
    return s.listed(pullback(jnp.float32(1)))


@feature("jit")
def jit(s: Setting) -> Any:
    return s.listed(jax.jit(jax.grad(s.total, s.every))(*s.floats))


@feature("grad of jit")
def grad_of_jit(s: Setting) -> Any:
    return s.listed(jax.grad(jax.jit(s.total), s.every)(*s.floats))


@feature("vmap, values")
def vmap_values(s: Setting) -> Any:
    return s.listed([y[0] for y in jax.vmap(s.outputs)(*s.stacked())])


@feature("vmap")
def vmap(s: Setting) -> Any:
    found = jax.vmap(jax.grad(s.total, s.every))(*s.stacked())
    return s.listed([g[0] for g in found])


@feature("vmap over the last axis")
def last_axis(s: Setting) -> Any:
    moved = [jnp.stack([x, 2 * x], -1) for x in s.floats]
    found = jax.vmap(s.first, -1, -1)(*moved)
    return s.listed([g[..., 0] for g in found])


@feature("vmap of one input beside others")
def some_inputs(s: Setting) -> Any:
    found = []
    for place, x in enumerate(s.floats):
        given = [*s.floats]
        given[place] = jnp.stack([x, 2 * x])
        axes = tuple(0 if k == place else None for k in s.every)
        found.append(jax.vmap(s.first, axes)(*given)[place][0])
    return s.listed(found)


@feature("vmap in vmap")
def nested_vmap(s: Setting) -> Any:
    twice = [jnp.stack([x] * 3) for x in s.stacked()]
    found = jax.vmap(jax.vmap(s.first))(*twice)
    return s.listed([g[2, 0] for g in found])


@feature("grad of vmap")
def grad_of_vmap(s: Setting) -> Any:
    def whole(*floats: Any) -> Any:
        return jnp.sum(jax.vmap(s.total)(*(jnp.stack([x, x]) for x in floats)))

    return s.listed([g / 2 for g in jax.grad(whole, s.every)(*s.floats)])


@feature("grad of vmap over one input")
def grad_around_one(s: Setting) -> Any:
    """An output that depends on the others alone must not count once for each call. Of
    two calls the first counts.
    """

    def gradients(place: int, given: tuple[Any, ...]) -> Any:
        axes = tuple(0 if k == place else None for k in s.every)
        return jax.grad(lambda *f: jax.vmap(s.total, axes)(*f)[0], s.every)(*given)

    return s.each_repeated(gradients, 2)


@feature("vmap with an axis name")
def named_axis(s: Setting) -> Any:
    def mean(*floats: Any) -> Any:
        return jax.lax.pmean(s.total(*floats), "rows")

    rows = [jnp.stack([x, x]) for x in s.floats]
    found = jax.vmap(jax.grad(mean, s.every), axis_name="rows")(*rows)
    return s.listed([g[0] for g in found])


@feature("jvp of vmap")
def jvp_of_vmap(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        moved = tuple(jnp.stack([t, 0 * t]) for t in tangents)
        return jax.jvp(jax.vmap(s.total), tuple(s.stacked()), moved)[1][0]

    return s.along(push)


@feature("lowered and compiled")
def lowered(s: Setting) -> Any:
    return s.listed(jax.jit(s.first).lower(*s.floats).compile()(*s.floats))


@feature("jaxpr evaluated, then grad")
def of_jaxpr(s: Setting) -> Any:
    closed = jax.make_jaxpr(s.total)(*s.floats)
    total = jax.extend.core.jaxpr_as_fun(closed)
    return s.listed(jax.grad(lambda *f: total(*f)[0], s.every)(*s.floats))


@feature("eval_shape")
def abstract(s: Setting) -> None:
    shapes = [g.shape for g in jax.eval_shape(s.first, *s.floats)]
    require(shapes == [x.shape for x in s.floats], f"shapes {shapes}")


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


@feature("remat with a policy")
def remat_with_policy(s: Setting) -> Any:
    policy = jax.checkpoint_policies.nothing_saveable
    total = jax.jit(jax.checkpoint(s.total, policy=policy))
    return s.listed(jax.grad(total, s.every)(*s.floats))


@feature("remat, second order")
def remat_twice(s: Setting) -> Any:
    whole = s.probed(jax.checkpoint(s.total))
    return s.listed(jax.grad(whole, s.every)(*s.floats))


@feature("fori_loop")
def fori_loop(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(k: Any, whole: Any) -> Any:
            return whole + jnp.where(k == 1, s.total(*floats), 0)

        return jax.lax.fori_loop(0, 3, step, jnp.float32(0))

    return s.listed(jax.grad(total, s.every)(*s.floats))


@feature("map")
def mapped(s: Setting) -> Any:
    def whole(*floats: Any) -> Any:
        rows = tuple(jnp.stack([x, 2 * x]) for x in floats)
        return jax.lax.map(lambda row: s.total(*row), rows)[0]

    return s.listed(jax.grad(whole, s.every)(*s.floats))


@feature("switch")
def switch(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        ways = [lambda *f: jnp.float32(0), s.total]
        return jax.lax.switch(jnp.int32(jnp.sum(floats[0]) < jnp.inf), ways, *floats)

    return s.listed(jax.grad(total, s.every)(*s.floats))


@feature("scan, second order")
def scan_twice(s: Setting) -> Any:
    return s.listed(jax.grad(s.probed(_scanned(s)), s.every)(*s.floats))


@feature("scan, second derivative of a product")
def scan_of_product(s: Setting) -> None:
    """Where what the rule gives is not used linearly, its derivative counts twice."""

    def product(*floats: Any) -> Any:
        rows = tuple(jnp.stack([x, x / 2]) for x in floats)
        step = lambda carry, row: (carry, s.total(*row))  # noqa: E731
        first, second = jax.lax.scan(step, None, rows)[1]
        return first * second

    def plain(*floats: Any) -> Any:
        return s.total(*floats) * s.total(*(x / 2 for x in floats))

    found = jax.grad(s.probed(product), s.every)(*s.floats)
    wanted = jax.grad(s.probed(plain), s.every)(*s.floats)
    for one, other in zip(found, wanted, strict=True):
        close = jnp.allclose(one, other, 1e-4, 1e-4, equal_nan=True)
        require(bool(close), f"{one} in a scan, {other} outside")


@feature("scan")
def scan(s: Setting) -> Any:
    return s.listed(jax.grad(_scanned(s), s.every)(*s.floats))


def _scanned(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        def step(carry: Any, weight: Any) -> tuple[Any, None]:
            return carry + weight * s.total(*floats), None

        return jax.lax.scan(step, jnp.float32(0), jnp.eye(1, 4)[0])[0]

    return total


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
