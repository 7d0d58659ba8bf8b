"""Error, gamma and Bessel functions."""

from __future__ import annotations

from gradspec.primitives import balls
from gradspec.primitives.row import Expand, Primitive, Template
from gradspec.primitives.spelling import calls
from gradspec.primitives.texts_special import (
    ERFCX_SLOPE,
    I0E_SLOPE,
    I1E_SLOPE,
    JAX_DIGAMMA,
    JAX_ERFCX,
    JAX_POLYGAMMA,
    NUMPY_POLYGAMMA,
    TF_ERFCX,
    TF_ERFINV,
    TF_GAMMA,
    TF_I1,
    TF_POLYGAMMA,
    TORCH_GAMMA,
    TORCH_POLYGAMMA,
)

_LOG_NDTR = (
    "log(0.5 * erfcx(-sqrt(0.5) * x)) - 0.5 * square(x) if x < -1 "
    "else log1p(-0.5 * erfc(sqrt(0.5) * x))"
)

_ERROR = (
    Primitive(
        "erf",
        ("x",),
        partials=("2 / sqrt(pi) * exp(-square(x))",),
        ball=lambda x: x.erf(),
        sympy=lambda sp, x: sp.erf(x),
        cost=30,
        source="DLMF 7.2.1",
        # tf.math.erf of an infinite float64 is NaN; beyond 30 nothing changes any more.
        spellings=calls(
            1,
            "special.erf",
            "torch.erf",
            Template("tf.math.erf(tf.clip_by_value({x}, -30.0, 30.0))"),
            "math.erf",
        ),
    ),
    Primitive(
        "erfc",
        ("x",),
        meaning="1 - erf(x)",
        partials=("-2 / sqrt(pi) * exp(-square(x))",),
        ball=balls.erfc,
        sympy=lambda sp, x: sp.erfc(x),
        cost=40,
        source="DLMF 7.2.2",
        spellings=calls(1, "special.erfc", "torch.erfc", "tf.math.erfc", "math.erfc"),
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
        spellings=calls(
            1, "special.erfcx", "torch.special.erfcx", TF_ERFCX, jax=JAX_ERFCX
        ),
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
        spellings=ERFCX_SLOPE,
        notes="the derivative of erfcx, without the cancellation for large x",
    ),
    Primitive(
        "erfinv",
        ("x",),
        partials=("0.5 * sqrt(pi) * exp(square(out))",),
        domain="-1 < x and x < 1",
        ball=lambda x: x.erfinv(),
        sympy=lambda sp, x: sp.erfinv(x),
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(1, "special.erfinv", "torch.erfinv", TF_ERFINV),
    ),
    Primitive(
        "erfcinv",
        ("x",),
        meaning="erfinv(1 - x)",
        partials=("-0.5 * sqrt(pi) * exp(square(out))",),
        domain="0 < x and x < 2",
        ball=lambda x: x.erfcinv(),
        sympy=lambda sp, x: sp.erfcinv(x),
        cost=40,
        source="DLMF 7.17(i)",
        spellings=calls(
            1,
            "special.erfcinv",
            Expand("-sqrt(0.5) * ndtri(0.5 * x)"),
            "tf.math.erfcinv",
            jax=Expand("-sqrt(0.5) * ndtri(0.5 * x)"),
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
        # torch.special.ndtr is 1 + erf, which is 0 in the left tail.
        spellings=calls(
            1,
            "special.ndtr",
            Expand("0.5 * erfc(-sqrt(0.5) * x)"),
            Expand("0.5 * erfc(-sqrt(0.5) * x)"),
            jax=Expand("0.5 * erfc(-sqrt(0.5) * x)"),
        ),
    ),
    Primitive(
        "ndtri",
        ("x",),
        meaning="sqrt(2) * erfinv(2 * x - 1)",
        partials=("sqrt(2 * pi) * exp(0.5 * square(out))",),
        domain="0 < x and x < 1",
        ball=balls.ndtri,
        sympy=lambda sp, x: sp.sqrt(2) * sp.erfinv(2 * x - 1),
        cost=40,
        source="Wichura, Algorithm AS 241, Applied Statistics 37 (1988)",
        spellings=calls(1, "special.ndtri", "torch.special.ndtri", "tf.math.ndtri"),
    ),
    # The inverse Mills ratio, without a quotient of two numbers that underflow.
    Primitive(
        "log_ndtr",
        ("x",),
        meaning="log(0.5 * erfc(-x / sqrt(2)))",
        partials=("sqrt(2 / pi) / erfcx(-sqrt(0.5) * x)",),
        ball=balls.log_ndtr,
        sympy=lambda sp, x: sp.log(sp.erfc(-x / sp.sqrt(2)) / 2),
        cost=60,
        source="DLMF 7.20.1; tail through erfcx, DLMF 7.2.3",
        spellings=calls(
            1,
            "special.log_ndtr",
            "torch.special.log_ndtr",
            Expand(_LOG_NDTR),
            jax=Expand(_LOG_NDTR),
        ),
    ),
)

_GAMMA = (
    Primitive(
        "lgamma",
        ("x",),
        meaning="log(abs(gamma(x)))",
        partials=("digamma(x)",),
        domain="x > 0 or x != floor(x)",
        ball=balls.log_gamma,
        sympy=lambda sp, x: sp.loggamma(x),
        cost=60,
        source="DLMF 5.2.1; C standard, 7.12.8.3",
        spellings=calls(
            1, "special.gammaln", "torch.lgamma", "tf.math.lgamma", "math.lgamma"
        ),
    ),
    Primitive(
        "gamma",
        ("x",),
        partials=("out * digamma(x)",),
        domain="x > 0 or x != floor(x)",
        ball=lambda x: x.gamma(),
        sympy=lambda sp, x: sp.gamma(x),
        cost=60,
        source="DLMF 5.2.1",
        spellings=calls(1, "special.gamma", TORCH_GAMMA, TF_GAMMA, "math.gamma"),
    ),
    # The derivative on the left by reflection: polygamma is that of the right half.
    Primitive(
        "digamma",
        ("x",),
        partials=(
            "polygamma(1, x) if x > 0 else square(pi / sinpi(x)) - polygamma(1, 1 - x)",
        ),
        domain="x > 0 or x != floor(x)",
        ball=lambda x: x.digamma(),
        sympy=lambda sp, x: sp.digamma(x),
        cost=60,
        source="DLMF 5.2.2; reflection 5.15.6",
        spellings=calls(
            1, "special.digamma", "torch.digamma", "tf.math.digamma", jax=JAX_DIGAMMA
        ),
    ),
    Primitive(
        "polygamma",
        ("x", "y"),
        types=("int", "real"),
        partials=(None, "polygamma(x + 1, y)"),
        domain="x >= 0 and y > 0",
        ball=balls.polygamma,
        sympy=lambda sp, x, y: sp.polygamma(x, y),
        cost=80,
        source="DLMF 5.15.1, through Hurwitz's zeta function: 25.11.12",
        spellings=calls(
            2, NUMPY_POLYGAMMA, TORCH_POLYGAMMA, TF_POLYGAMMA, jax=JAX_POLYGAMMA
        ),
        notes="the first argument is the order: a static or constant integer",
    ),
)

_BESSEL = (
    Primitive(
        "i0",
        ("x",),
        partials=("i1(x)",),
        ball=lambda x: x.bessel_i(balls.number(x, 0)),
        sympy=lambda sp, x: sp.besseli(0, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.3",
        spellings=calls(1, "special.i0", "torch.special.i0", "tf.math.bessel_i0"),
    ),
    Primitive(
        "i1",
        ("x",),
        partials=("i0(x) - out / x if x != 0 else 0.5",),
        ball=lambda x: x.bessel_i(balls.number(x, 1)),
        sympy=lambda sp, x: sp.besseli(1, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.2",
        spellings=calls(1, "special.i1", "torch.special.i1", TF_I1),
    ),
    Primitive(
        "i0e",
        ("x",),
        meaning="exp(-abs(x)) * i0(x)",
        partials=("i0e_slope(x)",),
        kinks=(("x == 0", "0, midway between the two slopes, as for abs"),),
        ball=balls.scaled_i0,
        sympy=lambda sp, x: sp.exp(-sp.Abs(x)) * sp.besseli(0, x),
        cost=40,
        source="DLMF 10.25.2",
        spellings=calls(1, "special.i0e", "torch.special.i0e", "tf.math.bessel_i0e"),
    ),
    Primitive(
        "i1e",
        ("x",),
        meaning="exp(-abs(x)) * i1(x)",
        partials=("i1e_slope(x)",),
        ball=balls.scaled_i1,
        sympy=lambda sp, x: sp.exp(-sp.Abs(x)) * sp.besseli(1, x),
        cost=40,
        source="DLMF 10.25.2",
        spellings=calls(1, "special.i1e", "torch.special.i1e", "tf.math.bessel_i1e"),
    ),
    Primitive(
        "i0e_slope",
        ("x",),
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
        spellings=I0E_SLOPE,
        notes="the derivative of i0e, without the cancellation for large x",
    ),
    Primitive(
        "i1e_slope",
        ("x",),
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
        spellings=I1E_SLOPE,
        notes="the derivative of i1e, without the cancellation for large x",
    ),
)

ROWS = _ERROR + _GAMMA + _BESSEL
