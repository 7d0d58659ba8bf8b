"""The gamma function and its logarithmic derivatives."""

from __future__ import annotations

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive, call, calls, everywhere, special

ROWS = (
    Primitive(
        "lgamma",
        ("x",),
        meaning="log(abs(gamma(x)))",
        partials=("digamma(x)",),
        domain="x > 0 or x != floor(x)",
        mistaken=("gamma",),
        ball=balls.log_gamma,
        series=lambda x: x.lgamma(),
        sympy=lambda sp, x: sp.loggamma(x),
        cost=60,
        source="DLMF 5.2.1; C standard, 7.12.8.3",
        spellings=calls(
            1,
            special("lgamma"),
            "torch.lgamma",
            "tf.math.lgamma",
            "math.lgamma",
            special("lgamma"),
        ),
    ),
    Primitive(
        "gamma",
        ("x",),
        partials=("out * digamma(x)",),
        domain="x > 0 or x != floor(x)",
        mistaken=("lgamma",),
        ball=lambda x: x.gamma(),
        series=lambda x: x.gamma(),
        sympy=lambda sp, x: sp.gamma(x),
        cost=60,
        source="DLMF 5.2.1",
        spellings={**everywhere("gamma"), "python": call(1, "math.gamma")},
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
        spellings=everywhere("digamma") | {"torch": call(1, "torch.digamma")},
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
        spellings=everywhere("polygamma"),
        notes="the first argument is the order: a static or constant integer",
    ),
)
