"""Private functions for the inverses of the error functions and their derivatives.

The derivatives contain ``exp(y**2)`` of a ``y`` that was rounded, and so would magnify its
error by ``2 * y**2``. But ``erfc(y)`` is known, it is what was inverted, so that
``exp(y**2)`` is ``erfcx(y) / erfc(y)``, in which no error grows.
"""

from __future__ import annotations

from gradspec.primitives.coefficients_inverse import (
    ERFCINV_FAR_OVER,
    ERFCINV_FAR_UNDER,
    ERFCINV_OVER,
    ERFCINV_UNDER,
    ERFINV_OVER,
    ERFINV_UNDER,
)
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere, listed
from gradspec.primitives.texts_error import ERFCX, LOG
from gradspec.primitives.texts_fused import QUOTIENT

_FITS = [
    listed(c)
    for c in (
        *(ERFINV_OVER, ERFINV_UNDER),
        *(ERFCINV_OVER, ERFCINV_UNDER),
        *(ERFCINV_FAR_OVER, ERFCINV_FAR_UNDER),
    )
]

# tf.math.erfinv goes through (x + 1) / 2 and so loses small arguments and those near 1
# (7e-9 relative at 1e-8 in float64), JAX's has the same polynomials in float64 as in
# float32, and XLA's ndtri is infinite below 3e-8. By way of PyTorch's ndtri erfcinv is 5 ULP off,
# as SciPy's is, which takes a sixth of the time that this would.
INVERSE = everywhere(
    "_inverse_error",
    f'''\
def _inverse_error(u: Array, rest: Array) -> Array:
    """The inverse of erf at u, where rest is 1 - abs(u).

    Far out it is a little less than t = sqrt(-log(rest)).
    """
    over = {_FITS[0]}
    under = {_FITS[1]}
    near_over = {_FITS[2]}
    near_under = {_FITS[3]}
    far_over = {_FITS[4]}
    far_under = {_FITS[5]}
    inner = xp.abs(u) <= 0.75
    b = xp.where(inner, u, xp.zeros_like(u))
    w = b * b
    centre = b * (0.886226925452758 + w * _quotient(0.5625 - w, over, under))
    t = xp.sqrt(-LOG(xp.where(inner, 0.25 * xp.ones_like(u), rest)))
    c = xp.minimum(t, 27.5 * xp.ones_like(u))
    near = c < 4.0
    less = xp.where(
        near,
        _quotient(xp.where(near, c - 1.125, xp.zeros_like(u)), near_over, near_under),
        _quotient(xp.where(near, xp.zeros_like(u), c - 4.0), far_over, far_under),
    )
    tail = t - less
    return xp.where(inner, centre, xp.where(u < 0.0, -tail, tail))
''',
    needs=(QUOTIENT,),
    LOG=LOG,
)


def _inverse(name: str, said: str, value: str) -> dict[str, Helper]:
    """``said``, by ``value``; NumPy has SciPy's."""
    text = f'''\
def {name}(x: Array) -> Array:
    """{said}"""
    return {value}
'''
    found = everywhere(name, text, needs=(INVERSE,))
    return {target: found[target] for target in ("torch", "tf", "jax")}


ERFINV = _inverse(
    "_erfinv", "The inverse of erf.", "_inverse_error(x, 1.0 - xp.abs(x))"
)
ERFCINV = _inverse(
    "_erfcinv",
    "The inverse of erfc.",
    "_inverse_error(1.0 - x, xp.minimum(x, 2.0 - x))",
)
NDTRI = _inverse(
    "_ndtri",
    "The inverse of the normal distribution function.",
    "-1.4142135623730951 * _inverse_error(\n"
    "        1.0 - 2.0 * x, xp.minimum(2.0 * x, 2.0 - 2.0 * x)\n"
    "    )",
)


def _slope(
    name: str,
    said: str,
    factor: str,
    complement: str,
    inverse: dict[str, str],
    *needs: dict[str, Helper],
) -> dict[str, Helper]:
    """``factor`` times exp(y**2), where erfc(abs(y)) is ``complement``."""
    return everywhere(
        name,
        f'''\
def {name}(x: Array) -> Array:
    """{said}

    Beyond 1/2 exp(y**2) is erfcx(y) / erfc(y), and erfc(y) is what was inverted.
    """
    WIDEN
    y = xp.abs(INVERSE)
    small = y <= 0.5
    b = xp.where(small, y, xp.zeros_like(x))
    c = xp.where(y > 40.0, 40.0 * xp.ones_like(x), y)
    q = {complement}
    square = xp.where(small, xp.exp(b * b), _erfcx(c) / q)
    y = {factor} * square
    return ROUNDED(y)
''',
        needs=(*needs, ERFCX),
        INVERSE=inverse,
    )


ERFINV_SLOPE = _slope(
    "_erfinv_slope",
    "sqrt(pi) / 2 * exp(y**2) at y = erfinv(x).",
    "0.886226925452758",
    "1.0 - xp.abs(x)",
    {
        "numpy": "special.erfinv(x)",
        "torch": "torch.erfinv(x)",
        "tf": "_erfinv(x)",
        "jax": "_erfinv(x)",
    },
    {"tf": ERFINV["tf"], "jax": ERFINV["jax"]},
)
ERFCINV_SLOPE = _slope(
    "_erfcinv_slope",
    "-sqrt(pi) / 2 * exp(y**2) at y = erfcinv(x).",
    "-0.886226925452758",
    "xp.where(x < 1.0, x, 2.0 - x)",
    dict.fromkeys(ERFCINV, "_erfcinv(x)") | {"numpy": "special.erfcinv(x)"},
    ERFCINV,
)
NDTRI_SLOPE = _slope(
    "_ndtri_slope",
    "sqrt(2 * pi) * exp(y**2 / 2) at y = ndtri(x).",
    "2.5066282746310007",
    "2.0 * xp.where(x < 0.5, x, 1.0 - x)",
    dict.fromkeys(ERFCINV, "_erfcinv(2.0 * x)") | {"numpy": "special.erfcinv(2.0 * x)"},
    ERFCINV,
)
