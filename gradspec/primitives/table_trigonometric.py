"""Circular and hyperbolic functions and their inverses."""

from __future__ import annotations

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import calls, everywhere, special

_CIRCULAR = (
    Primitive(
        "sin",
        ("x",),
        partials=("cos(x)",),
        ball=lambda x: x.sin(),
        series=lambda x: x.sin(),
        sympy=lambda sp, x: sp.sin(x),
        model=lambda np, x: np.sin(x),
        cost=10,
        source="DLMF 4.14.1",
        spellings=calls(1, "np.sin", "torch.sin", "tf.sin", "math.sin"),
    ),
    Primitive(
        "cos",
        ("x",),
        partials=("-sin(x)",),
        ball=lambda x: x.cos(),
        series=lambda x: x.cos(),
        sympy=lambda sp, x: sp.cos(x),
        model=lambda np, x: np.cos(x),
        cost=10,
        source="DLMF 4.14.2",
        spellings=calls(1, "np.cos", "torch.cos", "tf.cos", "math.cos"),
    ),
    Primitive(
        "tan",
        ("x",),
        meaning="sin(x) / cos(x)",
        partials=("1 + square(out)",),
        domain="cos(x) != 0",
        ball=lambda x: x.tan(),
        series=lambda x: x.tan(),
        sympy=lambda sp, x: sp.tan(x),
        model=lambda np, x: np.tan(x),
        cost=20,
        source="DLMF 4.14.4",
        spellings=calls(1, "np.tan", "torch.tan", "tf.tan", "math.tan"),
    ),
    Primitive(
        "sinpi",
        ("x",),
        meaning="sin(pi * x)",
        partials=("pi * cospi(x)",),
        ball=lambda x: x.sin_pi(),
        sympy=lambda sp, x: sp.sin(sp.pi * x),
        cost=16,
        source="IEEE 754-2019, 9.2: sinPi",
        spellings=everywhere("sinpi"),
    ),
    Primitive(
        "cospi",
        ("x",),
        meaning="cos(pi * x)",
        partials=("-pi * sinpi(x)",),
        ball=lambda x: x.cos_pi(),
        sympy=lambda sp, x: sp.cos(sp.pi * x),
        cost=16,
        source="IEEE 754-2019, 9.2: cosPi",
        spellings=everywhere("cospi"),
    ),
    Primitive(
        "sinc",
        ("x",),
        meaning="1 if x == 0 else sin(pi * x) / (pi * x)",
        partials=("sinc_slope(x)",),
        ball=lambda x: x.sinc_pi(),
        sympy=lambda sp, x: sp.sinc(sp.pi * x),
        cost=20,
        source="normalised: NumPy manual, numpy.sinc",
        spellings=everywhere("sinc"),
    ),
    Primitive(
        "sinc_slope",
        ("x",),
        meaning="0 if x == 0 else (cos(pi * x) - sinc(x)) / x",
        partials=(
            "-square(pi) * sinc(x) - 2 * out / x if x != 0 else -square(pi) / 3",
        ),
        ball=balls.sinc_slope,
        sympy=lambda sp, x: sp.cos(sp.pi * x) / x - sp.sin(sp.pi * x) / (sp.pi * x**2),
        cost=30,
        source="DLMF 10.49.3: -pi j1(pi x); derivative by 10.47.1",
        spellings=everywhere("sinc_slope"),
        notes="the derivative of sinc, without the cancellation about 0",
    ),
)

_INVERSE_CIRCULAR = (
    Primitive(
        "asin",
        ("x",),
        partials=("rsqrt((1 - x) * (1 + x))",),  # 1 - x**2 cancels near 1
        domain="-1 <= x and x <= 1",
        ball=lambda x: x.asin(),
        series=lambda x: x.asin(),
        sympy=lambda sp, x: sp.asin(x),
        model=lambda np, x: np.arcsin(x),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(
            1, "np.arcsin", "torch.asin", "tf.asin", "math.asin", special("asin")
        ),
    ),
    Primitive(
        "acos",
        ("x",),
        partials=("-rsqrt((1 - x) * (1 + x))",),
        domain="-1 <= x and x <= 1",
        ball=lambda x: x.acos(),
        series=lambda x: x.acos(),
        sympy=lambda sp, x: sp.acos(x),
        model=lambda np, x: np.arccos(x),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(1, "np.arccos", "torch.acos", "tf.acos", "math.acos"),
    ),
    Primitive(
        "atan",
        ("x",),
        partials=("1 / (1 + square(x))",),
        ball=lambda x: x.atan(),
        series=lambda x: x.atan(),
        sympy=lambda sp, x: sp.atan(x),
        model=lambda np, x: np.arctan(x),
        cost=15,
        source="DLMF 4.23(ii)",
        spellings=calls(1, "np.arctan", "torch.atan", "tf.atan", "math.atan"),
    ),
    # Divided twice, so that the square of the radius need not be in range.
    Primitive(
        "atan2",
        ("x", "y"),
        partials=("y / hypot(x, y) / hypot(x, y)", "-x / hypot(x, y) / hypot(x, y)"),
        domain="x != 0 or y > 0",
        ball=lambda x, y: x.__class__.atan2(x, y),
        model=lambda np, x, y: np.arctan2(x, y),
        cost=25,
        source="C standard, 7.12.4.4: the angle of the point (y, x)",
        spellings=calls(2, "np.arctan2", "torch.atan2", "tf.atan2", "math.atan2"),
    ),
)

