"""Private functions for the inverses of the error functions and their derivatives.

The derivatives contain ``exp(y**2)`` of a ``y`` that was rounded, and so would magnify its
error by ``2 * y**2``. But ``erfc(y)`` is known, it is what was inverted, so that
``exp(y**2)`` is ``erfcx(y) / erfc(y)``, in which no error grows.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper, Spelling
from gradspec.primitives.spelling import call, everywhere
from gradspec.primitives.texts_error import ERFCX

ERFCINV: dict[str, Spelling] = {
    "numpy": call(1, "special.erfcinv"),
    "torch": Helper(
        "_erfcinv",
        '''\
def _erfcinv(x: torch.Tensor) -> torch.Tensor:
    """The inverse of erfc, from the normal quantile function."""
    return -0.7071067811865476 * torch.special.ndtri(0.5 * x)
''',
    ),
    "tf": call(1, "tf.math.erfcinv"),
    "jax": Helper(
        "_erfcinv",
        '''\
def _erfcinv(x: jax.Array) -> jax.Array:
    """The inverse of erfc, from the normal quantile function."""
    return -0.7071067811865476 * special.ndtri(0.5 * x)
''',
        ("from jax.scipy import special",),
    ),
}

# tf.math.erfinv goes through (x + 1) / 2 and so loses small arguments and those near 1
# (7e-9 relative at 1e-8 in float64); erfcinv has neither fault. JAX has the same
# polynomials in float64 as in float32, for erfinv but not for ndtri.
ERFINV = everywhere(
    "_erfinv",
    '''\
def _erfinv(x: Array) -> Array:
    """The inverse of erf.

    About 0 by a quotient of polynomials in (0.85**2 - x**2) / 4 (Wichura, Algorithm
    AS 241, Applied Statistics 37 (1988)), else through the complement, 1 - abs(x).
    """
    over = (
        2509.0809287301227,
        33430.57558358813,
        67265.7709270087,
        45921.95393154987,
        13731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    )
    under = (
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    )
    small = xp.abs(x) <= 0.85
    inner = xp.where(small, x, xp.zeros_like(x))
    r = 0.180625 - xp.square(0.5 * inner)
    p = xp.zeros_like(x)
    q = xp.zeros_like(x)
    for c, d in zip(over, under, strict=True):
        p = p * r + c
        q = q * r + d
    centre = inner * (0.3535533905932738 * p / q)
    tail = INVERSE(1.0 - xp.abs(xp.where(small, xp.ones_like(x) * 0.9, x)))
    return xp.where(small, centre, xp.sign(x) * tail)
''',
    needs=({t: h for t, h in ERFCINV.items() if isinstance(h, Helper)},),
    INVERSE={
        "numpy": "special.erfcinv",
        "torch": "_erfcinv",
        "tf": "tf.math.erfcinv",
        "jax": "_erfcinv",
    },
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
    y = xp.abs(INVERSE(x))
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
        "numpy": "special.erfinv",
        "torch": "torch.erfinv",
        "tf": "_erfinv",
        "jax": "_erfinv",
    },
    {"tf": ERFINV["tf"], "jax": ERFINV["jax"]},
)
ERFCINV_SLOPE = _slope(
    "_erfcinv_slope",
    "-sqrt(pi) / 2 * exp(y**2) at y = erfcinv(x).",
    "-0.886226925452758",
    "xp.where(x < 1.0, x, 2.0 - x)",
    {
        "numpy": "special.erfcinv",
        "torch": "_erfcinv",
        "tf": "tf.math.erfcinv",
        "jax": "_erfcinv",
    },
    {t: h for t, h in ERFCINV.items() if isinstance(h, Helper)},
)
NDTRI_SLOPE = _slope(
    "_ndtri_slope",
    "sqrt(2 * pi) * exp(y**2 / 2) at y = ndtri(x).",
    "2.5066282746310007",
    "2.0 * xp.where(x < 0.5, x, 1.0 - x)",
    {
        "numpy": "0.7071067811865476 * special.ndtri",
        "torch": "0.7071067811865476 * torch.special.ndtri",
        "tf": "0.7071067811865476 * tf.math.ndtri",
        "jax": "0.7071067811865476 * special.ndtri",
    },
)
