"""Private functions for what XLA computes badly: JAX's own are 4 to 130 ULP off.

None has a slope of its own at 0 (``sign`` and ``abs`` have slope 0 there): what is odd is
chosen by ``x < 0``, so that second derivatives are right.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

# XLA's own is 120 ULP off in float64 about -0.4. Of ``(1.0 + x) - 1.0`` XLA makes x, so that
# nothing is put back: it does not look through the choice.
LOG1P = Helper(
    "_log1p",
    '''\
def _log1p(x: jax.Array) -> jax.Array:
    """log(1 + x); of 1 + x the rounding error is put back (Higham, Accuracy and
    Stability of Numerical Algorithms, 2002, section 1.14.1). -0.0 stays so."""
    u = 1.0 + x
    inner = (u > 0.0) & (u < jnp.inf)
    v = jnp.where(inner, u, 1.0)
    lost = jnp.where(inner, x, 0.0) - (v - 1.0)
    y = jnp.log(u) + lost / v
    return jnp.where(x == 0.0, x * (1.0 - 0.5 * x), y)
''',
)

EXPM1 = Helper(
    "_expm1",
    '''\
def _expm1(x: jax.Array) -> jax.Array:
    """exp(x) - 1; about 0 its Taylor series: a fused loop has it nearly for nothing."""
    near = jnp.abs(x) < 0.35
    b = jnp.where(near, x, 0.0)
    count = 14 if x.dtype == jnp.float64 else 8
    s = jnp.zeros_like(x)
    for k in range(count, 1, -1):
        s = s * b + 1.0 / math.factorial(k)
    return jnp.where(near, b * (1.0 + b * s), jnp.exp(x) - 1.0)
''',
    imports=("import math",),
)

XLOG1PY = Helper(
    "_xlog1py",
    '''\
def _xlog1py(x: jax.Array, y: jax.Array) -> jax.Array:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * _log1p(jnp.where((x == 0.0) & (y >= -1.0), 0.0, y))
''',
    needs=(LOG1P,),
)

ATANH = Helper(
    "_atanh",
    '''\
def _atanh(x: jax.Array) -> jax.Array:
    """The inverse of tanh, 0.5 * log((1 + x) / (1 - x))."""
    a = jnp.where(x < 0.0, -x, x)
    y = 0.5 * _log1p(2.0 * a / (1.0 - a))
    return jnp.where(x < 0.0, -y, jnp.where(x > 0.0, y, x))
''',
    needs=(LOG1P,),
)

# XLA goes through exp(x + log(1 / 2)), whose sum is rounded. Half of e times exp(x - 1)
# has an exact difference, and stays in range as long as the result.
COSH = Helper(
    "_cosh",
    '''\
def _cosh(x: jax.Array) -> jax.Array:
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
''',
)

SINH = Helper(
    "_sinh",
    '''\
def _sinh(x: jax.Array) -> jax.Array:
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
''',
)

# XLA flushes the parts of tiny numbers.
ASIN = Helper(
    "_asin",
    '''\
def _asin(x: jax.Array) -> jax.Array:
    """The arc sine; that of a small number is the number."""
    small = jnp.abs(x) < 1e-9
    return jnp.where(small, x, jnp.arcsin(jnp.where(small, 0.0, x)))
''',
)
