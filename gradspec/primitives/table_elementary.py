"""Exponentials, logarithms, and the functions made of them; circular and hyperbolic
functions and their inverses."""

from __future__ import annotations

from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import (
    Expand,
    Primitive,
    Template,
    calls,
    same_named_row,
)


def _split(np: Any, x: Any, factor: float) -> Any:
    """``exp(-factor * x**2)`` by the leading bits of x and the rest."""
    c = np.clip(x, -64.0, 64.0)
    h = np.trunc(64.0 * c) / 64.0
    return np.exp(-factor * h * h) * np.exp(factor * (h - c) * (h + c))


def _sigmoid(np: Any, x: Any) -> Any:
    t = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, t) / (1.0 + t)


def _logit(np: Any, x: Any) -> Any:
    middle = np.log1p((2.0 * x - 1.0) / (1.0 - x))
    return np.where(np.abs(x - 0.5) < 0.25, middle, np.log(x) - np.log1p(-x))


def _zero_wins(np: Any, x: Any, factor: Any) -> Any:
    """``x * factor``, and 0 where x is 0."""
    return np.where(x == 0, 0.0 * x, x * factor)


_EXPONENTIALS = (
    same_named_row(
        "exp",
        partials=("out",),
        bounds=("0", ""),
        inverse="log(out)",
        mistaken=("exp2", "expm1", "sigmoid"),
        cost=8,
        source="DLMF 4.2(iii)",
        spellings=calls(1, "np.exp", "torch.exp", "tf.exp", "math.exp"),
    ),
    # The rounding error of a square is magnified by the square itself (Higham, Accuracy
    # and Stability of Numerical Algorithms, 2002, section 1.12): at x = 9, 80 times.
    Primitive(
        "exp_neg_square",
        meaning="exp(-square(x))",
        partials=("-2 * out * x",),
        ball=lambda x: (-(x * x)).exp(),
        sympy=lambda sp, x: sp.exp(-(x**2)),
        model=lambda np, x: _split(np, x, 1.0),
        cost=28,
        source="exp(-h**2) * exp((h - x) * (h + x)), h the leading bits of x",
        notes="the square is split, so that its rounding error is not magnified",
    ),
    Primitive(
        "exp_neg_half_square",
        meaning="exp(-0.5 * square(x))",
        partials=("-out * x",),
        ball=lambda x: (-(x * x) / 2).exp(),
        sympy=lambda sp, x: sp.exp(-(x**2) / 2),
        model=lambda np, x: _split(np, x, 0.5),
        cost=28,
        source="as exp_neg_square",
        notes="the square is split, so that its rounding error is not magnified",
    ),
    Primitive(
        "expm1",
        meaning="exp(x) - 1",
        partials=("exp(x)",),  # `out + 1` is 0 for x < -17 in float32
        bounds=("-1", ""),
        inverse="log1p(out)",
        ball=lambda x: x.expm1(),
        series=lambda x: x.exp() - 1,
        sympy=lambda sp, x: sp.exp(x) - 1,
        cost=20,
        source="C standard, 7.12.6.3",
        spellings=calls(1, "np.expm1", "expm1", "tf.math.expm1", "math.expm1", "expm1"),
    ),
    Primitive(
        "exp2",
        meaning="2**x",
        partials=("log(2) * out",),
        bounds=("0", ""),
        inverse="log2(out)",
        mistaken=("exp",),
        ball=balls.exp2,
        sympy=lambda sp, x: sp.Integer(2) ** x,
        cost=8,
        source="C standard, 7.12.6.2",
        spellings=calls(
            1,
            "np.exp2",
            "torch.exp2",
            Expand("2**x"),
            "math.exp2",
            Expand("2**x"),  # XLA rounds x * log(2)
        ),
    ),
)