_HYPERBOLIC = (
    Primitive(
        "sinh",
        ("x",),
        meaning="(exp(x) - exp(-x)) / 2",
        partials=("cosh(x)",),
        ball=lambda x: x.sinh(),
        series=lambda x: (x.exp() - (-x).exp()) / 2,
        sympy=lambda sp, x: sp.sinh(x),
        model=lambda np, x: np.sinh(x),
        cost=20,
        source="DLMF 4.28.1",
        spellings=calls(
            1, "np.sinh", "torch.sinh", "tf.sinh", "math.sinh", special("sinh")
        ),
    ),
    Primitive(
        "cosh",
        ("x",),
        meaning="(exp(x) + exp(-x)) / 2",
        partials=("sinh(x)",),
        ball=lambda x: x.cosh(),
        series=lambda x: (x.exp() + (-x).exp()) / 2,
        sympy=lambda sp, x: sp.cosh(x),
        model=lambda np, x: np.cosh(x),
        cost=20,
        source="DLMF 4.28.2",
        spellings=calls(
            1, "np.cosh", "torch.cosh", "tf.cosh", "math.cosh", special("cosh")
        ),
    ),
    # 1 - out**2 is 0 for |x| > 9 in float32; sigmoid loses nothing in either tail.
    Primitive(
        "tanh",
        ("x",),
        meaning="sinh(x) / cosh(x)",
        partials=("4 * sigmoid(2 * x) * sigmoid(-2 * x)",),
        ball=lambda x: x.tanh(),
        series=lambda x: 1 - 2 / ((2 * x).exp() + 1),
        coefficient=balls.tanh_coefficient,
        sympy=lambda sp, x: sp.tanh(x),
        model=lambda np, x: np.tanh(x),
        cost=15,
        source="DLMF 4.28.4; derivative 4.34.10 through exponentials",
        spellings=calls(
            1, "np.tanh", "torch.tanh", "tf.tanh", "math.tanh", special("tanh")
        ),
    ),
    Primitive(
        "asinh",
        ("x",),
        meaning="log(x + sqrt(x * x + 1))",
        partials=("1 / hypot(x, 1)",),
        ball=lambda x: x.asinh(),
        series=lambda x: (x + (x * x + 1).sqrt()).log(),
        sympy=lambda sp, x: sp.asinh(x),
        model=lambda np, x: np.arcsinh(x),
        cost=25,
        source="DLMF 4.37.16",
        spellings=calls(1, "np.arcsinh", "torch.asinh", "tf.asinh", "math.asinh"),
    ),
    Primitive(
        "acosh",
        ("x",),
        meaning="log(x + sqrt(x * x - 1))",
        partials=("rsqrt(x - 1) * rsqrt(x + 1)",),  # x**2 - 1 cancels and overflows
        domain="x >= 1",
        ball=lambda x: x.acosh(),
        sympy=lambda sp, x: sp.acosh(x),
        model=lambda np, x: np.arccosh(x),
        cost=25,
        source="DLMF 4.37.19",
        spellings=calls(1, "np.arccosh", "torch.acosh", "tf.acosh", "math.acosh"),
    ),
    Primitive(
        "atanh",
        ("x",),
        meaning="log((1 + x) / (1 - x)) / 2",
        partials=("1 / ((1 - x) * (1 + x))",),
        domain="-1 < x and x < 1",
        ball=lambda x: x.atanh(),
        series=lambda x: ((1 + x).log() - (1 - x).log()) / 2,
        sympy=lambda sp, x: sp.atanh(x),
        model=lambda np, x: np.arctanh(x),
        cost=25,
        source="DLMF 4.37.24",
        spellings=calls(
            1, "np.arctanh", "torch.atanh", "tf.atanh", "math.atanh", special("atanh")
        ),
    ),
)

ROWS = _CIRCULAR + _INVERSE_CIRCULAR + _HYPERBOLIC
