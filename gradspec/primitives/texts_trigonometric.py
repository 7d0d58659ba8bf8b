"""Private functions for circular functions of multiples of pi."""

from __future__ import annotations

from gradspec.primitives.coefficients_error import TANH_OVER, TANH_UNDER
from gradspec.primitives.spelling import everywhere, listed
from gradspec.primitives.texts_fused import QUOTIENT

# x - round(x) is exact, so that sin(pi * x) has no error from the rounding of pi * x
# (which is 1e-10 relative near an integer of size 1000), and integers give exactly 0.
SINPI = everywhere(
    "_sinpi",
    '''\
def _sinpi(x: Array) -> Array:
    """sin(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = xp.round(x)
    return (1.0 - 2.0 * (n % 2.0)) * xp.sin(PI * (x - n))
''',
)

# Near a half integer the cosine is the sine of what is left to it.
COSPI = everywhere(
    "_cospi",
    '''\
def _cospi(x: Array) -> Array:
    """cos(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = xp.round(x)
    r = xp.abs(x - n)
    c = xp.where(r < 0.25, xp.cos(PI * r), xp.sin(PI * (0.5 - r)))
    return (1.0 - 2.0 * (n % 2.0)) * c
''',
)

# Near 0 the series, so that its own derivative (in a backward pass that is differentiated
# again) does not cancel: sin(z) / z = 1 - u/6 (1 - u/20 (1 - u/42 (...))), u = z**2.
SINC = everywhere(
    "_sinc",
    '''\
def _sinc(x: Array) -> Array:
    """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
    small = xp.abs(x) < 0.25
    a = xp.where(small, xp.ones_like(x), x)
    b = xp.where(a - a == 0.0, a, xp.ones_like(x))  # finite
    n = xp.round(b)
    far = (1.0 - 2.0 * (n % 2.0)) * xp.sin(PI * (b - n)) / (PI * a)
    u = xp.square(PI * xp.where(small, x, xp.zeros_like(x)))
    near = xp.ones_like(x)
    for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
        near = 1.0 - u / d * near
    return xp.where(small, near, far)
''',
)

# The series is that of sinc, term by term: the ratio of two terms is -u / (2k (2k + 3)).
SINC_SLOPE = everywhere(
    "_sinc_slope",
    '''\
def _sinc_slope(x: Array) -> Array:
    """The derivative of sinc: (cos(pi * x) - sinc(x)) / x, and its series about 0."""
    small = xp.abs(x) < 0.25
    a = xp.where(small, xp.ones_like(x), x)
    b = xp.where(a - a == 0.0, a, xp.ones_like(x))  # finite
    n = xp.round(b)
    r = PI * (b - n)
    far = (1.0 - 2.0 * (n % 2.0)) * (xp.cos(r) - xp.sin(r) / (PI * b)) / a
    c = xp.where(small, x, xp.zeros_like(x))
    near = xp.ones_like(x)
    for d in (238.0, 180.0, 130.0, 88.0, 54.0, 28.0, 10.0):
        near = 1.0 - xp.square(PI * c) / d * near
    return xp.where(small, -PI * PI / 3.0 * c * near, far)
''',
)

# tf.tanh is 6 ULP off in float64 and 4.5 in float32, that of JAX 6.9 and 3.7.
TANH = everywhere(
    "_tanh",
    f'''\
def _tanh(x: Array) -> Array:
    """The hyperbolic tangent; beyond 0.7 through exp(-2 * abs(x))."""
    over = {listed(TANH_OVER)}
    under = {listed(TANH_UNDER)}
    small = xp.abs(x) <= 0.7
    b = xp.where(small, x, xp.zeros_like(x))
    u = b * b
    near = xp.where(u > 0.0, b + b * (u * _quotient(u, over, under)), b)  # keeps -0.0
    t = xp.exp(-2.0 * xp.abs(x))
    return xp.where(small, near, xp.sign(x) * (1.0 - t) / (1.0 + t))
''',
    needs=(QUOTIENT,),
)
