"""Powers, roots, and elementary piecewise functions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import (
    TARGETS,
    Expand,
    Primitive,
    Template,
    calls,
    same_named_row,
)


def _discriminant_root(np: Any, x: Any, y: Any, z: Any) -> Any:
    m = np.maximum(np.abs(0.5 * x), np.sqrt(np.abs(y)) * np.sqrt(np.abs(z)))
    far = (m > 0.0) & (m < 2.0**-50) | (m > 2.0**60) & (m < np.inf)
    s = np.where(far, m, 1.0)
    less = np.abs(y) < np.abs(z)
    yz = np.where(less, z, y) * (np.where(less, y, z) / s) / s
    t = 0.5 * x / s
    return s * np.sqrt(t * t - yz) * 2.0


def _power_less_one(np: Any, x: Any, y: Any) -> Any:
    s = y - 1.0
    b = s - y
    e = (y - (s - b)) - (1.0 + b)
    t = e * np.log(np.where((e == 0.0) | (x == 0.0), 1.0, x))
    return x**s * (1.0 + np.where(np.abs(t) < 0.01, t, 0.0))


_ROOTS = (
    Primitive(
        "square",
        meaning="x * x",
        partials=("2 * x",),
        symmetry="even",
        inverse="-sqrt(out) if x < 0 else sqrt(out)",
        ball=lambda x: x * x,
        sympy=lambda sp, x: x**2,
        source="x * x",
        spellings=calls(1, "np.square", "torch.square", "tf.square"),
    ),
    Primitive(
        "reciprocal",
        meaning="1 / x",
        partials=("-square(out)",),
        domain="x != 0",
        ball=lambda x: 1 / x,
        series=lambda x: 1 / x,
        coefficient=balls.reciprocal_coefficient,
        sympy=lambda sp, x: 1 / x,
        model=lambda np, x: 1.0 / x,
        cost=1.5,
        source="1 / x",
        spellings=dict.fromkeys(TARGETS, Expand("1 / x")),
    ),
    same_named_row(
        "sqrt",
        partials=("0.5 / out",),
        domain="x >= 0",
        inverse="square(out) if out >= 0 else 0 / 0",
        mistaken=("rsqrt", "square"),
        cost=3,
        source="DLMF 4.2(iv)",
        spellings=calls(1, "np.sqrt", "torch.sqrt", "tf.sqrt", "math.sqrt"),
    ),
    Primitive(
        "rsqrt",
        meaning="1 / sqrt(x)",
        partials=("-0.5 * out / x",),
        domain="x > 0",
        inverse="1 / square(out) if out > 0 else 0 / 0",
        ball=lambda x: x.rsqrt(),
        series=lambda x: x.rsqrt(),
        sympy=lambda sp, x: 1 / sp.sqrt(x),
        model=lambda np, x: 1.0 / np.sqrt(x),
        cost=4.5,
        source="IEEE 754-2019, 9.2",
        spellings=calls(
            1,
            Expand("1 / sqrt(x)"),
            "torch.rsqrt",
            "tf.math.rsqrt",
            jax="jax.lax.rsqrt",
        ),
    ),
    Primitive(
        "cbrt",
        partials=("1 / (3 * square(out))",),
        kinks=(("x == 0", "infinite: the tangent is upright"),),
        symmetry="odd",
        ball=balls.cbrt,
        sympy=lambda sp, x: sp.sign(x) * sp.Abs(x) ** sp.Rational(1, 3),
        cost=20,
        source="C standard, 7.12.7.1",
        spellings=calls(1, "np.cbrt", "cbrt", "cbrt", "math.cbrt"),
    ),
    Primitive(
        "hypot",
        params=("x", "y"),
        meaning="sqrt(x * x + y * y)",
        partials=("x / (1 if out == 0 else out)", "y / (1 if out == 0 else out)"),
        kinks=(("x == 0 and y == 0", "0, the mean over all directions"),),
        is_commutative=True,
        ball=balls.hypot,
        sympy=lambda sp, x, y: sp.sqrt(x**2 + y**2),
        cost=10,
        notation=r"\sqrt{#1^{2} + #2^{2}}",
        source="C standard, 7.12.7.4",
        spellings=calls(2, "np.hypot", "torch.hypot", "hypot", "math.hypot"),
    ),
    Primitive(
        "discriminant_root",
        params=("x", "y", "z"),
        meaning="sqrt(x * x - 4 * y * z)",
        partials=("x / out", "-2 * z / out", "-2 * y / out"),
        domain="x * x > 4 * y * z",
        ball=lambda x, y, z: (x * x - 4 * y * z).sqrt(),
        sympy=lambda sp, x, y, z: sp.sqrt(x**2 - 4 * y * z),
        model=_discriminant_root,
        cost=20,
        notation=r"\sqrt{#1^{2} - 4 \, #2 \, #3}",
        source="W. Kahan, On the Cost of Floating-Point Computation Without Extra-Precise"
        " Arithmetic, 2004",
        notes="scaled where squares leave the range, as hypot is",
    ),
    # a half of y would be exact too, but x**(y / 2) / x is 0/0 at x = 0
    Primitive(
        "power_less_one",
        params=("x", "y"),
        meaning="x**(y - 1)",
        partials=("(y - 1) * x**(y - 2)", "xlogy(out, x)"),
        domain="x > 0",
        ball=lambda x, y: balls.power(x, y - 1),
        sympy=lambda sp, x, y: x ** (y - 1),
        model=_power_less_one,
        cost=60,
        source="Knuth, The Art of Computer Programming 2, 4.2.2",
        notes="what rounding takes off y - 1 is exact, and is put back",
    ),
)

_PIECES = (
    Primitive(
        "abs",
        meaning="x if x >= 0 else -x",
        partials=("sign(x)",),
        kinks=(("x == 0", "0, midway between the two slopes"),),
        symmetry="even",
        inverse="(-out if x < 0 else out) if out >= 0 else 0 / 0",
        is_exact=True,
        ball=balls.magnitude,
        sympy=lambda sp, x: sp.Abs(x),
        source="DLMF 1.9.7",
        spellings=calls(1, "np.abs", "torch.abs", "tf.abs", "abs"),
    ),
    Primitive(
        "max",
        params=("x", "y"),
        meaning="x if x >= y else y",
        partials=(
            "1 if x > y else 0.5 if x == y else 0",
            "1 if y > x else 0.5 if x == y else 0",
        ),
        kinks=(("x == y", "1/2 each: the tie is shared evenly"),),
        is_exact=True,
        is_commutative=True,
        ball=balls.maximum,
        cost=1.1,
        source="IEEE 754-2019, 9.6: maximum, NaN if either is",
        spellings=calls(2, "np.maximum", "torch.maximum", "tf.maximum", "max"),
    ),
    Primitive(
        "min",
        params=("x", "y"),
        meaning="x if x <= y else y",
        partials=(
            "1 if x < y else 0.5 if x == y else 0",
            "1 if y < x else 0.5 if x == y else 0",
        ),
        kinks=(("x == y", "1/2 each: the tie is shared evenly"),),
        is_exact=True,
        is_commutative=True,
        ball=balls.minimum,
        cost=1.1,
        source="IEEE 754-2019, 9.6: minimum, NaN if either is",
        spellings=calls(2, "np.minimum", "torch.minimum", "tf.minimum", "min"),
    ),
    Primitive(
        "clip",
        params=("x", "y", "z"),
        meaning="min(max(x, y), z)",
        partials=(
            "1 if y <= x and x <= z else 0",
            "1 if x < y and y <= z else 0",
            "1 if x > z or y > z else 0",
        ),
        kinks=(
            ("x == y", "1: a value on the bound is inside"),
            ("x == z", "1: a value on the bound is inside"),
        ),
        is_exact=True,
        ball=balls.clip,
        model=lambda np, x, y, z: np.minimum(np.maximum(x, y), z),
        cost=2.2,
        source="NumPy manual, numpy.clip: the upper bound wins where the two cross",
        # `np.clip` takes nine times as long as these two for one element.
        spellings=calls(
            3,
            Expand("min(max(x, y), z)"),
            "torch.clamp",
            "tf.clip_by_value",
            jax="jnp.clip",
        ),
    ),
    Primitive(
        "relu",
        meaning="max(x, 0)",
        partials=("1 if x > 0 else 0",),
        kinks=(("x == 0", "0, as all frameworks choose"),),
        is_exact=True,
        mistaken=("softplus",),
        ball=lambda x: x.max(balls.number(x, 0)),
        model=lambda np, x: np.maximum(x, 0.0),
        cost=1.1,
        source="Nair and Hinton, Rectified linear units improve ..., ICML 2010",
        spellings=calls(
            1,
            Template("np.maximum({x}, 0.0)"),
            "torch.relu",
            "tf.nn.relu",
            jax="jax.nn.relu",
        ),
    ),
)

_STEPS = (
    Primitive(
        "sign",
        meaning="1 if x > 0 else -1 if x < 0 else 0",
        partials=("0",),
        kinks=(("x == 0", "0, like everywhere else"),),
        is_step=True,
        symmetry="odd",
        is_exact=True,
        ball=lambda x: x.sgn(),
        sympy=lambda sp, x: sp.sign(x),
        source="DLMF, Common notations and definitions",
        spellings=calls(1, "np.sign", "torch.sign", "tf.sign"),
        notes="torch.sign(nan) is 0, on other targets it is NaN",
    ),
    Primitive(
        "heaviside",
        params=("x", "y"),
        optional=(0,),
        meaning="1 if x > 0 else 0 if x < 0 else y",
        partials=("0", "1 if x == 0 else 0"),
        kinks=(("x == 0", "0, like everywhere else"),),
        is_step=True,
        ball=balls.heaviside,
        cost=2,
        source="DLMF 1.16.13, where H(0) = 0; another value there is the second argument",
        spellings=calls(2, "np.heaviside", "heaviside", "heaviside"),
    ),
    Primitive(
        "floor",
        partials=("0",),
        kinks=(("x == floor(x)", "0, like everywhere else"),),
        is_step=True,
        is_exact=True,
        zero_from=Fraction(0),
        ball=lambda x: x.floor(),
        source="DLMF, Common notations and definitions",
        spellings=calls(1, "np.floor", "torch.floor", "tf.floor", "math.floor"),
    ),
    Primitive(
        "ceil",
        meaning="-floor(-x)",
        partials=("0",),
        kinks=(("x == floor(x)", "0, like everywhere else"),),
        is_step=True,
        is_exact=True,
        zero_from=Fraction(-1),
        ball=lambda x: x.ceil(),
        source="DLMF, Common notations and definitions",
        spellings=calls(1, "np.ceil", "torch.ceil", "tf.math.ceil", "math.ceil"),
    ),
    Primitive(
        "round",
        partials=("0",),
        kinks=(("x + 0.5 == floor(x + 0.5)", "0, like everywhere else"),),
        is_step=True,
        symmetry="odd",
        is_exact=True,
        zero_from=Fraction(-1, 2),
        ball=balls.nearest_even,
        source="IEEE 754-2019, 5.9: roundToIntegralTiesToEven",
        spellings=calls(1, "np.round", "torch.round", "tf.round", "round"),
    ),
    Primitive(
        "trunc",
        meaning="floor(x) if x >= 0 else -floor(-x)",
        partials=("0",),
        kinks=(("x == floor(x) and x != 0", "0, like everywhere else"),),
        is_step=True,
        symmetry="odd",
        is_exact=True,
        ball=balls.truncate,
        source="IEEE 754-2019, 5.9: roundToIntegralTowardZero",
        spellings=calls(1, "np.trunc", "torch.trunc", "trunc", "math.trunc"),
    ),
)

ROWS = _ROOTS + _PIECES + _STEPS
