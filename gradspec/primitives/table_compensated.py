"""Functions of a sum or a product, as accurate as if it had not been rounded.

``exp(x + y)`` has the absolute error of its argument as its relative one: at a sum of 100
that is 50 units in the last place. What rounding took off is exact and is put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import everywhere

_FAR = 1e4
"""Arguments beyond it have no exponential in any format."""


def _sum(np: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """A sum and what its rounding takes off."""
    s = x + y
    b = s - x
    return s, np.where(np.abs(s) < _FAR, (x - (s - b)) + (y - b), 0.0)


def _product(np: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """A product and what its rounding takes off, by halves of both factors."""
    s = x * y
    near = (np.abs(s) < _FAR) & (np.abs(x) < 1e30) & (np.abs(y) < 1e30)
    x, y = np.where(near, x, 0.0), np.where(near, y, 0.0)
    c = 134217729.0
    a, b = c * x - (c * x - x), c * y - (c * y - y)
    e = (x - a) * (y - b) + ((x - a) * b + (a * (y - b) + (a * b - x * y)))
    return s, e


def _sigmoid(np: Any, s: Any) -> Any:
    return np.exp(np.minimum(s, 0.0)) / (1.0 + np.exp(-np.abs(s)))


def _exp(np: Any, s: Any, e: Any) -> Any:
    return np.exp(s) * (1.0 + e)


def _expm1(np: Any, s: Any, e: Any) -> Any:
    return np.expm1(s) * (1.0 + e) + e


def _logistic(np: Any, s: Any, e: Any) -> Any:
    return _sigmoid(np, s) * (1.0 + _sigmoid(np, -s) * e)


def _softplus(np: Any, s: Any, e: Any) -> Any:
    return np.logaddexp(0.0, s) + _sigmoid(np, s) * e


def _power_less_one(np: Any, x: Any, y: Any) -> Any:
    s = y - 1.0
    b = s - y
    e = (y - (s - b)) - (1.0 + b)
    t = e * np.log(np.where((e == 0.0) | (x == 0.0), 1.0, x))
    return x**s * (1.0 + np.where(np.abs(t) < 0.01, t, 0.0))


def _of(split: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda np, x, y: function(np, *split(np, x, y))


_SOURCE = "Knuth, The Art of Computer Programming 2, 4.2.2"
_SOURCE_PRODUCT = "Dekker, A floating-point technique, 1971"

ROWS = (
    Primitive(
        "exp_sum",
        ("x", "y"),
        meaning="exp(x + y)",
        partials=("out", "out"),
        ball=lambda x, y: (x + y).exp(),
        sympy=lambda sp, x, y: sp.exp(x + y),
        model=_of(_sum, _exp),
        cost=22,
        source=_SOURCE,
        spellings=everywhere("exp_sum"),
    ),
    Primitive(
        "exp_product",
        ("x", "y"),
        meaning="exp(x * y)",
        partials=("y * out", "x * out"),
        ball=lambda x, y: (x * y).exp(),
        sympy=lambda sp, x, y: sp.exp(x * y),
        model=_of(_product, _exp),
        cost=50,
        source=_SOURCE_PRODUCT,
        spellings=everywhere("exp_product"),
    ),
    Primitive(
        "expm1_sum",
        ("x", "y"),
        meaning="exp(x + y) - 1",
        partials=("exp_sum(x, y)", "exp_sum(x, y)"),
        ball=lambda x, y: (x + y).expm1(),
        sympy=lambda sp, x, y: sp.exp(x + y) - 1,
        model=_of(_sum, _expm1),
        cost=34,
        source=_SOURCE,
        spellings=everywhere("expm1_sum"),
    ),
    Primitive(
        "expm1_product",
        ("x", "y"),
        meaning="exp(x * y) - 1",
        partials=("y * exp_product(x, y)", "x * exp_product(x, y)"),
        ball=lambda x, y: (x * y).expm1(),
        sympy=lambda sp, x, y: sp.exp(x * y) - 1,
        model=_of(_product, _expm1),
        cost=62,
        source=_SOURCE_PRODUCT,
        spellings=everywhere("expm1_product"),
    ),
    Primitive(
        "sigmoid_sum",
        ("x", "y"),
        meaning="1 / (1 + exp(-(x + y)))",
        partials=("out * sigmoid_sum(-x, -y)", "out * sigmoid_sum(-x, -y)"),
        ball=lambda x, y: balls.sigmoid(x + y),
        sympy=lambda sp, x, y: 1 / (1 + sp.exp(-x - y)),
        model=_of(_sum, _logistic),
        cost=38,
        source=_SOURCE,
        spellings=everywhere("sigmoid_sum"),
    ),
    Primitive(
        "sigmoid_product",
        ("x", "y"),
        meaning="1 / (1 + exp(-x * y))",
        partials=(
            "y * out * sigmoid_product(-x, y)",
            "x * out * sigmoid_product(-x, y)",
        ),
        ball=lambda x, y: balls.sigmoid(x * y),
        sympy=lambda sp, x, y: 1 / (1 + sp.exp(-x * y)),
        model=_of(_product, _logistic),
        cost=66,
        source=_SOURCE_PRODUCT,
        spellings=everywhere("sigmoid_product"),
    ),
    Primitive(
        "softplus_sum",
        ("x", "y"),
        meaning="log(1 + exp(x + y))",
        partials=("sigmoid_sum(x, y)", "sigmoid_sum(x, y)"),
        ball=lambda x, y: balls.softplus(x + y),
        sympy=lambda sp, x, y: sp.log(1 + sp.exp(x + y)),
        model=_of(_sum, _softplus),
        cost=56,
        source=_SOURCE,
        spellings=everywhere("softplus_sum"),
    ),
    Primitive(
        "softplus_product",
        ("x", "y"),
        meaning="log(1 + exp(x * y))",
        partials=("y * sigmoid_product(x, y)", "x * sigmoid_product(x, y)"),
        ball=lambda x, y: balls.softplus(x * y),
        sympy=lambda sp, x, y: sp.log(1 + sp.exp(x * y)),
        model=_of(_product, _softplus),
        cost=84,
        source=_SOURCE_PRODUCT,
        spellings=everywhere("softplus_product"),
    ),
    # a half of y would be exact too, but x**(y / 2) / x is 0/0 at x = 0
    Primitive(
        "power_less_one",
        ("x", "y"),
        meaning="x**(y - 1)",
        partials=("(y - 1) * x**(y - 2)", "xlogy(out, x)"),
        domain="x > 0",
        ball=lambda x, y: balls.power(x, y - 1),
        sympy=lambda sp, x, y: x ** (y - 1),
        model=_power_less_one,
        cost=60,
        source=_SOURCE,
        spellings=everywhere("power_less_one"),
    ),
)
