"""Private functions for the error function and its relatives.

The coefficients are fitted by benchmarks/special_coefficients.py; all are positive, or
nearly so, so that Horner's rule loses nothing in float32 either.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.primitives.coefficients_error import (
    ERF_OVER,
    ERF_UNDER,
    ERFCX_FAR_OVER,
    ERFCX_FAR_UNDER,
    ERFCX_OVER,
    ERFCX_SLOPE_FAR_OVER,
    ERFCX_SLOPE_FAR_UNDER,
    ERFCX_SLOPE_OVER,
    ERFCX_SLOPE_UNDER,
    ERFCX_UNDER,
)
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere, listed
from gradspec.primitives.texts_elementary import (
    BELL_RAISED,
    EXP_NEG_HALF_SQUARE,
    EXP_NEG_SQUARE,
    EXPM1,
)
from gradspec.primitives.texts_fused import NDTR as NDTR_SINGLE
from gradspec.primitives.texts_fused import NDTR_RAISED as NDTR_RAISED_SINGLE
from gradspec.primitives.texts_fused import QUOTIENT, quick
from gradspec.primitives.texts_normal import ERFC as ERFC_SINGLE
from gradspec.primitives.texts_normal import LOG_NDTR as LOG_NDTR_SINGLE
from gradspec.primitives.texts_normal import NDTR as NUMPY_NDTR_SINGLE
from gradspec.primitives.texts_normal import narrow

LOG = {
    "numpy": "np.log",
    "torch": "torch.log",
    "tf": "tf.math.log",
    "jax": "jnp.log",
}

POLYNOMIAL = everywhere(
    "_polynomial",
    '''\
def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """A polynomial in x, its highest power first."""
    p = xp.zeros_like(x)
    for c in coefficients:
        p = p * x + c
    return p
''',
)

# XLA would make one exponential of a product of two: hence expm1.
EXP_SQUARE = everywhere(
    "_exp_square",
    '''\
def _exp_square(x: Array) -> Array:
    """exp(x**2), the square split: its rounding error would be magnified by x**2."""
    c = xp.where(xp.abs(x) > 64.0, 64.0 * xp.sign(x), x)
    h = xp.sign(c) * xp.floor(256.0 * xp.abs(c)) / 256.0
    return xp.exp(h * h) * (1.0 + EXPM1((c - h) * (c + h)))
''',
    EXPM1=EXPM1,
)


def _right(
    name: str,
    said: str,
    near: str,
    tail: str,
    left: str,
    coefficients: tuple[tuple[float, ...], ...],
) -> dict[str, Helper]:
    """A function of erfcx's kind. ``near`` is it up to 2, by ``b`` and ``q``; ``tail`` from
    there on, by ``r``, 1 / x, and ``p``; ``left`` is what it is on the left, by ``n``.
    """
    over, under, far_over, far_under = coefficients
    return everywhere(
        name,
        f'''\
def {name}(x: Array) -> Array:
    """{said}"""
    WIDEN
    over = {listed(over)}
    under = {listed(under)}
    far_over = {listed(far_over)}
    far_under = {listed(far_under)}
    a = xp.where(x < 0.0, -x, x)
    far = a > 2.0
    edge = 2.0 * xp.ones_like(x)
    b = xp.where(far, edge, a)
    q = b * _quotient(b, over, under)
    r = 1.0 / xp.where(far, a, edge)
    p = r * r * _quotient(r * r, far_over, far_under)
    near = {near}
    right = xp.where(far, {tail}, near)
    n = xp.where(x < 0.0, x, xp.zeros_like(x))
    y = xp.where(x < 0.0, {left}, right)
    return ROUNDED(y)
''',
        needs=(QUOTIENT, EXP_SQUARE),
    )


ERFCX = _right(
    "_erfcx",
    "exp(x**2) * erfc(x), from 2 on by what is left of 1 / (sqrt(pi) * x).",
    "(1.0 + q) / (1.0 + 2.0 * b)",
    "r * (0.5641895835477563 + p)",
    "2.0 * _exp_square(n) - right",
    (ERFCX_OVER, ERFCX_UNDER, ERFCX_FAR_OVER, ERFCX_FAR_UNDER),
)

# 2 * x * erfcx(x) - 2 / sqrt(pi) cancels for large x: 2 * x**2 times the rounding error.
ERFCX_SLOPE = _right(
    "_erfcx_slope",
    "The derivative of erfcx, that is 2 * x * erfcx(x) - 2 / sqrt(pi).",
    "-(1.1283791670955126 + q) / xp.square(1.0 + b)",
    "-r * (r * (0.5641895835477563 + p))",
    "4.0 * n * _exp_square(n) + right",
    (
        ERFCX_SLOPE_OVER,
        ERFCX_SLOPE_UNDER,
        ERFCX_SLOPE_FAR_OVER,
        ERFCX_SLOPE_FAR_UNDER,
    ),
)

# The frameworks' own erfc rounds the square in exp(-x**2), TensorFlow's in float64 too.
ERFC = everywhere(
    "_erfc",
    f'''\
def _erfc(x: Array) -> Array:
    """1 - erf(x); for abs(x) > 1/2 through exp(-x**2) * erfcx(x)."""
    NARROW
    WIDEN
    over = {listed(ERF_OVER)}
    under = {listed(ERF_UNDER)}
    small = xp.abs(x) <= 0.5
    b = xp.where(small, x, 0.5 * xp.ones_like(x))
    u = b * b
    near = 1.0 - b * (1.1283791670955126 + u * _quotient(u, over, under))
    tail = _exp_neg_square(x) * _erfcx(xp.abs(x))
    y = xp.where(small, near, xp.where(x < 0.0, 2.0 - tail, tail))
    return ROUNDED(y)
''',
    (),
    (QUOTIENT, EXP_NEG_SQUARE, ERFCX, ERFC_SINGLE),
    **narrow("_erfc"),
)

TF_ERF = everywhere(
    "_erf",
    f'''\
def _erf(x: Array) -> Array:
    """The error function; for abs(x) > 1/2 through its complement."""
    over = {listed(ERF_OVER)}
    under = {listed(ERF_UNDER)}
    small = xp.abs(x) <= 0.5
    b = xp.where(small, x, 0.5 * xp.ones_like(x))
    u = b * b
    near = b * (1.1283791670955126 + u * _quotient(u, over, under))
    far = 1.0 - _exp_neg_square(x) * _erfcx(xp.abs(x))
    return xp.where(small, near, xp.where(x < 0.0, -far, far))
''',
    needs=(QUOTIENT, EXP_NEG_SQUARE, ERFCX),
)["tf"]


def _distribution(
    name: str,
    takes: str,
    said: str,
    bell: str,
    needs: tuple[Mapping[str, Helper], ...],
    is_narrow: bool = False,
) -> dict[str, Helper]:
    """The normal distribution function; ``bell`` is exp(-x**2 / 2). ``is_narrow``: NumPy
    has another for float32."""
    given = takes.replace(": Array", "")
    none = {"    NARROW\n": dict.fromkeys(("numpy", "torch", "tf", "jax"), "")}
    return everywhere(
        name,
        f'''\
def {name}({takes}) -> Array:
    """{said}"""
    NARROW
    WIDEN
    SINGLE
    over = {listed(ERF_OVER)}
    under = {listed(ERF_UNDER)}
    small = xp.abs(x) <= 0.5
    b = 0.7071067811865476 * xp.where(small, x, 0.5 * xp.ones_like(x))
    u = b * b
    near = 0.5 + 0.5 * b * (1.1283791670955126 + u * _quotient(u, over, under))
    scaled = _erfcx(0.7071067811865476 * xp.abs(x))
    tail = 0.5 * {bell} * scaled
    y = xp.where(small, near, xp.where(x < 0.0, tail, 1.0 - tail))
    return ROUNDED(y)
''',
        (),
        (QUOTIENT, *needs, ERFCX),
        **quick(name, given),
        **(narrow(name) if is_narrow else none),
    )


# torch.special.ndtr is 1 + erf, which is 0 in the left tail; SciPy's rounds x / sqrt(2).
NDTR = _distribution(
    "_ndtr",
    "x: Array",
    "0.5 * erfc(-x / sqrt(2)); for abs(x) > 1/2 through exp(-x**2 / 2) * erfcx.",
    "_exp_neg_half_square(x)",
    (*NDTR_SINGLE, EXP_NEG_HALF_SQUARE, NUMPY_NDTR_SINGLE),
    is_narrow=True,
)

NDTR_RAISED = _distribution(
    "_ndtr_raised",
    "x: Array, y: Array",
    "exp(y) * ndtr(x), where y is 0 unless x < -1; as _ndtr.",
    "_bell_raised(x, y)",
    (*NDTR_RAISED_SINGLE, BELL_RAISED),
)

# torch's erfc is vectorised and right to 1.5 ULP: what is left is the rounding of x / sqrt(2),
# which erfc magnifies by 2 * z**2. It takes a tenth of the time of the function above.
NDTR["torch"] = everywhere(
    "_ndtr",
    '''\
def _ndtr(x: Array) -> Array:
    """0.5 * erfc(z), z = -x / sqrt(2); ``e``, what rounding takes off z, is put back by
    the slope of log(erfc), which is -(2 * z + 1 / z) far out.
    """
    SINGLE
    c = torch.clamp(x, -40.0, 40.0)
    factor, high, low = (
        (4097.0, 0.70703125, 7.55311865475244e-05)
        if c.dtype == torch.float32
        else (134217729.0, 0.7071067690849304, 1.210161710447897e-08)
    )
    scaled = factor * c
    h = scaled - (scaled - c)
    z = -0.7071067811865476 * c
    e = torch.add(torch.add(z, h, alpha=high), c - h, alpha=high)
    e = torch.add(e, c, alpha=low)
    p = torch.clamp(z, min=0.0)
    slope = torch.add(p / (p * p + 0.6), p, alpha=2.0)
    return 0.5 * torch.erfc(z) * (1.0 + e * slope)
''',
    (),
    NDTR_SINGLE,
    **quick("_ndtr"),
)["torch"]

LOG_NDTR = everywhere(
    "_log_ndtr",
    '''\
def _log_ndtr(x: Array) -> Array:
    """log(ndtr(x)), on the left through erfcx, so that nothing underflows, on the right
    log(1 - t) as -2 * atanh(t / (2 - t)) by its series."""
    NARROW
    WIDEN
    left = x < 0.0
    n = xp.where(left, x, xp.zeros_like(x))
    p = xp.where(left, xp.zeros_like(x), x)
    scaled = LOG(0.5 * _erfcx(-0.7071067811865476 * n)) - 0.5 * n * n
    t = _ndtr(-p)
    s = 2.0 * t / (2.0 - t)
    rest = xp.zeros_like(x)
    for k in range(35, 1, -2):
        rest = (rest + 1.0 / k) * (0.25 * s * s)
    y = xp.where(left, scaled, -s - s * rest)
    return ROUNDED(y)
''',
    (),
    (ERFCX, NDTR, LOG_NDTR_SINGLE),
    LOG=LOG,
    **narrow("_log_ndtr"),
)

MILLS = everywhere(
    "_inverse_mills",
    f'''\
def _inverse_mills(x: Array) -> Array:
    """The normal density over its distribution function; sqrt(2 / pi) / erfcx on the
    left, where both underflow, and far out -x."""
    WIDEN
    over = {listed(ERF_OVER)}
    under = {listed(ERF_UNDER)}
    scaled = _erfcx(0.7071067811865476 * xp.abs(x))
    bell = _exp_neg_half_square(x)
    small = xp.abs(x) <= 0.5
    b = 0.7071067811865476 * xp.where(small, x, 0.5 * xp.ones_like(x))
    u = b * b
    near = 0.5 + 0.5 * b * (1.1283791670955126 + u * _quotient(u, over, under))
    right = xp.where(small, near, 1.0 - 0.5 * bell * scaled)
    right = 0.3989422804014327 * bell / right
    far = x < -1e9
    left = 0.7978845608028654 / xp.where(far, xp.ones_like(x), scaled)
    y = xp.where(x >= 0.0, right, xp.where(far, -x, left))
    return ROUNDED(y)
''',
    needs=(QUOTIENT, EXP_NEG_HALF_SQUARE, ERFCX),
)
