"""Scans over time, right and wrong."""

import jax
import jax.numpy as jnp
from jax import lax


@jax.custom_vjp
def linear(a, x, h0):
    def step(h, ax):
        h = ax[0] * h + ax[1]
        return h, h

    return lax.scan(step, h0, (a, x))[1]


def linear_fwd(a, x, h0):
    def step(h, ax):
        a_t, x_t = ax
        new = a_t * h + x_t
        return new, (new, h)

    _, (hs, before) = lax.scan(step, h0, (a, x))
    return hs, (a, before)


def linear_bwd(saved, dh):
    def step(g, parts):
        dh_t, a_t, before_t = parts
        g = g + dh_t
        return g * a_t, (g * before_t, g)

    a, before = saved
    dh0, (da, dx) = lax.scan(step, jnp.zeros_like(dh[0]), (dh, a, before), reverse=True)
    return da, dx, dh0


linear.defvjp(linear_fwd, linear_bwd)


@jax.custom_vjp
def decayed(x, w):
    """The state runs through tanh; a pair is carried."""
    carry = (jnp.zeros_like(w), jnp.zeros_like(w))

    def step(carry, x_t):
        h, total = carry
        h = jnp.tanh(w * h + x_t)
        return (h, total + h), None

    (_, total), _ = jax.lax.scan(step, carry, x)
    return total


def decayed_fwd(x, w):
    def step(h, x_t):
        new = jnp.tanh(w * h + x_t)
        return new, (new, h)

    _, (hs, before) = jax.lax.scan(step, jnp.zeros_like(w), x)
    return jnp.sum(hs, axis=0), (w, hs, before)


def decayed_bwd(saved, dy):
    w, hs, before = saved

    def step(carry, parts):
        g, dw = carry
        h, h_before = parts
        s = (g + dy) * (1 - h**2)
        return (s * w, dw + s * h_before), s

    start = (jnp.zeros_like(w), jnp.zeros_like(w))
    (_, dw), dx = jax.lax.scan(step, start, (hs, before), reverse=True)
    return dx, dw


decayed.defvjp(decayed_fwd, decayed_bwd)


@jax.custom_vjp
def forward_in_time(a, x):
    def step(h, ax):
        h = ax[0] * h + ax[1]
        return h, h

    return lax.scan(step, jnp.zeros_like(x[0]), (a, x))[1]


def forward_in_time_fwd(a, x):
    return forward_in_time(a, x), a


def forward_in_time_bwd(a, dh):
    """`reverse` is missing."""

    def step(g, parts):
        dh_t, a_t = parts
        g = g + dh_t
        return g * a_t, g

    _, dx = lax.scan(step, jnp.zeros_like(dh[0]), (dh, a))
    return None, dx


forward_in_time.defvjp(forward_in_time_fwd, forward_in_time_bwd)


@jax.custom_vjp
def late(a, x):
    def step(h, ax):
        h = ax[0] * h + ax[1]
        return h, h

    return lax.scan(step, jnp.zeros_like(x[0]), (a, x))[1]


def late_fwd(a, x):
    hs = late(a, x)
    return hs, (a, hs)


def late_bwd(saved, dh):
    """`da` has the state of the step, not that before it."""
    a, hs = saved

    def step(g, parts):
        dh_t, a_t, h_t = parts
        g = g + dh_t
        return g * a_t, (g * h_t, g)

    _, (da, dx) = lax.scan(step, jnp.zeros_like(dh[0]), (dh, a, hs), reverse=True)
    return da, dx


late.defvjp(late_fwd, late_bwd)


@jax.custom_vjp
def counted(x):
    return lax.scan(lambda h, _: (h * h, None), x, None, length=3)[0]


counted.defvjp(lambda x: (counted(x), x), lambda x, g: (8 * x**7 * g,))
