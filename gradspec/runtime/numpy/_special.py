"""Special functions that NumPy lacks, or computes less accurately. Those that SciPy has
are SciPy's, which is imported with the first of them."""

# mypy: disable-error-code="no-any-return"
# NumPy's type stubs give Any for operations on arrays of any type.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .._formulas import Formulas
from ._gradspec import Array


def _scipy() -> Any:
    from scipy import special  # type: ignore[import-untyped, unused-ignore]

    return special


class _NumPy(Formulas):
    """With polynomials that need no memory but their results, and SciPy's inverses."""

    def _quotient(
        self, x: Array, over: tuple[float, ...], under: tuple[float, ...]
    ) -> Array:
        """A quotient of polynomials in x, their highest powers first."""
        p, q = over[0] * x, under[0] * x
        for c in over[1:-1]:
            p += c
            p *= x
        for c in under[1:-1]:
            q += c
            q *= x
        p += over[-1]
        q += under[-1]
        p /= q
        return p

    def erfinv(self, x: Array) -> Array:
        """The inverse of erf."""
        return _scipy().erfinv(x)

    def erfcinv(self, x: Array) -> Array:
        """The inverse of erfc."""
        return _scipy().erfcinv(x)


_formulas = _NumPy(np)


def _double(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function computed in float64, whatever its arguments."""

    @wraps(function)
    def inner(x: Array, *others: Array) -> Array:
        wide = (a.astype(np.float64, copy=False) for a in (x, *others))
        return function(*wide).astype(x.dtype)

    return inner


_DOUBLE = (
    "erfcinv_slope erfcx erfcx_slope erfinv_slope i0e i0e_slope i1 i1_slope i1e i1e_slope"
    " inverse_mills ndtri_slope lgamma_difference digamma_difference"
)
_SCIPY = "digamma erf erfc erfcinv erfinv gamma log_ndtr ndtr ndtri"


def __getattr__(name: str) -> Callable[..., Any]:
    """A function that is not written below: SciPy's, or one of the formulas."""
    if name in _SCIPY.split():
        return getattr(_scipy(), name)
    formula = getattr(_formulas, name)
    return _double(formula) if name in _DOUBLE.split() else formula


def exp_neg_square(x: Array) -> Array:
    """exp(-x**2), the square split: its rounding error would be magnified by x**2."""
    if x.itemsize < 8:
        return np.exp(-np.square(x, dtype=np.float64)).astype(np.float32)
    return _formulas.exp_neg_square(x)


def exp_neg_half_square(x: Array) -> Array:
    """exp(-x**2 / 2), the square split: its rounding error would be magnified."""
    if x.itemsize < 8:
        return np.exp(-0.5 * np.square(x, dtype=np.float64)).astype(np.float32)
    return _formulas.exp_neg_half_square(x)


def sigmoid(x: Array) -> Array:
    """exp(x) / (1 + exp(x)); where exp(x) could overflow the quotient is 1."""
    t = np.exp(np.minimum(x, 88.0))
    return t / (1.0 + t)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)); where exp(x) could overflow it is x."""
    return np.maximum(np.log1p(np.exp(np.minimum(x, 88.0))), x)


@np.errstate(invalid="ignore")
def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), from the larger; equal infinities, whose difference is NaN,
    count as equal. `np.logaddexp` takes forty times as long.
    """
    top = np.maximum(x, y)
    return top + np.log1p(np.exp(np.fmin(-np.abs(x - y), 0.0)))


def xlogy(x: Array, y: Array) -> Array:
    """x * log(y), and 0 where x is 0 (also at y = 0)."""
    return x * np.log(np.where((x == 0) & (y >= 0), 1.0, y))


def xlog1py(x: Array, y: Array) -> Array:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * np.log1p(np.where((x == 0) & (y >= -1), 0.0, y))


@_double
def lgamma(x: Array) -> Array:
    """log(abs(gamma(x)))."""
    near = np.abs(x - 1.5) < 1.0
    middle = _formulas.lgamma_middle(np.where(near, x, 1.5))
    return np.where(near, middle, _scipy().gammaln(np.where(near, 3.0, x)))


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return _scipy().digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * _scipy().zeta(n + 1.0, x)


def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    return _scipy().i0(np.clip(x, -800.0, 800.0))