_LOGARITHMS = (
    same_named_row(
        "log",
        partials=("1 / x",),
        domain="x > 0",
        inverse="exp(out)",
        mistaken=("log2", "log10", "log1p"),
        cost=8,
        source="DLMF 4.2(i)",
        spellings=calls(1, "np.log", "torch.log", "tf.math.log", "math.log"),
    ),
    Primitive(
        "log1p",
        meaning="log(1 + x)",
        partials=("1 / (1 + x)",),
        domain="x > -1",
        inverse="expm1(out)",
        ball=lambda x: x.log1p(),
        series=lambda x: (1 + x).log(),
        sympy=lambda sp, x: sp.log(1 + x),
        cost=20,
        source="C standard, 7.12.6.9",
        spellings=calls(
            1, "np.log1p", "torch.log1p", "tf.math.log1p", "math.log1p", "log1p"
        ),
    ),
    Primitive(
        "log2",
        meaning="log(x) / log(2)",
        partials=("1 / (log(2) * x)",),
        domain="x > 0",
        inverse="exp2(out)",
        mistaken=("log", "log10"),
        ball=lambda x: x.log() / x.const_log2(),
        sympy=lambda sp, x: sp.log(x) / sp.log(2),
        cost=10,
        source="C standard, 7.12.6.10",
        spellings=calls(
            1, "np.log2", "torch.log2", Expand("log(x) / log(2)"), "math.log2"
        ),
    ),
    Primitive(
        "log10",
        meaning="log(x) / log(10)",
        partials=("1 / (log(10) * x)",),
        domain="x > 0",
        inverse="10**out",
        mistaken=("log", "log2"),
        ball=lambda x: x.log() / x.const_log10(),
        sympy=lambda sp, x: sp.log(x) / sp.log(10),
        cost=10,
        source="C standard, 7.12.6.8",
        spellings=calls(
            1, "np.log10", "torch.log10", Expand("log(x) / log(10)"), "math.log10"
        ),
    ),
)

_LOGISTIC = (
    Primitive(
        "sigmoid",
        meaning="1 / (1 + exp(-x))",
        partials=("out * sigmoid(-x)",),  # `out * (1 - out)` is 0 for x > 17 in float32
        bounds=("0", "1"),
        inverse="logit(out)",
        mistaken=("tanh",),
        ball=balls.sigmoid,
        series=lambda x: 1 / (1 + (-x).exp()),
        coefficient=balls.sigmoid_coefficient,
        sympy=lambda sp, x: 1 / (1 + sp.exp(-x)),
        model=_sigmoid,
        cost=12,
        notation=r"\sigma",
        source="the logistic function; t / (1 + t) and 1 / (1 + t), t = exp(-|x|)",
        spellings=calls(
            1, "sigmoid", "torch.sigmoid", "tf.sigmoid", jax="jax.nn.sigmoid"
        ),
    ),
    Primitive(
        "logsigmoid",
        meaning="log(1 / (1 + exp(-x)))",
        partials=("sigmoid(-x)",),
        bounds=("", "0"),
        ball=lambda x: -balls.softplus(-x),
        sympy=lambda sp, x: -sp.log(1 + sp.exp(-x)),
        model=lambda np, x: -np.logaddexp(0.0, -x),
        cost=30,
        notation=r"\log\sigma",
        source="Mächler, Accurately computing log(1 - exp(-|a|)), 2012",
        spellings=calls(
            1,
            Expand("-softplus(-x)"),
            "torch.nn.functional.logsigmoid",
            Expand("-softplus(-x)"),
            jax="jax.nn.log_sigmoid",
        ),
    ),
    Primitive(
        "softplus",
        meaning="log(1 + exp(x))",
        partials=("sigmoid(x)",),
        inverse="log(expm1(out))",
        mistaken=("relu",),
        ball=balls.softplus,
        sympy=lambda sp, x: sp.log(1 + sp.exp(x)),
        model=lambda np, x: np.logaddexp(0.0, x),
        cost=30,
        source="Mächler, Accurately computing log(1 - exp(-|a|)), 2012",
        # torch's own threshold, 20, costs 5.6e5 ULP in float64: exp(-20) is not small.
        spellings=calls(
            1,
            "softplus",
            Template("torch.nn.functional.softplus({x}, threshold=40.0)"),
            "tf.math.softplus",
            jax="jax.nn.softplus",
        ),
    ),
    Primitive(
        "logaddexp",
        params=("x", "y"),
        meaning="log(exp(x) + exp(y))",
        partials=("sigmoid(x - y)", "sigmoid(y - x)"),
        is_commutative=True,
        ball=balls.logaddexp,
        sympy=lambda sp, x, y: sp.log(sp.exp(x) + sp.exp(y)),
        model=lambda np, x, y: np.logaddexp(x, y),
        cost=30,
        source="max(x, y) + log1p(exp(-|x - y|))",
        spellings=calls(
            2, "logaddexp", "torch.logaddexp", "logaddexp", jax="logaddexp"
        ),
    ),
    Primitive(
        "logit",
        meaning="log(x / (1 - x))",
        partials=("1 / (x * (1 - x))",),
        domain="0 < x and x < 1",
        ball=lambda x: x.log() - (-x).log1p(),
        sympy=lambda sp, x: sp.log(x) - sp.log(1 - x),
        model=_logit,
        cost=28,
        source="log(x / (1 - x)); about 1/2 as log1p((2x - 1) / (1 - x))",
        spellings=calls(1, "logit", "logit", "logit", jax="logit"),
    ),
)

