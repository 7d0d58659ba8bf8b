"""The error function, its relatives and the normal distribution; the gamma function and
its logarithmic derivatives; modified Bessel functions of the first kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive, call, calls, everywhere, same_named_row


def _by_libm(np: Any, function: Callable[[float], float], x: Any) -> Any:
    """A function of the C library, element by element."""
    return np.asarray(np.frompyfunc(function, 1, 1)(x), dtype=np.float64)


_ERROR = (
    same_named_row(
        "erf",
        partials=("2 / sqrt(pi) * exp(-square(x))",),
        symmetry="odd",
        bounds=("-1", "1"),
        inverse="erfinv(out)",
        mistaken=("erfc", "ndtr"),
        model=lambda np, x: _by_libm(np, math.erf, x),
        cost=30,
        source="DLMF 7.2.1",
        spellings=calls(1, "erf", "torch.erf", "erf", "math.erf", "special.erf"),
    ),
    Primitive(
        "erfc",
        meaning="1 - erf(x)",
        partials=("-2 / sqrt(pi) * exp(-square(x))",),
        bounds=("0", "2"),
        mistaken=("erf",),
        ball=balls.erfc,
        series=lambda x: 1 - x.erf(),
        sympy=lambda sp, x: sp.erfc(x),
        model=lambda np, x: _by_libm(np, math.erfc, x),
        cost=40,
        source="DLMF 7.2.2",
        spellings=calls(
            1, "erfc", "torch.erfc", "tf.math.erfc", "math.erfc", "special.erfc"
        ),
    ),
    Primitive(
        "erfcx",
        meaning="exp(square(x)) * erfc(x)",
        partials=("erfcx_slope(x)",),
        ball=balls.scaled_erfc,
        sympy=lambda sp, x: sp.exp(x**2) * sp.erfc(x),
        cost=40,
        source="DLMF 7.2.3 on the imaginary axis",
    ),
    Primitive(
        "erfcx_slope",
        meaning="2 * x * erfcx(x) - 2 / sqrt(pi)",
        partials=("2 * erfcx(x) + 2 * x * out",),
        ball=balls.scaled_erfc_slope,
        sympy=lambda sp, x: 2 * x * sp.exp(x**2) * sp.erfc(x) - 2 / sp.sqrt(sp.pi),
        cost=40,
        source="DLMF 7.18.2: twice a repeated integral of erfc, scaled",
        notes="the derivative of erfcx, without the cancellation for large x",
    ),
    same_named_row(
        "erfinv",
        partials=("erfinv_slope(x)",),
        domain="-1 < x and x < 1",
        symmetry="odd",
        inverse="erf(out)",
        series=None,
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(1, "erfinv", "torch.erfinv", "erfinv", jax="erfinv"),
    ),
    same_named_row(
        "erfcinv",
        meaning="erfinv(1 - x)",
        partials=("erfcinv_slope(x)",),
        domain="0 < x and x < 2",
        series=None,
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(1, "erfcinv", "erfcinv", "erfcinv"),
    ),
    Primitive(
        "ndtr",
        meaning="0.5 * erfc(-x / sqrt(2))",
        partials=("exp(-0.5 * square(x)) / sqrt(2 * pi)",),
        ball=balls.ndtr,
        sympy=lambda sp, x: sp.erfc(-x / sp.sqrt(2)) / 2,
        cost=40,
        notation=r"\Phi",
        source="DLMF 7.20.1; Abramowitz and Stegun 26.2.29",
    ),
    Primitive(
        "ndtri",
        meaning="sqrt(2) * erfinv(2 * x - 1)",
        partials=("ndtri_slope(x)",),
        domain="0 < x and x < 1",
        ball=balls.ndtri,
        sympy=lambda sp, x: sp.sqrt(2) * sp.erfinv(2 * x - 1),
        cost=40,
        source="Wichura, Algorithm AS 241, Applied Statistics 37 (1988)",
        spellings=calls(
            1,
            "ndtri",
            "torch.special.ndtri",
            "ndtri",
            jax="special.ndtri",
        ),
    ),
    Primitive(
        "log_ndtr",
        meaning="log(0.5 * erfc(-x / sqrt(2)))",
        partials=("inverse_mills(x)",),
        ball=balls.log_ndtr,
        sympy=lambda sp, x: sp.log(sp.erfc(-x / sp.sqrt(2)) / 2),
        cost=60,
        source="DLMF 7.20.1; tail through erfcx, DLMF 7.2.3",
        spellings=everywhere("log_ndtr") | {"torch": call(1, "torch.special.log_ndtr")},
    ),
    Primitive(
        "inverse_mills",
        meaning="sqrt(2 / pi) / erfcx(-sqrt(0.5) * x)",
        partials=("-out * (x + out)",),
        ball=balls.inverse_mills,
        sympy=lambda sp, x: (
            sp.sqrt(2 / sp.pi) * sp.exp(-(x**2) / 2) / sp.erfc(-x / sp.sqrt(2))
        ),
        cost=70,
        source="DLMF 7.8.1: the reciprocal of Mills' ratio, at -x",
        notes="the derivative of log_ndtr, without a quotient that underflows",
    ),
    Primitive(
        "erfinv_slope",
        meaning="0.5 * sqrt(pi) * exp(square(erfinv(x)))",
        partials=("2 * square(out) * erfinv(x)",),
        domain="-1 < x and x < 1",
        ball=balls.erfinv_slope,
        sympy=lambda sp, x: sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfinv(x) ** 2),
        cost=80,
        source="DLMF 7.17(i)",
        notes="the derivative of erfinv, without the magnified error of a square",
    ),
    Primitive(
        "erfcinv_slope",
        meaning="-0.5 * sqrt(pi) * exp(square(erfcinv(x)))",
        partials=("2 * square(out) * erfcinv(x)",),
        domain="0 < x and x < 2",
        ball=balls.erfcinv_slope,
        sympy=lambda sp, x: -sp.sqrt(sp.pi) / 2 * sp.exp(sp.erfcinv(x) ** 2),
        cost=80,
        source="DLMF 7.17(i)",
        notes="the derivative of erfcinv, without the magnified error of a square",
    ),
    Primitive(
        "ndtri_slope",
        meaning="sqrt(2 * pi) * exp(0.5 * square(ndtri(x)))",
        partials=("square(out) * ndtri(x)",),
        domain="0 < x and x < 1",
        ball=balls.ndtri_slope,
        sympy=lambda sp, x: sp.sqrt(2 * sp.pi) * sp.exp(sp.erfinv(2 * x - 1) ** 2),
        cost=80,
        source="Abramowitz and Stegun 26.2.1: the reciprocal of the density",
        notes="the derivative of ndtri, without the magnified error of a square",
    ),
)


_GAMMA = (
    Primitive(
        "lgamma",
        meaning="log(abs(gamma(x)))",
        partials=("digamma(x)",),
        domain="x > 0 or x != floor(x)",
        mistaken=("gamma",),
        ball=balls.log_gamma,
        series=lambda x: x.lgamma(),
        sympy=lambda sp, x: sp.loggamma(x),
        cost=60,
        notation=r"\log\Gamma",
        source="DLMF 5.2.1; C standard, 7.12.8.3",
        spellings=calls(
            1, "lgamma", "torch.lgamma", "tf.math.lgamma", "math.lgamma", "lgamma"
        ),
    ),
    same_named_row(
        "gamma",
        partials=("out * digamma(x)",),
        domain="x > 0 or x != floor(x)",
        mistaken=("lgamma",),
        cost=60,
        notation=r"\Gamma",
        source="DLMF 5.2.1",
        spellings={**everywhere("gamma"), "python": call(1, "math.gamma")},
    ),
    # The derivative on the left by reflection: polygamma is that of the right half.
    same_named_row(
        "digamma",
        partials=(
            "polygamma(1, x) if x > 0 else square(pi / sinpi(x)) - polygamma(1, 1 - x)",
        ),
        domain="x > 0 or x != floor(x)",
        series=None,
        cost=60,
        notation=r"\psi",
        source="DLMF 5.2.2; reflection 5.15.6",
        spellings=everywhere("digamma") | {"torch": call(1, "torch.digamma")},
    ),
    Primitive(
        "polygamma",
        params=("x", "y"),
        types=("int", "real"),
        partials=(None, "polygamma(x + 1, y)"),
        domain="x >= 0 and y > 0",
        ball=balls.polygamma,
        sympy=lambda sp, x, y: sp.polygamma(x, y),
        cost=80,
        source="DLMF 5.15.1, through Hurwitz's zeta function: 25.11.12",
        notes="the first argument is the order: a static or constant integer",
    ),
    Primitive(
        "lgamma_difference",
        params=("x", "y"),
        meaning="lgamma(x + y) - lgamma(x)",
        partials=("digamma_difference(x, y)", "digamma(x + y)"),
        domain="x > 0 and x + y > 0",
        ball=lambda x, y: (x + y).lgamma() - x.lgamma(),
        sympy=lambda sp, x, y: sp.loggamma(x + y) - sp.loggamma(x),
        cost=120,
        source="DLMF 5.11.1, the difference of two; below 8 by 5.5.1",
        notes="the logarithm of Pochhammer's symbol, without cancellation for large x",
    ),
    Primitive(
        "digamma_difference",
        params=("x", "y"),
        meaning="digamma(x + y) - digamma(x)",
        partials=("polygamma(1, x + y) - polygamma(1, x)", "polygamma(1, x + y)"),
        domain="x > 0 and x + y > 0",
        ball=lambda x, y: (x + y).digamma() - x.digamma(),
        sympy=lambda sp, x, y: sp.digamma(x + y) - sp.digamma(x),
        cost=120,
        source="DLMF 5.11.2, the difference of two; below 8 by 5.5.2",
        notes="the derivative of lgamma_difference",
    ),
)


_BESSEL = (
    Primitive(
        "i0",
        partials=("i1(x)",),
        symmetry="even",
        bounds=("1", ""),
        ball=lambda x: x.bessel_i(balls.number(x, 0)),
        sympy=lambda sp, x: sp.besseli(0, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.3",
    ),
    Primitive(
        "i1",
        partials=("i1_slope(x)",),
        symmetry="odd",
        ball=balls.i1,
        sympy=lambda sp, x: sp.besseli(1, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.2",
    ),
    Primitive(
        "i1_slope",
        meaning="i0(x) - i1(x) / x if x != 0 else 0.5",
        partials=("i1(x) + (i1(x) / x - out) / x if x != 0 else 0",),
        ball=balls.i1_slope,
        sympy=lambda sp, x: (sp.besseli(0, x) + sp.besseli(2, x)) / 2,
        cost=80,
        source="DLMF 10.29.1; derivative by the differential equation 10.25.1",
        notes="the derivative of i1, without the cancellation about 0",
    ),
    Primitive(
        "i0e",
        meaning="exp(-abs(x)) * i0(x)",
        partials=("i0e_slope(x)",),
        kinks=(("x == 0", "0, midway between the two slopes, as for abs"),),
        ball=balls.scaled_i0,
        sympy=lambda sp, x: sp.exp(-sp.Abs(x)) * sp.besseli(0, x),
        cost=40,
        source="DLMF 10.25.2",
    ),
    Primitive(
        "i1e",
        meaning="exp(-abs(x)) * i1(x)",
        partials=("i1e_slope(x)",),
        ball=balls.scaled_i1,
        sympy=lambda sp, x: sp.exp(-sp.Abs(x)) * sp.besseli(1, x),
        cost=40,
        source="DLMF 10.25.2",
    ),
    Primitive(
        "i0e_slope",
        meaning="i1e(x) - sign(x) * i0e(x)",
        partials=(
            "-2 * sign(x) * out - (out + sign(x) * i0e(x)) / x if x != 0 else 1.5",
        ),
        kinks=(("x == 0", "the limit from either side"),),
        ball=balls.scaled_i0_slope,
        sympy=lambda sp, x: (
            sp.exp(-sp.Abs(x)) * (sp.besseli(1, x) - sp.sign(x) * sp.besseli(0, x))
        ),
        cost=100,
        source="DLMF 10.29.3; derivative by the differential equation 10.25.1",
        notes="the derivative of i0e, without the cancellation for large x",
    ),
    Primitive(
        "i1e_slope",
        meaning="0.5 if x == 0 else i0e(x) - i1e(x) * (sign(x) + 1 / x)",
        partials=(
            "-2 * sign(x) * out - (out - i1e(x) / x) / x - sign(x) * i1e(x) / x "
            "if x != 0 else 0",
        ),
        kinks=(("x == 0", "0, midway between the two slopes"),),
        ball=balls.scaled_i1_slope,
        sympy=lambda sp, x: (
            sp.exp(-sp.Abs(x))
            * (sp.besseli(0, x) - sp.besseli(1, x) * (sp.sign(x) + 1 / x))
        ),
        cost=100,
        source="DLMF 10.29.2; derivative by the differential equation 10.25.1",
        notes="the derivative of i1e, without the cancellation for large x",
    ),
)

ROWS = _ERROR + _GAMMA + _BESSEL
