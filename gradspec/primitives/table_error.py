"""The error function, its relatives, and the normal distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import calls, everywhere, special


def _by_libm(np: Any, function: Callable[[float], float], x: Any) -> Any:
    """A function of the C library, element by element."""
    return np.asarray(np.frompyfunc(function, 1, 1)(x), dtype=np.float64)


ROWS = (
    Primitive(
        "erf",
        ("x",),
        partials=("2 / sqrt(pi) * exp(-square(x))",),
        ball=lambda x: x.erf(),
        series=lambda x: x.erf(),
        sympy=lambda sp, x: sp.erf(x),
        model=lambda np, x: _by_libm(np, math.erf, x),
        cost=30,
        source="DLMF 7.2.1",
        spellings=calls(
            1,
            special("erf"),
            "torch.erf",
            special("erf"),
            "math.erf",
            "jax.special.erf",
        ),
    ),
    Primitive(
        "erfc",
        ("x",),
        meaning="1 - erf(x)",
        partials=("-2 / sqrt(pi) * exp(-square(x))",),
        ball=balls.erfc,
        series=lambda x: 1 - x.erf(),
        sympy=lambda sp, x: sp.erfc(x),
        model=lambda np, x: _by_libm(np, math.erfc, x),
        cost=40,
        source="DLMF 7.2.2",
        spellings=calls(
            1,
            special("erfc"),
            "torch.erfc",
            special("erfc"),
            "math.erfc",
            special("erfc"),
        ),
    ),
    Primitive(
        "erfcx",
        ("x",),
        meaning="exp(square(x)) * erfc(x)",
        partials=("erfcx_slope(x)",),
        ball=balls.scaled_erfc,
        sympy=lambda sp, x: sp.exp(x**2) * sp.erfc(x),
        cost=40,
        source="DLMF 7.2.3 on the imaginary axis",
        spellings=everywhere("erfcx"),
    ),
    Primitive(
        "erfcx_slope",
        ("x",),
        meaning="2 * x * erfcx(x) - 2 / sqrt(pi)",
        partials=("2 * erfcx(x) + 2 * x * out",),
        ball=balls.scaled_erfc_slope,
        sympy=lambda sp, x: 2 * x * sp.exp(x**2) * sp.erfc(x) - 2 / sp.sqrt(sp.pi),
        cost=40,
        source="DLMF 7.18.2: twice a repeated integral of erfc, scaled",
        spellings=everywhere("erfcx_slope"),
        notes="the derivative of erfcx, without the cancellation for large x",
    ),
    Primitive(
        "erfinv",
        ("x",),
        partials=("erfinv_slope(x)",),
        domain="-1 < x and x < 1",
        ball=lambda x: x.erfinv(),
        sympy=lambda sp, x: sp.erfinv(x),
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(
            1,
            special("erfinv"),
            "torch.erfinv",
            special("erfinv"),
            jax=special("erfinv"),
        ),
    ),
    Primitive(
        "erfcinv",
        ("x",),
        meaning="erfinv(1 - x)",
        partials=("erfcinv_slope(x)",),
        domain="0 < x and x < 2",
        ball=lambda x: x.erfcinv(),
        sympy=lambda sp, x: sp.erfcinv(x),
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(
            *(1, special("erfcinv"), special("erfcinv"), special("erfcinv")),
            jax=special("erfcinv"),
        ),
    ),
    Primitive(
        "ndtr",
        ("x",),
        meaning="0.5 * erfc(-x / sqrt(2))",
        partials=("exp(-0.5 * square(x)) / sqrt(2 * pi)",),
        ball=balls.ndtr,
        sympy=lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
        cost=40,
        source="DLMF 7.20.1; Abramowitz and Stegun 26.2.29",
        spellings=everywhere("ndtr"),
    ),
    Primitive(
        "ndtri",
        ("x",),
        meaning="sqrt(2) * erfinv(2 * x - 1)",
        partials=("ndtri_slope(x)",),
        domain="0 < x and x < 1",
        ball=balls.ndtri,
        sympy=lambda sp, x: sp.sqrt(2) * sp.erfinv(2 * x - 1),
        cost=40,
        source="Wichura, Algorithm AS 241, Applied Statistics 37 (1988)",
        spellings=calls(
            *(1, special("ndtri"), "torch.special.ndtri", special("ndtri")),
            jax=special("ndtri"),
        ),
    ),
    Primitive(
        "log_ndtr",
        ("x",),
        meaning="log(0.5 * erfc(-x / sqrt(2)))",
        partials=("inverse_mills(x)",),
        ball=balls.log_ndtr,
        sympy=lambda sp, x: sp.log(sp.erfc(-x / sp.sqrt(2)) / 2),
        cost=60,
        source="DLMF 7.20.1; tail through erfcx, DLMF 7.2.3",
        spellings=everywhere("log_ndtr"),
    ),
    Primitive(
        "inverse_mills",
        ("x",),
        meaning="sqrt(2 / pi) / erfcx(-sqrt(0.5) * x)",
        partials=("-out * (x + out)",),
        ball=balls.inverse_mills,
        sympy=lambda sp, x: (
            sp.sqrt(2 / sp.pi) * sp.exp(-(x**2) / 2) / sp.erfc(-x / sp.sqrt(2))
        ),
        cost=70,
        source="DLMF 7.8.1: the reciprocal of Mills' ratio, at -x",
        spellings=everywhere("inverse_mills"),
        notes="the derivative of log_ndtr, without a quotient that underflows",
    ),
    Primitive(
        "erfinv_slope",
        ("x",),
        meaning="0.5 * sqrt(pi) * exp(square(erfinv(x)))",
        partials=("2 * square(out) * erfinv(x)",),
        domain="-1 < x and x < 1",
        ball=balls.erfinv_slope,
        sympy=lambda sp, x: sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfinv(x) ** 2),
        cost=80,
        source="DLMF 7.17(i)",
        spellings=everywhere("erfinv_slope"),
        notes="the derivative of erfinv, without the magnified error of a square",
    ),
    Primitive(
        "erfcinv_slope",
        ("x",),
        meaning="-0.5 * sqrt(pi) * exp(square(erfcinv(x)))",
        partials=("2 * square(out) * erfcinv(x)",),
        domain="0 < x and x < 2",
        ball=balls.erfcinv_slope,
        sympy=lambda sp, x: -sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfcinv(x) ** 2),
        cost=80,
        source="DLMF 7.17(i)",
        spellings=everywhere("erfcinv_slope"),
        notes="the derivative of erfcinv, without the magnified error of a square",
    ),
    Primitive(
        "ndtri_slope",
        ("x",),
        meaning="sqrt(2 * pi) * exp(0.5 * square(ndtri(x)))",
        partials=("square(out) * ndtri(x)",),
        domain="0 < x and x < 1",
        ball=balls.ndtri_slope,
        sympy=lambda sp, x: sp.sqrt(2 * sp.pi) * sp.exp(sp.erfinv(2 * x - 1) ** 2),
        cost=80,
        source="Abramowitz and Stegun 26.2.1: the reciprocal of the density",
        spellings=everywhere("ndtri_slope"),
        notes="the derivative of ndtri, without the magnified error of a square",
    ),
)