_PRODUCTS = (
    Primitive(
        "xlogy",
        params=("x", "y"),
        meaning="0 if x == 0 else x * log(y)",
        partials=("log(y)", "x / y"),
        domain="y > 0 or x == 0 and y == 0",
        ball=balls.xlogy,
        sympy=lambda sp, x, y: x * sp.log(y),
        model=lambda np, x, y: _zero_wins(np, x, np.log(y)),
        cost=14,
        source="continued by 0 to x = 0, as entropy asks: Cover and Thomas, 2.1",
        spellings=calls(
            2, "xlogy", "torch.xlogy", "tf.math.xlogy", jax="special.xlogy"
        ),
    ),
    Primitive(
        "xlog1py",
        params=("x", "y"),
        meaning="0 if x == 0 else x * log(1 + y)",
        partials=("log1p(y)", "x / (1 + y)"),
        domain="y > -1 or x == 0 and y == -1",
        ball=balls.xlog1py,
        sympy=lambda sp, x, y: x * sp.log(1 + y),
        model=lambda np, x, y: _zero_wins(np, x, np.log1p(y)),
        cost=26,
        source="continued by 0 to x = 0, as entropy asks: Cover and Thomas, 2.1",
        spellings=calls(
            2, "xlog1py", "torch.special.xlog1py", "tf.math.xlog1py", jax="xlog1py"
        ),
    ),
)

_CIRCULAR = (
    same_named_row(
        "sin",
        partials=("cos(x)",),
        symmetry="odd",
        bounds=("-1", "1"),
        mistaken=("cos",),
        cost=10,
        source="DLMF 4.14.1",
        spellings=calls(1, "np.sin", "torch.sin", "tf.sin", "math.sin"),
    ),
    same_named_row(
        "cos",
        partials=("-sin(x)",),
        symmetry="even",
        bounds=("-1", "1"),
        mistaken=("sin",),
        cost=10,
        source="DLMF 4.14.2",
        spellings=calls(1, "np.cos", "torch.cos", "tf.cos", "math.cos"),
    ),
    same_named_row(
        "tan",
        meaning="sin(x) / cos(x)",
        partials=("1 + square(out)",),
        domain="cos(x) != 0",
        symmetry="odd",
        mistaken=("tanh",),
        cost=20,
        source="DLMF 4.14.4",
        spellings=calls(1, "np.tan", "torch.tan", "tf.tan", "math.tan"),
    ),
    Primitive(
        "sinpi",
        meaning="sin(pi * x)",
        partials=("pi * cospi(x)",),
        ball=lambda x: x.sin_pi(),
        sympy=lambda sp, x: sp.sin(sp.pi * x),
        cost=16,
        source="IEEE 754-2019, 9.2: sinPi",
    ),
    Primitive(
        "cospi",
        meaning="cos(pi * x)",
        partials=("-pi * sinpi(x)",),
        ball=lambda x: x.cos_pi(),
        sympy=lambda sp, x: sp.cos(sp.pi * x),
        cost=16,
        source="IEEE 754-2019, 9.2: cosPi",
    ),
    Primitive(
        "sinc",
        meaning="1 if x == 0 else sin(pi * x) / (pi * x)",
        partials=("sinc_slope(x)",),
        ball=lambda x: x.sinc_pi(),
        sympy=lambda sp, x: sp.sinc(sp.pi * x),
        cost=20,
        source="normalised: NumPy manual, numpy.sinc",
    ),
    Primitive(
        "sinc_slope",
        meaning="0 if x == 0 else (cos(pi * x) - sinc(x)) / x",
        partials=(
            "-square(pi) * sinc(x) - 2 * out / x if x != 0 else -square(pi) / 3",
        ),
        ball=balls.sinc_slope,
        sympy=lambda sp, x: sp.cos(sp.pi * x) / x - sp.sin(sp.pi * x) / (sp.pi * x**2),
        cost=30,
        source="DLMF 10.49.3: -pi j1(pi x); derivative by 10.47.1",
        notes="the derivative of sinc, without the cancellation about 0",
    ),
)

