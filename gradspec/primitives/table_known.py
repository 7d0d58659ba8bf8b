"""Functions of what is at hand already, for compilers that fuse.

Users have no names for these. About a zero of its gradient, an activation of `x` and
`exp(x)` has an `expm1` of the distance; the exponential of that is known but for a factor,
and in a fused loop a second one costs as much as all the rest. Elsewhere they are written
out: an `expm1` is one operation there, and the series many.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Expand, Primitive, Spelling
from gradspec.primitives.spelling import TARGETS, everywhere
from gradspec.primitives.table_operators import ROWS as OPERATORS
from gradspec.primitives.texts_elementary import (
    NUMPY_LOGISTIC_KNOWN,
    NUMPY_LOGISTIC_SHARE,
    NUMPY_POWER,
    NUMPY_TANH_SOFTPLUS,
    TF_POWER,
    TF_SIGMOID_OPPOSITE,
    TF_SOFTPLUS_OPPOSITE,
)
from gradspec.primitives.texts_normal import GELU_SLOPE as NUMPY_GELU_SLOPE
from gradspec.primitives.texts_pairs import SIGMOID_REST as REST_TEXTS
from gradspec.primitives.texts_torch import IS_COMPILED

EXPM1 = "expm1_known"
TANH_SOFTPLUS = "tanh_softplus"
LOGISTIC_SHARE = "logistic_share"
LOGISTIC_KNOWN = "logistic_known"
POWER = "power_of"
SIGMOID_REST = "sigmoid_rest"
EXP_DOWN = "exp_down"
SIGMOID_DOWN = "sigmoid_down"
SIGMOID_OPPOSITE = "sigmoid_opposite"
SOFTPLUS_OPPOSITE = "softplus_opposite"
BY_PRECISION = "by_precision"
GELU_SLOPE = "gelu_slope"

_NEAR = 0.35

# In eager mode each of these operations is a call, and `expm1` one. What torch compiles has
# `exp(x) - 1` for it, which loses all digits about 0.
_EAGER = {
    "    EAGER\n": {
        "numpy": "",
        "torch": """\
    if not _is_compiled():
        return torch.expm1(x)
""",
        "tf": """\
    if tf.executing_eagerly():
        return tf.math.expm1(x)
""",
        "jax": "",
    }
}

_TEXT = """\
def _expm1_known(x: Array, t: Array) -> Array:
    \"\"\"exp(x) - 1, where t is exp(x); about 0 its Taylor series.\"\"\"
    EAGER
    near = xp.abs(x) < 0.35
    b = xp.where(near, x, xp.zeros_like(x))
    count = 14 if x.dtype == xp.float64 else 8
    s = xp.zeros_like(x)
    for k in range(count, 1, -1):
        s = s * b + 1.0 / math.factorial(k)
    return xp.where(near, b * (1.0 + b * s), t - 1.0)
"""

# A choice says abs(x): it has at 0 the slope of one side.
_TANH_SOFTPLUS_TEXT = """\
def _tanh_softplus(x: Array) -> Array:
    \"\"\"tanh(log(1 + exp(x))), as a quotient of polynomials in exp(-abs(x)).\"\"\"
    left = x < 0.0
    t = xp.exp(xp.where(left, x, -x))
    over = xp.where(left, t * (t + 2.0), 1.0 + 2.0 * t)
    return over / (over + xp.where(left, 2.0 * xp.ones_like(t), 2.0 * t * t))
"""


def _model(np: Any, x: Any, t: Any) -> Any:
    return np.where(np.abs(x) < _NEAR, np.expm1(x), t - 1.0)


def _tanh_of_softplus(np: Any, x: Any) -> Any:
    t = np.exp(-np.abs(x))
    over = np.where(x < 0, t * (t + 2.0), 1.0 + 2.0 * t)
    return over / (over + np.where(x < 0, 2.0, 2.0 * t * t))


# With the choice that `_sigmoid` has: of a forward pass by that, the compiler takes the
# exponential.
_EXP_DOWN_TEXT = """\
def _exp_down(x: Array) -> Array:
    \"\"\"exp(-abs(x)), as the logistic function takes it.\"\"\"
    return xp.exp(xp.where(x >= 0, -x, x))
