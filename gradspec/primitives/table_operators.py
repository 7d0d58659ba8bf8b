"""Operators: arithmetic, comparisons, logic, and the constants."""

from __future__ import annotations

import operator

from gradspec.primitives import balls
from gradspec.primitives.row import Prefix, Primitive, Template, infix, prefix

_PAIR = ("x", "y")

_ARITHMETIC = (
    Primitive(
        "add",
        _PAIR,
        partials=("1", "1"),
        is_commutative=True,
        ball=operator.add,
        sympy=lambda sp, x, y: x + y,
        model=lambda np, x, y: x + y,
        spellings=infix("+", 9),
    ),
    Primitive(
        "sub",
        _PAIR,
        partials=("1", "-1"),
        ball=operator.sub,
        sympy=lambda sp, x, y: x - y,
        model=lambda np, x, y: x - y,
        spellings=infix("-", 9),
    ),
    Primitive(
        "mul",
        _PAIR,
        partials=("y", "x"),
        is_commutative=True,
        ball=operator.mul,
        sympy=lambda sp, x, y: x * y,
        model=lambda np, x, y: x * y,
        spellings=infix("*", 10),
    ),
    Primitive(
        "div",
        _PAIR,
        partials=("1 / y", "-out / y"),
        domain="y != 0",
        ball=operator.truediv,
        sympy=lambda sp, x, y: x / y,
        model=lambda np, x, y: x / y,
        cost=1.5,
        spellings=infix("/", 10),
    ),
    Primitive(
        "mod",
        _PAIR,
        meaning="x - y * floor(x / y)",
        partials=("1", "-floor(x / y)"),
        domain="y != 0",
        kinks=(("x / y == floor(x / y)", "the slope of the branch to the right"),),
        ball=lambda x, y: x - y * (x / y).floor(),
        model=lambda np, x, y: np.mod(x, y),
        cost=12,
        source="x - y floor(x / y): Knuth, The Art of Computer Programming 1, 1.2.4",
        spellings=infix("%", 10),
        notes="the sign is that of y, as in Python",
    ),
    # ∂/∂x as `y * out / x` would be 0/0 at x = 0, and y * x**(y - 1) is 0 times infinity
    # where y is 0 too. ∂/∂y is 0 where out is (x = 0 < y), which is what xlogy says.
    Primitive(
        "pow",
        _PAIR,
        partials=("y * x**(y - 1) if y != 0 else 0", "xlogy(out, x)"),
        domain="x > 0 or x == 0 and y >= 0 or x < 0 and y == floor(y)",
        kinks=(("x == 0 and y == 1", "1, the slope from the right"),),
        ball=balls.power,
        sympy=lambda sp, x, y: x**y,
        model=lambda np, x, y: np.power(x, y),
        cost=20,
        source="DLMF 4.2(iv)",
        spellings=infix("**", 12),
    ),
    Primitive(
        "neg",
        partials=("-1",),
        symmetry="odd",
        inverse="-out",
        ball=operator.neg,
        sympy=lambda sp, x: -x,
        model=lambda np, x: -x,
        cost=0.5,
        spellings=prefix("-", 11),
    ),
)

_COMPARISONS = (
    Primitive(
        "lt",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.less,
        model=lambda np, x, y: x < y,
        spellings=infix("<", 4),
    ),
    Primitive(
        "le",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.at_most,
        model=lambda np, x, y: x <= y,
        spellings=infix("<=", 4),
    ),
    Primitive(
        "gt",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.more,
        model=lambda np, x, y: x > y,
        spellings=infix(">", 4),
    ),
    Primitive(
        "ge",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.at_least,
        model=lambda np, x, y: x >= y,
        spellings=infix(">=", 4),
    ),
    Primitive(
        "eq",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.equal,
        model=lambda np, x, y: x == y,
        spellings=infix("==", 4, tf=Template("tf.equal({x}, {y})")),
    ),
    Primitive(
        "ne",
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=balls.unequal,
        model=lambda np, x, y: x != y,
        spellings=infix("!=", 4, tf=Template("tf.not_equal({x}, {y})")),
    ),
)

# On arrays the bitwise operators are the elementwise ones; `~True` is -2, so a Python
# bool must take the "python" spelling.
_LOGIC = (
    Primitive(
        "and",
        _PAIR,
        partials=(None, None),
        types=("bool", "bool"),
        result="bool",
        ball=balls.conjunction,
        model=lambda np, x, y: np.logical_and(x, y),
        spellings=infix("&", 7, python=infix("and", 2)["python"]),
    ),
    Primitive(
        "or",
        _PAIR,
        partials=(None, None),
        types=("bool", "bool"),
        result="bool",
        ball=balls.disjunction,
        model=lambda np, x, y: np.logical_or(x, y),
        spellings=infix("|", 5, python=infix("or", 1)["python"]),
    ),
    Primitive(
        "not",
        partials=(None,),
        types=("bool",),
        result="bool",
        ball=balls.negation,
        model=lambda np, x: np.logical_not(x),
        spellings=prefix("~", 11, python=Prefix("not ", 3)),
    ),
)

# A constant has no argument to tell the ball's type: `ball` takes one ball, any.
_CONSTANTS = (
    Primitive(
        "pi",
        (),
        ball=lambda one: one.pi(),
        sympy=lambda sp: sp.pi,
        model=lambda np: np.pi,
        cost=0,
        source="DLMF 3.12",
        spellings={
            "numpy": Template("np.pi"),
            "torch": Template("torch.pi"),
            "tf": Template("math.pi"),
            "jax": Template("jnp.pi"),
            "python": Template("math.pi"),
        },
    ),
    Primitive(
        "inf",
        (),
        ball=lambda one: one.pos_inf(),
        sympy=lambda sp: sp.oo,
        model=lambda np: np.inf,
        cost=0,
        spellings={
            "numpy": Template("np.inf"),
            "torch": Template("torch.inf"),
            "tf": Template("math.inf"),
            "jax": Template("jnp.inf"),
            "python": Template("math.inf"),
        },
    ),
)

ROWS = _ARITHMETIC + _COMPARISONS + _LOGIC + _CONSTANTS
