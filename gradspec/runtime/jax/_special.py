"""Special functions that JAX lacks or computes less accurately."""

# mypy: disable-error-code="no-untyped-call"
# Parts of JAX have no type annotations.

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from .._formulas import Formulas


def expm1(x: jax.Array) -> jax.Array:
    """exp(x) - 1; about 0 its Taylor series: a fused loop has it nearly for nothing."""
    near = jnp.abs(x) < 0.35
    b = jnp.where(near, x, 0.0)
    count = 14 if x.dtype == jnp.float64 else 8
    s = jnp.zeros_like(x)
    for k in range(count, 1, -1):
        s = s * b + 1.0 / math.factorial(k)
    return jnp.where(near, b * (1.0 + b * s), jnp.exp(x) - 1.0)


def log1p(x: jax.Array) -> jax.Array:
    """log(1 + x), corrected for the rounding error of 1 + x (Higham, Accuracy and
    Stability of Numerical Algorithms, 2002, section 1.14.1). -0.0 stays so."""
    u = 1.0 + x
    inner = (u > 0.0) & (u < jnp.inf)
    v = jnp.where(inner, u, 1.0)
    lost = jnp.where(inner, x, 0.0) - (v - 1.0)
    y = jnp.log(u) + lost / v
    return jnp.where(x == 0.0, x * (1.0 - 0.5 * x), y)


_OPERATIONS = (
    "abs cos exp floor isfinite isinf log minimum ones_like round sign sin sqrt square tan"
    " where zeros_like"
)
_formulas = Formulas(
    SimpleNamespace(
        **{name: getattr(jnp, name) for name in _OPERATIONS.split()},
        erfc=jax.lax.erfc,
        expm1=expm1,
        log1p=log1p,
    )
)


def __getattr__(name: str) -> Callable[..., Any]:
    """A function that is not written below: one of the formulas."""
    return getattr(_formulas, name)  # type: ignore[no-any-return]


def logaddexp(x: jax.Array, y: jax.Array) -> jax.Array:
    """log(exp(x) + exp(y)), from the larger; equal infinities stay."""
    s = x + -y
    left = s < 0.0
    t = jnp.exp(jnp.where(left, s, -s))
    larger = jnp.where(left, y, x) + jnp.log1p(t)
    return jnp.where((x == y) & (s != 0.0), x, larger)


def xlog1py(x: jax.Array, y: jax.Array) -> jax.Array:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * log1p(jnp.where((x == 0.0) & (y >= -1.0), 0.0, y))


def asin(x: jax.Array) -> jax.Array:
    """The arc sine; that of a small number is the number."""
    small = jnp.abs(x) < 1e-9
    return jnp.where(small, x, jnp.arcsin(jnp.where(small, 0.0, x)))


def sinh(x: jax.Array) -> jax.Array:
    """(exp(x) - exp(-x)) / 2; up to 1 its Taylor series."""
    a = jnp.where(x < 0.0, -x, x)
    far = 1.3591409142295225 * jnp.exp(a - 1.0) - 0.5 * jnp.exp(-a)
    small = a < 1.0
    b = jnp.where(small, x, 0.0)
    u = b * b
    s = jnp.zeros_like(x)
    for d in (342.0, 272.0, 210.0, 156.0, 110.0, 72.0, 42.0, 20.0):
        s = u / d * (1.0 + s)
    near = b + b * (u / 6.0 * (1.0 + s))
    return jnp.where(small, near, jnp.where(x < 0.0, -far, far))


def cosh(x: jax.Array) -> jax.Array:
    """(exp(x) + exp(-x)) / 2, the larger as exp(abs(x) - 1) * e / 2; up to 1 its
    Taylor series."""
    a = jnp.where(x < 0.0, -x, x)
    far = 1.3591409142295225 * jnp.exp(a - 1.0) + 0.5 * jnp.exp(-a)
    small = a < 1.0
    u = jnp.square(jnp.where(small, x, 0.0))
    s = jnp.zeros_like(x)
    for d in (306.0, 240.0, 182.0, 132.0, 90.0, 56.0, 30.0, 12.0):
        s = u / d * (1.0 + s)
    return jnp.where(small, 1.0 + 0.5 * u * (1.0 + s), far)


_TANH = (
    (
        -1.74260619590238e-08,
        -0.00024370987168277484,
        -0.021418449876138373,
        -0.3333333333333333,
    ),
    (
        0.00025476906670701617,
        0.024528507561652875,
        0.4642553496284151,
        1.0,
    ),
)


def tanh(x: jax.Array) -> jax.Array:
    """The hyperbolic tangent; beyond 0.7 through exp(-2 * abs(x))."""
    small = jnp.abs(x) <= 0.7
    b = jnp.where(small, x, jnp.zeros_like(x))
    u = b * b
    near = jnp.where(
        u > 0.0, b + b * (u * _formulas._quotient(u, *_TANH)), b
    )  # keeps -0.0
    t = jnp.exp(-2.0 * jnp.abs(x))
    return jnp.where(small, near, jnp.sign(x) * (1.0 - t) / (1.0 + t))


def atanh(x: jax.Array) -> jax.Array:
    """The inverse of tanh, 0.5 * log((1 + x) / (1 - x))."""
    a = jnp.where(x < 0.0, -x, x)
    y = 0.5 * log1p(2.0 * a / (1.0 - a))
    return jnp.where(x < 0.0, -y, jnp.where(x > 0.0, y, x))


_STIRLING = (  # DLMF 5.11.1
    0.08333333333333333,
    -0.002777777777777778,
    0.0007936507936507937,
    -0.0005952380952380953,
    0.0008417508417508417,
    -0.0019175269175269176,
    0.00641025641025641,
    -0.029550653594771242,
)


def lgamma(x: jax.Array) -> jax.Array:
    """log(abs(gamma(x))), from 1/2 to 5/2 with the zeros 1 and 2 as factors; to either
    side by the recurrence, from 8 on Stirling's series (DLMF 5.5.1, 5.11.1)."""
    right = x > 0.0
    b = jnp.where(right & (x < 8.0), x, 1.5)
    moved = jnp.where(b < 0.5, b, 1.0)
    b = jnp.where(b < 0.5, 1.0 + b, b)
    for _ in range(6):
        down = b > 2.5
        b = jnp.where(down, b - 1.0, b)
        moved = jnp.where(down, moved * b, moved)
    middle = _formulas.lgamma_middle(b)
    middle = middle + jnp.where(x < 0.5, -1.0, 1.0) * jnp.log(moved)
    c = jnp.where(right & (x >= 8.0) & (x < 1e30), x, 8.0)
    tail = _formulas.series(1.0 / (c * c), *_STIRLING) / c
    tail = (c - 0.5) * (jnp.log(c) - 1.0) + (0.4189385332046728 + tail)
    y = jnp.where(x < 8.0, middle, tail)
    outer = ~right | (x >= 1e30) | jnp.isnan(x)
    return jnp.where(outer, special.gammaln(jnp.where(outer, x, 1.0)), y)


def round_before_use(x: jax.Array) -> jax.Array:
    """x, rounded before it is used: XLA would join what is on both sides."""
    kind = jnp.finfo(x.dtype)
    return jax.lax.reduce_precision(x, kind.nexp, kind.nmant)