"""


# What is not returned compilers leave out.
_BY_PRECISION_TEXT = """\
def _by_precision(single: Array, double: Array) -> Array:
    \"\"\"The first of two evaluations in float32, the second in float64.\"\"\"
    return double if double.dtype == xp.float64 else single
"""

_SIGMOID_DOWN_TEXT = """\
def _sigmoid_down(x: Array) -> Array:
    \"\"\"1 / (1 + exp(abs(x))), as the logistic function takes it.\"\"\"
    t = xp.exp(xp.where(x >= 0, -x, x))
    return t / (1.0 + t)
"""


_GELU_SLOPE = "ndtr(x) + x * exp(-0.5 * square(x)) / sqrt(2 * pi)"


def _rest(np: Any, x: Any, y: Any) -> Any:
    return 1.0 / (1.0 + np.exp(x + y))


def _fused(
    name: str,
    text: str,
    formula: str,
    targets: tuple[str, ...] = ("tf", "jax"),
    **words: dict[str, str],
) -> dict[str, Spelling]:
    """A private function where compilers fuse; the formula elsewhere."""
    needs = ({"torch": IS_COMPILED},)
    imports = ("import math",) if "math." in text else ()
    made = everywhere(name, text, imports, needs, **words)
    own: dict[str, Spelling] = {target: made[target] for target in targets}
    return dict.fromkeys(("numpy", "torch"), Expand(formula)) | own


ROWS = (
    Primitive(
        EXPM1,
        ("x", "y"),
        meaning="expm1(x)",
        partials=("exp(x)", None),
        ball=lambda x, _: x.expm1(),
        sympy=lambda sp, x, _: sp.exp(x) - 1,
        model=_model,
        cost=20.0,
        source="Taylor's series; beyond, exp(x) - 1 as it stands",
        spellings=_fused(
            "_expm1_known", _TEXT, "expm1(x)", ("tf", "jax", "torch"), **_EAGER
        ),
    ),
    Primitive(
        TANH_SOFTPLUS,
        ("x",),
        meaning="tanh(softplus(x))",
        partials=("sigmoid(x) / square(cosh(softplus(x)))",),
        ball=lambda x: balls.softplus(x).tanh(),
        sympy=lambda sp, x: sp.tanh(sp.log(1 + sp.exp(x))),
        model=_tanh_of_softplus,
        cost=20.0,
        source="Misra, 2019, Mish: ((1 + exp(x))**2 - 1) / ((1 + exp(x))**2 + 1)",
        spellings={
            **_fused("_tanh_softplus", _TANH_SOFTPLUS_TEXT, "tanh(softplus(x))"),
            "numpy": NUMPY_TANH_SOFTPLUS,
        },
    ),
    Primitive(
        LOGISTIC_SHARE,
        ("x", "y"),
        meaning="x * sigmoid(y)",
        partials=("sigmoid(y)", "x * sigmoid(y) * sigmoid(-y)"),
        ball=lambda x, y: x * balls.sigmoid(y),
        sympy=lambda sp, x, y: x / (1 + sp.exp(-y)),
        model=lambda np, x, y: x / (1.0 + np.exp(-y)),
        cost=11.0,
        source="a quotient in place of a product with one",
        spellings={
            **dict.fromkeys(("tf", "jax", "torch"), Expand("x * sigmoid(y)")),
            "numpy": NUMPY_LOGISTIC_SHARE,
        },
    ),
    Primitive(
        LOGISTIC_KNOWN,
        ("x", "y"),
        meaning="sigmoid(-x)",
        partials=("-out * sigmoid(x)", None),
        ball=lambda x, _: balls.sigmoid(-x),
        sympy=lambda sp, x, _: 1 / (1 + sp.exp(x)),
        model=lambda np, x, y: 1.0 / (1.0 + y),
        cost=3.0,
        source="what a logistic function leaves of 1, from the exponential of both",
        spellings={
            **dict.fromkeys(("tf", "jax", "torch"), Expand("sigmoid(-x)")),
            "numpy": NUMPY_LOGISTIC_KNOWN,
        },
    ),
    replace(
        next(row for row in OPERATORS if row.name == "pow"),
        name=POWER,
        meaning="x**y",
        spellings={
            **dict.fromkeys(("jax", "torch"), Expand("x**y")),
            "tf": TF_POWER,
            "numpy": NUMPY_POWER,
        },
    ),
    Primitive(
        SIGMOID_REST,
        ("x", "y"),
        meaning="sigmoid_sum(-x, -y)",
        partials=("-out * sigmoid_sum(x, y)", "-out * sigmoid_sum(x, y)"),
        ball=lambda x, y: balls.sigmoid(-x - y),
        sympy=lambda sp, x, y: 1 / (1 + sp.exp(x + y)),
        model=_rest,
        cost=38.0,
        source="what a logistic function of the sum leaves of 1",
        spellings={**REST_TEXTS, "numpy": Expand("sigmoid_sum(-x, -y)")},
    ),
    Primitive(
        EXP_DOWN,
        ("x",),
        meaning="exp(-abs(x))",
        partials=(None,),
        ball=lambda x: (-abs(x)).exp(),
        sympy=lambda sp, x: sp.exp(-sp.Abs(x)),
        model=lambda np, x: np.exp(-np.abs(x)),
        cost=10.0,
        source="the exponential of a logistic function",
        spellings={
            **_fused("_exp_down", _EXP_DOWN_TEXT, "exp(-abs(x))", ("tf",)),
            "jax": Expand("exp(-abs(x))"),
        },
    ),
    Primitive(
        SIGMOID_DOWN,
        ("x",),
        meaning="sigmoid(-abs(x))",
        partials=(None,),
        ball=lambda x: balls.sigmoid(-abs(x)),
        sympy=lambda sp, x: 1 / (1 + sp.exp(sp.Abs(x))),
        model=lambda np, x: np.exp(-np.abs(x)) / (1.0 + np.exp(-np.abs(x))),
        cost=38.0,
        source="the smaller of a logistic function of x and of -x",
        spellings={
            **_fused("_sigmoid_down", _SIGMOID_DOWN_TEXT, "sigmoid(-abs(x))", ("tf",)),
            "jax": Expand("sigmoid(-abs(x))"),
        },
    ),
    Primitive(
        SIGMOID_OPPOSITE,
        ("x",),
        meaning="sigmoid(-x)",
        partials=("-out * sigmoid(x)",),
        ball=lambda x: balls.sigmoid(-x),
        sympy=lambda sp, x: 1 / (1 + sp.exp(x)),
        cost=12.0,
        source="the logistic function",
        spellings={
            **dict.fromkeys(TARGETS, Expand("sigmoid(-x)")),
            "tf": TF_SIGMOID_OPPOSITE,
        },
    ),
    Primitive(
        SOFTPLUS_OPPOSITE,
        ("x",),
        meaning="softplus(-x)",
        partials=("-sigmoid(-x)",),
        ball=lambda x: balls.softplus(-x),
        sympy=lambda sp, x: sp.log(1 + sp.exp(-x)),
        model=lambda np, x: np.logaddexp(0.0, -x),
        cost=30.0,
        source="the softplus function",
        spellings={
            **dict.fromkeys(TARGETS, Expand("softplus(-x)")),
            "tf": TF_SOFTPLUS_OPPOSITE,
        },
    ),
    Primitive(
        GELU_SLOPE,
        ("x",),
        meaning=_GELU_SLOPE,
        partials=(None,),
        ball=lambda x: balls.ndtr(x) + x * (-x * x / 2).exp() / (2 * x.pi()).sqrt(),
        sympy=lambda sp, x: (
            sp.erfc(-x / sp.sqrt(2)) / 2 + x * sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
        ),
        cost=50.0,
        source="derivative of x * ndtr(x); a fit (benchmarks/loop_coefficients.py)",
        spellings={
            **dict.fromkeys(("tf", "jax", "torch"), Expand(_GELU_SLOPE)),
            "numpy": NUMPY_GELU_SLOPE,
        },
        notes="in float64 for what is rounded to float32: within 8e-9",
    ),
    Primitive(
        BY_PRECISION,
        ("x", "y"),
        meaning="y",
        partials=(None, "1"),
        ball=lambda _, y: y,
        sympy=lambda sp, _, y: y,
        model=lambda np, x, y: np.where(np.isnan(x), x, y),
        cost=0.0,
        source="two polynomials, of the terms that each precision needs",
        spellings=_fused("_by_precision", _BY_PRECISION_TEXT, "y"),
    ),
)
