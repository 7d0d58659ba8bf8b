"""The modified Bessel functions of the first kind."""

from __future__ import annotations

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive, everywhere

ROWS = (
    Primitive(
        "i0",
        ("x",),
        partials=("i1(x)",),
        symmetry="even",
        bounds=("1", ""),
        ball=lambda x: x.bessel_i(balls.number(x, 0)),
        sympy=lambda sp, x: sp.besseli(0, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.3",
        spellings=everywhere("i0"),
    ),
    Primitive(
        "i1",
        ("x",),
        partials=("i1_slope(x)",),
        symmetry="odd",
        ball=balls.i1,
        sympy=lambda sp, x: sp.besseli(1, x),
        cost=40,
        source="DLMF 10.25.2; derivative 10.29.2",
        spellings=everywhere("i1"),
    ),
    Primitive(
        "i1_slope",
        ("x",),
        meaning="i0(x) - i1(x) / x if x != 0 else 0.5",
        partials=("i1(x) + (i1(x) / x - out) / x if x != 0 else 0",),
        ball=balls.i1_slope,
        sympy=lambda sp, x: (sp.besseli(0, x) + sp.besseli(2, x)) / 2,
        cost=80,
        source="DLMF 10.29.1; derivative by the differential equation 10.25.1",
        spellings=everywhere("i1_slope"),
        notes="the derivative of i1, without the cancellation about 0",
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
        spellings=everywhere("i0e"),
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
        spellings=everywhere("i1e"),
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
        spellings=everywhere("i0e_slope"),
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
        spellings=everywhere("i1e_slope"),
        notes="the derivative of i1e, without the cancellation for large x",
    ),
)
