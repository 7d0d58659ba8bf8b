"""What each elementary operation is in normal form."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from gradspec.symbolic.arcs import arc_cosine, arc_of_pair, arc_sine, arc_tangent
from gradspec.symbolic.gammas import shifted
from gradspec.symbolic.ring import Frac
from gradspec.symbolic.turns import cos_sin

OPERATIONS: dict[str, Callable[..., Frac]] = {
    "add": lambda n, a, b: n.ring.add(a, b),
    "sub": lambda n, a, b: n.ring.sub(a, b),
    "mul": lambda n, a, b: n.ring.mul(a, b),
    "div": lambda n, a, b: n.ring.div(a, b),
    "neg": lambda n, a: n.ring.neg(a),
    "pow": lambda n, a, b: n.power(a, b),
    "square": lambda n, a: n.ring.power(a, 2),
    "exp": lambda n, a: n.exp(a),
    "log": lambda n, a: n.log(a),
    "sqrt": lambda n, a: n.rational_power(a, Fraction(1, 2)),
    "cbrt": lambda n, a: n.cube_root(a),
    "sin": lambda n, a: cos_sin(n, a)[1],
    "cos": lambda n, a: cos_sin(n, a)[0],
    "asin": arc_sine,
    "acos": arc_cosine,
    "atan": arc_tangent,
    "atan2": arc_of_pair,
    "floor": lambda n, a: n.step_function("floor", a),
    "round": lambda n, a: n.step_function("round", a),
    "mod": lambda n, a, b: n.modulo(a, b),
    "gamma": lambda n, a: n.gamma(a),
    "lgamma": lambda n, a: shifted(n, "lgamma", (a,)),
    "digamma": lambda n, a: shifted(n, "digamma", (a,)),
    "polygamma": lambda n, m, a: shifted(n, "polygamma", (m, a)),
}
