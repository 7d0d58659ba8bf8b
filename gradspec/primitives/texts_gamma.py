"""Private functions for the gamma function and its logarithmic derivatives.

The coefficients are fitted by benchmarks/special_coefficients.py.
"""

from __future__ import annotations

from gradspec.primitives.coefficients_gamma import (
    DIGAMMA_FAR_OVER,
    DIGAMMA_FAR_UNDER,
    DIGAMMA_OVER,
    DIGAMMA_UNDER,
    GAMMA_OVER,
    GAMMA_UNDER,
    LGAMMA_OVER,
    LGAMMA_UNDER,
)
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import behind, everywhere, listed
from gradspec.primitives.texts_error import LOG, POLYNOMIAL
from gradspec.primitives.texts_fused import QUOTIENT
from gradspec.primitives.texts_trigonometric import SINPI

# From 20 on the power is taken in two halves, so that it stays in range. Beyond 172 the
# value overflows in float64 too; the exponential does not underflow there in float32, so
# that it is infinity and not NaN.
GAMMA = everywhere(
    "_gamma",
    f'''\
def _gamma(x: Array) -> Array:
    """Stirling's formula with its rest fitted (DLMF 5.11.3); below 1 by the recurrence,
    below 0 by reflection (DLMF 5.5.1, 5.5.3)."""
    WIDEN
    over = {listed(GAMMA_OVER)}
    under = {listed(GAMMA_UNDER)}
    left = (x < 0.0) & (x > -171.6)  # beyond it is 0
    c = xp.where(left, x, 0.5 * xp.ones_like(x))
    a = xp.where(left, -x, xp.where(x < 0.0, xp.ones_like(x), x))
    b = xp.where(a < 1.0, 1.0 + a, a)
    b = xp.where(b > 172.0, 172.0 * xp.ones_like(x), b)
    half = xp.where(b < 20.0, xp.ones_like(x), 0.5 * xp.ones_like(x))
    w = b ** (half * (b - 0.5)) * xp.exp(-half * b)
    r = 1.0 / b
    g = w * (2.5066282746310007 + r * _quotient(r, over, under))
    g = g * xp.where(b < 20.0, xp.ones_like(x), w)
    g = xp.where(a < 1.0, g / a, g)
    y = xp.where(x < 0.0, xp.zeros_like(x), g)
    y = xp.where(left, -PI / (c * _sinpi(c)) / g, y)
    return ROUNDED(y)
''',
    needs=(QUOTIENT, SINPI),
)

# SciPy's gammaln loses its relative accuracy next to its zeros 1 and 2.
LGAMMA = everywhere(
    "_lgamma",
    f'''\
def _lgamma(x: Array) -> Array:
    """log(abs(gamma(x))), between 1/2 and 5/2 with the zeros 1 and 2 as factors."""
    WIDEN
    over = {listed(LGAMMA_OVER)}
    under = {listed(LGAMMA_UNDER)}
    near = xp.abs(x - 1.5) < 1.0
    b = xp.where(near, x, 1.5 * xp.ones_like(x))
    u = b - 0.5
    rest = 1.1447298858494002 + u * _quotient(u, over, under)
    middle = (b - 1.0) * (b - 2.0) * rest / (b + 1.0)
    y = xp.where(near, middle, special.gammaln(xp.where(near, 3.0, x)))
    return ROUNDED(y)
''',
    needs=(QUOTIENT,),
)