_INVERSE_CIRCULAR = (
    same_named_row(
        "asin",
        partials=("rsqrt((1 - x) * (1 + x))",),  # 1 - x**2 cancels near 1
        domain="-1 <= x and x <= 1",
        symmetry="odd",
        mistaken=("acos", "asinh"),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(1, "np.arcsin", "torch.asin", "tf.asin", "math.asin", "asin"),
    ),
    same_named_row(
        "acos",
        partials=("-rsqrt((1 - x) * (1 + x))",),
        domain="-1 <= x and x <= 1",
        mistaken=("asin", "acosh"),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(1, "np.arccos", "torch.acos", "tf.acos", "math.acos"),
    ),
    same_named_row(
        "atan",
        partials=("1 / (1 + square(x))",),
        symmetry="odd",
        inverse="tan(out)",
        mistaken=("atanh",),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(1, "np.arctan", "torch.atan", "tf.atan", "math.atan"),
    ),
    # Divided twice, so that the square of the radius need not be in range.
    Primitive(
        "atan2",
        params=("x", "y"),
        partials=("y / hypot(x, y) / hypot(x, y)", "-x / hypot(x, y) / hypot(x, y)"),
        domain="x != 0 or y > 0",
        ball=lambda x, y: x.__class__.atan2(x, y),
        cost=25,
        source="C standard, 7.12.4.4: the angle of the point (y, x)",
        spellings=calls(2, "np.arctan2", "torch.atan2", "tf.atan2", "math.atan2"),
    ),
)

_HYPERBOLIC = (
    same_named_row(
        "sinh",
        meaning="(exp(x) - exp(-x)) / 2",
        partials=("cosh(x)",),
        symmetry="odd",
        inverse="asinh(out)",
        mistaken=("cosh",),
        series=lambda x: (x.exp() - (-x).exp()) / 2,
        cost=20,
        source="DLMF 4.28.1",
        spellings=calls(1, "np.sinh", "torch.sinh", "tf.sinh", "math.sinh", "sinh"),
    ),
    same_named_row(
        "cosh",
        meaning="(exp(x) + exp(-x)) / 2",
        partials=("sinh(x)",),
        symmetry="even",
        bounds=("1", ""),
        inverse="-acosh(out) if x < 0 else acosh(out)",
        mistaken=("sinh",),
        series=lambda x: (x.exp() + (-x).exp()) / 2,
        cost=20,
        source="DLMF 4.28.2",
        spellings=calls(1, "np.cosh", "torch.cosh", "tf.cosh", "math.cosh", "cosh"),
    ),
    # 1 - out**2 is 0 for |x| > 9 in float32; sigmoid loses nothing in either tail.
    same_named_row(
        "tanh",
        meaning="sinh(x) / cosh(x)",
        partials=("4 * sigmoid(2 * x) * sigmoid(-2 * x)",),
        symmetry="odd",
        bounds=("-1", "1"),
        inverse="atanh(out)",
        mistaken=("tan", "sigmoid"),
        series=lambda x: 1 - 2 / ((2 * x).exp() + 1),
        coefficient=balls.tanh_coefficient,
        cost=15,
        source="DLMF 4.28.4; derivative 4.34.10 through exponentials",
        spellings=calls(1, "np.tanh", "torch.tanh", "tf.tanh", "math.tanh", "tanh"),
    ),
    same_named_row(
        "asinh",
        meaning="log(x + sqrt(x * x + 1))",
        partials=("1 / hypot(x, 1)",),
        symmetry="odd",
        inverse="sinh(out)",
        mistaken=("acosh",),
        series=lambda x: (x + (x * x + 1).sqrt()).log(),
        cost=25,
        source="DLMF 4.37.16",
        spellings=calls(1, "np.arcsinh", "torch.asinh", "tf.asinh", "math.asinh"),
    ),
    same_named_row(
        "acosh",
        meaning="log(x + sqrt(x * x - 1))",
        partials=("rsqrt(x - 1) * rsqrt(x + 1)",),  # x**2 - 1 cancels and overflows
        domain="x >= 1",
        mistaken=("asinh",),
        series=None,
        cost=25,
        source="DLMF 4.37.19",
        spellings=calls(1, "np.arccosh", "torch.acosh", "tf.acosh", "math.acosh"),
    ),
    same_named_row(
        "atanh",
        meaning="log((1 + x) / (1 - x)) / 2",
        partials=("1 / ((1 - x) * (1 + x))",),
        domain="-1 < x and x < 1",
        symmetry="odd",
        mistaken=("atan",),
        series=lambda x: ((1 + x).log() - (1 - x).log()) / 2,
        cost=25,
        source="DLMF 4.37.24",
        spellings=calls(
            1, "np.arctanh", "torch.atanh", "tf.atanh", "math.atanh", "atanh"
        ),
    ),
)

ROWS = _EXPONENTIALS + _LOGARITHMS + _LOGISTIC + _PRODUCTS
TRIGONOMETRIC = _CIRCULAR + _INVERSE_CIRCULAR + _HYPERBOLIC
