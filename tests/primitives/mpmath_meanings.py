"""The functions of the language in mpmath: their meaning, written a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath


def _step(x: Any, y: Any) -> Any:
    return 1 if x > 0 else 0 if x < 0 else y


def _even(x: Any) -> Any:
    return mpmath.nint(x)


def _scaled(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(order, x)


def _log_gamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x)))


def _erfcinv(x: Any) -> Any:
    """1 - x has as many digits as x."""
    near = min(x, 2 - x)
    digits = max(0, int(-mpmath.log10(near))) if near > 0 else 0
    with mpmath.workdps(mpmath.mp.dps + digits + 5):
        return mpmath.erfinv(1 - x)


def _bell(y: Any) -> Any:
    """The derivative of erf."""
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(y**2))


def _log_ndtr(x: Any) -> Any:
    z = x / mpmath.sqrt(2)
    if x > 0:
        return mpmath.log1p(-mpmath.erfc(z) / 2)
    return mpmath.log(mpmath.erfc(-z) / 2)


MPMATH: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mod": lambda x, y: x - y * mpmath.floor(x / y),
    "pow": mpmath.power,
    "neg": lambda x: -x,
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "xlogy": lambda x, y: x * mpmath.log(y),
    "xlog1py": lambda x, y: x * mpmath.log1p(y),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "hypot": mpmath.hypot,
    "abs": abs,
    "max": max,
    "min": min,
    "clip": lambda x, y, z: min(max(x, y), z),
    "relu": lambda x: max(x, 0),
    "sign": mpmath.sign,
    "heaviside": _step,
    "floor": mpmath.floor,
    "ceil": mpmath.ceil,
    "round": _even,
    "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinpi": mpmath.sinpi,
    "cospi": mpmath.cospi,
    "sinc": mpmath.sincpi,
    "sinc_slope": lambda x: (mpmath.cospi(x) - mpmath.sincpi(x)) / x,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "atan2": mpmath.atan2,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "exp_neg_square": lambda x: mpmath.exp(-(x**2)),
    "exp_neg_half_square": lambda x: mpmath.exp(-(x**2) / 2),
    "erfcx_slope": lambda x: (
        2 * x * mpmath.exp(x * x) * mpmath.erfc(x) - 2 / mpmath.sqrt(mpmath.pi)
    ),
    "erfinv": mpmath.erfinv,
    "erfcinv": _erfcinv,
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "ndtri": lambda x: -mpmath.sqrt(2) * _erfcinv(2 * x),
    "log_ndtr": _log_ndtr,
    "inverse_mills": lambda x: mpmath.npdf(x) / (mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "erfinv_slope": lambda x: 1 / _bell(mpmath.erfinv(x)),
    "erfcinv_slope": lambda x: -1 / _bell(mpmath.erfinv(1 - x)),
    "ndtri_slope": lambda x: 2 / (_bell(mpmath.erfinv(2 * x - 1)) / mpmath.sqrt(2)),
    "lgamma": _log_gamma,
    "gamma": mpmath.gamma,
    "digamma": mpmath.digamma,
    "polygamma": lambda n, x: mpmath.polygamma(int(n), x),
    "lgamma_difference": lambda x, y: mpmath.loggamma(x + y) - mpmath.loggamma(x),
    "digamma_difference": lambda x, y: mpmath.digamma(x + y) - mpmath.digamma(x),
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i1_slope": lambda x: (mpmath.besseli(0, x) + mpmath.besseli(2, x)) / 2,
    "i0e": _scaled(0),
    "i1e": _scaled(1),
    "i0e_slope": lambda x: _scaled(1)(x) - mpmath.sign(x) * _scaled(0)(x),
    "i1e_slope": lambda x: _scaled(0)(x) - _scaled(1)(x) * (mpmath.sign(x) + 1 / x),
    "discriminant_root": lambda x, y, z: mpmath.sqrt(x * x - 4 * y * z),
    "power_less_one": lambda x, y: mpmath.power(x, y - 1),
}