# XLA's Lanczos sum cancels from 2.5 on: 60 ULP in float32, 30 in float64.
JAX_LGAMMA = Helper(
    "_lgamma",
    f'''\
def _lgamma(x: jax.Array) -> jax.Array:
    """log(abs(gamma(x))), from 1/2 to 5/2 with the zeros 1 and 2 as factors; to either
    side by the recurrence, from 8 on Stirling's series (DLMF 5.5.1, 5.11.1)."""
    over = {listed(LGAMMA_OVER)}
    under = {listed(LGAMMA_UNDER)}
    series = (-0.029550653594771242, 0.00641025641025641, -0.0019175269175269176)
    series += (0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937)
    series += (-0.002777777777777778, 0.08333333333333333)
    right = x > 0.0
    b = jnp.where(right & (x < 8.0), x, 1.5)
    moved = jnp.where(b < 0.5, b, 1.0)
    b = jnp.where(b < 0.5, 1.0 + b, b)
    for _ in range(6):
        down = b > 2.5
        b = jnp.where(down, b - 1.0, b)
        moved = jnp.where(down, moved * b, moved)
    u = b - 0.5
    rest = 1.1447298858494002 + u * _quotient(u, over, under)
    middle = (b - 1.0) * (b - 2.0) * rest / (b + 1.0)
    middle = middle + jnp.where(x < 0.5, -1.0, 1.0) * jnp.log(moved)
    c = jnp.where(right & (x >= 8.0) & (x < 1e30), x, 8.0)
    tail = _polynomial(1.0 / (c * c), series) / c
    tail = (c - 0.5) * (jnp.log(c) - 1.0) + (0.4189385332046728 + tail)
    y = jnp.where(x < 8.0, middle, tail)
    outer = ~right | (x >= 1e30) | (x != x)
    return jnp.where(outer, special.gammaln(jnp.where(outer, x, 1.0)), y)
''',
    ("from jax.scipy import special",),
    needs=(QUOTIENT["jax"], POLYNOMIAL["jax"]),
)

DIGAMMA = everywhere(
    "_digamma",
    f'''\
def _digamma(x: Array) -> Array:
    """The derivative of log(abs(gamma(x))): up to 2 with its zero as a factor, beyond
    by DLMF 5.11.2, on the left by reflection (DLMF 5.5.4)."""
    over = {listed(DIGAMMA_OVER)}
    under = {listed(DIGAMMA_UNDER)}
    far_over = {listed(DIGAMMA_FAR_OVER)}
    far_under = {listed(DIGAMMA_FAR_UNDER)}
    left = x < 0.0
    a = xp.where(left, 1.0 - x, x)
    far = a > 2.0
    b = xp.where(far, xp.ones_like(x), a)
    zero = APART - 1.2438149938918909e-08
    over_zero = 0.6841666717870696 + b * _quotient(b, over, under)
    near = (NEARER - 4.341643069426251e-25) / b * over_zero
    c = xp.where(far, a, 2.0 * xp.ones_like(x))
    r = 1.0 / c
    tail = LOG(c) - 0.5 * r - r * (r * _quotient(r * r, far_over, far_under))
    right = xp.where(far, tail, near)
    t = xp.where(left, x - xp.round(x), 0.25 * xp.ones_like(x))
    return xp.where(left, right - PI / xp.tan(PI * t), right)
''',
    needs=(QUOTIENT,),
    LOG=LOG,
    APART=behind("2.0", "(b - 1.4616321325302124)"),
    NEARER=behind("2.0", "zero"),
)

# The frameworks' zeta functions underflow for large x, TensorFlow's is 6 ULP off.
POLYGAMMA = everywhere(
    "_polygamma",
    '''\
def _polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x), by
    its first terms and Euler's summation of the others (DLMF 25.11.43)."""
    if n == 0:
        return _digamma(x)
    over = (-3617, 7, -691, 5, -1, 1, -1, 1)  # Bernoulli's numbers
    under = (510, 6, 2730, 66, 30, 42, 30, 6)
    far = x > 10.0 + n
    r = 1.0 / xp.where(far, x, x + (10.0 + n))
    s = xp.zeros_like(x)
    for k, b, c in zip(range(16, 0, -2), over, under, strict=True):
        s = s * (r * r) + b / c * math.comb(n + k - 1, k)
    scale = (-1.0) ** (n + 1) * math.factorial(n)  # first: its product may be subnormal
    s = scale * (1.0 / n + 0.5 * r + s / n * (r * r)) * r
    for _ in range(n - 1):
        s = s * r
    near = xp.where(far, xp.ones_like(x), x)
    first = xp.zeros_like(x)
    for k in range(9 + n, -1, -1):
        r = 1.0 / (near + float(k))
        p = r
        for _ in range(n):
            p = p * r
        first = first + p
    return xp.where(far, s, s + scale * first)
''',
    ("import math",),
    needs=(DIGAMMA,),
)

# special.polygamma gives float64 whatever it is given.
NUMPY_POLYGAMMA = Helper(
    "_polygamma",
    '''\
def _polygamma(n: int, x: np.ndarray) -> np.ndarray:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return special.digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * special.zeta(n + 1.0, x)
''',
    ("import math", "from scipy import special"),
)
