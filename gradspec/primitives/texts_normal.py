"""The normal distribution in NumPy for what is rounded to float32.

In float64, where a product is no more than a product, a quotient of polynomials with eight
bits more than float32 has stands for the functions with all digits of float64: the
distribution function takes 6 ns for an element in place of 60, and SciPy's own 12.
"""

from __future__ import annotations

from gradspec.primitives.coefficients_loops import GELU_OVER, GELU_UNDER, GELU_ZERO
from gradspec.primitives.coefficients_single import MILLS_OVER, MILLS_UNDER
from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import listed
from gradspec.primitives.texts_choice import NUMPY_WHERE
from gradspec.primitives.texts_fused import QUOTIENT


def narrow(name: str) -> dict[str, dict[str, str]]:
    """What a line ``NARROW`` stands for: ``name`` leaves float32 to ``name_single``."""
    line = f"    if x.itemsize < 8:\n        return {name}_single(x)\n"
    return {
        "    NARROW\n": {**dict.fromkeys(("torch", "tf", "jax"), ""), "numpy": line}
    }


def _numpy(name: str, text: str, *needs: Helper) -> dict[str, Helper]:
    return {"numpy": Helper(name, text, (), (QUOTIENT["numpy"], NUMPY_WHERE, *needs))}


_MILLS = Helper(
    "_mills_single",
    f'''\
def _mills_single(a: np.ndarray) -> np.ndarray:
    """ndtr(-a) * exp(a**2 / 2) in float64, within 5e-9, from 0 on."""
    over = {listed(MILLS_OVER)}
    under = {listed(MILLS_UNDER)}
    r = _quotient(a, over, under)
    r *= a
    r += 0.5
    r /= 1.0 + a
    return r
''',
    (),
    (QUOTIENT["numpy"],),
)

_TAIL = Helper(
    "_tail_single",
    '''\
def _tail_single(a: np.ndarray) -> np.ndarray:
    """ndtr(-a) in float64, within 5e-9, from 0 on."""
    a = a.clip(0.0, 40.0)
    return _mills_single(a) * np.exp(-0.5 * (a * a))
''',
    (),
    (_MILLS,),
)

NDTR = _numpy(
    "_ndtr_single",
    '''\
def _ndtr_single(x: np.ndarray) -> np.ndarray:
    """ndtr(x) of float32: rounded once, but for eight bits more."""
    tail = _tail_single(np.abs(x, dtype=np.float64))
    return _where(x < 0.0, tail, 1.0 - tail).astype(np.float32)
''',
    _TAIL,
)

ERFC = _numpy(
    "_erfc_single",
    '''\
def _erfc_single(x: np.ndarray) -> np.ndarray:
    """erfc(x) of float32, which is 2 * ndtr(-x * sqrt(2))."""
    tail = 2.0 * _tail_single(1.4142135623730951 * np.abs(x, dtype=np.float64))
    return _where(x < 0.0, 2.0 - tail, tail).astype(np.float32)
''',
    _TAIL,
)

LOG_NDTR = _numpy(
    "_log_ndtr_single",
    '''\
def _log_ndtr_single(x: np.ndarray) -> np.ndarray:
    """log(ndtr(x)) of float32; on the left the exponential is not taken."""
    a = np.abs(x, dtype=np.float64).clip(0.0, 1e38)
    left = np.log(_mills_single(a)) - 0.5 * (a * a)
    return _where(x < 0.0, left, np.log1p(-_tail_single(a))).astype(np.float32)
''',
    _TAIL,
)

GELU_SLOPE = _numpy(
    "_gelu_slope",
    f'''\
def _gelu_slope(x: np.ndarray) -> np.ndarray:
    """The slope of x * ndtr(x) in float64, within 8e-9: its tail is exp(-x**2 / 2) times
    the distance from its zero and 1 / 2 + r.
    """
    over = {listed(GELU_OVER)}
    under = {listed(GELU_UNDER)}
    a = np.abs(x).clip(0.0, 40.0)
    r = _quotient(a, over, under)
    r += 0.5
    r *= np.exp(-0.5 * (a * a))
    r *= {GELU_ZERO[0] + GELU_ZERO[1]!r} - a
    return _where(x < 0.0, r, 1.0 - r)
''',
)["numpy"]
