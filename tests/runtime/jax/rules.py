"""Rules over the JAX runtime as gradspec emits them, written by hand."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from gradspec.runtime.jax._axes import check_shapes
from gradspec.runtime.jax._gradspec import (
    WIDE,
    batched_with,
    booleans,
    counted,
    filled,
    floats,
    in_step,
    integers,
    lasting,
    number,
    pullback,
    residual,
    round_to,
    slopes,
    sum_to,
    whole,
)


@jax.custom_jvp
def _square(x):
    return x * x


@slopes(_square)
def _square_slopes(x, _y):
    return 2.0 * x


def square(x):
    dtype, x = floats("square", x=x)
    return round_to(dtype, _square(x))


def wide_square(x):
    dtype, x = floats("wide_square", WIDE, x=x)
    return round_to(dtype, _square(x))


@jax.custom_jvp
def _power(x, y):
    return x**y


@slopes(_power)
def _power_slopes(x, y, z):
    return y * x ** (y - 1.0), z * jnp.log(x)


def power(x, y):
    dtype, x, y = floats("power", x=x, y=y)
    return round_to(dtype, _power(x, y))


@functools.partial(lasting, nondiff_argnums=(1,))
def _spike(v, k):
    return (v > 0.0).astype(v.dtype)


@slopes(_spike)
def _spike_slopes(v, k, _y):
    return k * jax.nn.sigmoid(k * v)


def spike(v, *, k=2.0):
    dtype, v = floats("spike", v=v)
    k = number(k)
    return round_to(dtype, _spike(v, k))


@jax.custom_vjp
def _gate(x, w):
    return batched_with(x * w, x, w), batched_with(jnp.sin(x), x, w)


def _gate_forward(x, w):
    y, z = _gate(x, w)
    return (y, z), (residual(x), residual(w))


def _gate_backward(residuals, cotangents):
    x, w = residuals
    dy, dz = cotangents
    return sum_to(dy * dy * w + dz * x * w, x), sum_to(dy * dy * x + dz * dz * w, w)


_gate.defvjp(_gate_forward, _gate_backward)


def gate(x, w):
    """Its gradient is not linear; the second output depends on one of its inputs."""
    dtype, x, w = floats("gate", x=x, w=w)
    x, w = in_step(x, w)
    y, z = _gate(x, w)
    return round_to(dtype, y), round_to(dtype, z)


@jax.custom_jvp
def _rows(x, g, n, on, k):
    y = jnp.where(on, g * x**3 + k * n.astype(x.dtype), 0.0)
    return y, counted(filled(2.0, x, g))


@pullback(_rows, constant=(1,))
def _rows_pullback(x, g, _n, on, _k, _y, _at, dy):
    dy = jnp.where(on, dy, 0.0)
    return sum_to(3.0 * dy * g * x * x, x), sum_to(dy * x**3, g), None, None, None


def rows(x, g, n, on, *, k=3):
    dtype, x, g = floats("rows", x=x, g=g)
    n = integers("rows", "n", n)
    on = booleans("rows", "on", on)
    k = whole(k)
    check_shapes("rows", x=(x, "... k"), g=(g, "k"), n=(n, ""), k=k)
    y, at = _rows(x, g, n, on, k)
    return round_to(dtype, y), at
