"""Private functions for the modified Bessel functions of the first kind.

The coefficients are fitted by benchmarks/special_coefficients.py. Far out a function
times exp(-x) and a power of x is a polynomial in 1 / x, written in w from -1 to 1.
"""

from __future__ import annotations

from gradspec.primitives import coefficients_bessel as c
from gradspec.primitives import coefficients_slopes as d
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import behind, everywhere, listed
from gradspec.primitives.texts_error import POLYNOMIAL

_Coefficients = tuple[float, ...]


def _plain(
    name: str, said: str, near: _Coefficients, far: _Coefficients, sign: str
) -> dict[str, Helper]:
    """``sign`` is the factor that makes the function of abs(x) that of x."""
    return everywhere(
        name,
        f'''\
def {name}(x: Array) -> Array:
    """{said}"""
    WIDEN
    small = {listed(near)}
    large = {listed(far)}
    a = xp.abs(x)
    far = a > 6.0
    edge = 6.0 * xp.ones_like(x)
    near = _polynomial(xp.square(xp.where(far, edge, a)), small)
    b = xp.where(far, xp.where(a > 800.0, 800.0 * xp.ones_like(x), a), edge)
    tail = _polynomial(12.0 / b - 1.0, large) / xp.sqrt(b)
    huge = b > 64.0  # exp(b) leaves the range before the product does
    e = tail * xp.exp(xp.where(huge, b - 64.0, b))
    tail = xp.where(huge, 6.235149080811617e27 * e, e)
    y = {sign}
    return ROUNDED(y)
''',
        needs=(POLYNOMIAL,),
    )


def _scaled(
    name: str, said: str, near: _Coefficients, far: _Coefficients, sign: str
) -> dict[str, Helper]:
    """The same times exp(-abs(x))."""
    return everywhere(
        name,
        f'''\
def {name}(x: Array) -> Array:
    """{said}"""
    WIDEN
    small = {listed(near)}
    large = {listed(far)}
    a = xp.abs(x)
    far = a > 6.0
    edge = 6.0 * xp.ones_like(x)
    b = xp.where(far, edge, a)
    near = _polynomial(xp.square(b), small) * xp.exp(-b)
    c = xp.where(far, a, edge)
    tail = _polynomial(12.0 / c - 1.0, large) / xp.sqrt(c)
    y = {sign}
    return ROUNDED(y)
''',
        needs=(POLYNOMIAL,),
    )


def _slope(
    name: str,
    said: str,
    coefficients: tuple[_Coefficients, ...],
    near: str,
    sign: str,
    steps: str = "",
    **names: dict[str, str],
) -> dict[str, Helper]:
    """The derivative of a scaled function, in three pieces: ``near`` is the first one
    from the polynomial ``p``, after ``steps``."""
    first, middle, last = coefficients
    return everywhere(
        name,
        f'''\
def {name}(x: Array) -> Array:
    """{said}"""
    WIDEN
    small = {listed(first)}
    middle = {listed(middle)}
    large = {listed(last)}
    a = xp.abs(x)
    edge = 3.0 * xp.ones_like(x)
    b = xp.where(a > 3.0, edge, a)
    p = _polynomial(b, small) * xp.exp(-2.0 * b)
    r = 1.0 / xp.where(a > 3.0, a, edge)
    w = (r + r - 11.0 / 24.0) / (5.0 / 24.0)  # 1 / x from 1 / 8 to 1 / 3
    inner = _polynomial(xp.where(a > 8.0, -xp.ones_like(x), w), middle)
    w = xp.where(a > 8.0, 16.0 * r - 1.0, xp.ones_like(x))
    outer = _polynomial(w, large)
    tail = r * (xp.sqrt(r) * xp.where(a > 8.0, outer, inner))
{steps}    near = {near}
    y = {sign}xp.where(a > 3.0, tail, near)
    return ROUNDED(y)
''',
        (),
        (POLYNOMIAL,),
        **names,
    )


_EVEN = "xp.where(far, tail, near)"
_ODD = "xp.where(far, xp.sign(x) * tail, x * near)"

I0 = _plain("_i0", "The modified Bessel function of order 0.", c.I0, c.I0_FAR, _EVEN)
I1 = _plain("_i1", "The modified Bessel function of order 1.", c.I1, c.I1_FAR, _ODD)
I1_SLOPE = _plain(
    "_i1_slope",
    "The derivative of I1, (I0(x) + I2(x)) / 2 (DLMF 10.29.1).",
    c.I1_SLOPE,
    c.I1_SLOPE_FAR,
    _EVEN,
)
I0E = _scaled("_i0e", "exp(-abs(x)) * I0(x).", c.I0, c.I0_FAR, _EVEN)
I1E = _scaled("_i1e", "exp(-abs(x)) * I1(x).", c.I1, c.I1_FAR, _ODD)
I0E_SLOPE = _slope(
    "_i0e_slope",
    "The derivative of i0e: i1e - i0e for x > 0, which would cancel.",
    (d.I0E_SLOPE, d.I0E_SLOPE_MIDDLE, d.I0E_SLOPE_FAR),
    "p",
    "-xp.sign(x) * ",
)
I1E_SLOPE = _slope(
    "_i1e_slope",
    "The derivative of i1e: i0e - (1 + 1/x) i1e for x > 0; its zero is a factor.",
    (d.I1E_SLOPE, d.I1E_SLOPE_MIDDLE, d.I1E_SLOPE_FAR),
    "p * (NEARER - 6.079624433015007e-25)",
    "-",
    steps="    zero = APART + 1.461335330992981e-08\n",
    APART=behind("2.0", "(b - 1.545127272605896)"),
    NEARER=behind("2.0", "zero"),
)

# SciPy's own is as accurate, but NaN at infinity.
NUMPY_I0 = Helper(
    "_i0",
    '''\
def _i0(x: np.ndarray) -> np.ndarray:
    """The modified Bessel function of order 0."""
    return special.i0(np.clip(x, -800.0, 800.0))
''',
    ("from scipy import special",),
)
