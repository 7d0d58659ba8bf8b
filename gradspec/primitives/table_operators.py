"""Operators: arithmetic, comparisons, logic, and the constants; and primitives without a
user-visible name, which the compiler inserts into expressions.

* ``vanishing``: a product that gives way to a factor that is 0, where an overflow times 0
  has the limit 0. At finite numbers it is the product, with its slopes.
* ``fence``: the number itself, rounded before what follows (`targets/jax/dialect.py`).
* ``stop``: the number itself, which counts as a constant wherever it is differentiated: the
  value of a called rule without gradients, as `stop_gradient` (`stabilise/names.py`).
* ``broadcast_like``: a value broadcast with another (`plan/gradients.py`). What is added
  or subtracted is 0, which changes no number.
* ``floordiv``, ``place``: the floor of a quotient of whole numbers, and of a number, as
  an integer, which the position along an axis must be (`plan/translation.py`).
* ``polynomial<n>``: polynomials with given coefficients, what series are emitted as.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradspec.primitives import balls
from gradspec.primitives.row import (
    TARGETS,
    Expand,
    Prefix,
    Primitive,
    Runtime,
    Spelling,
    Template,
    infix,
    prefix,
)

_PAIR = ("x", "y")


def _binary(
    name: str,
    spellings: Mapping[str, Spelling],
    apply: Callable[[Any, Any], Any],
    **known: Any,
) -> Primitive:
    """An operator that Python applies to balls, to arrays and to SymPy's terms."""

    def within(module: Any, x: Any, y: Any) -> Any:
        return apply(x, y)

    return Primitive(
        name,
        _PAIR,
        ball=apply,
        sympy=within,
        model=within,
        spellings=spellings,
        **known,
    )


def _comparison(
    name: str,
    spellings: Mapping[str, Spelling],
    apply: Callable[[Any, Any], Any],
    ball: Callable[[Any, Any], Any],
) -> Primitive:
    """A comparison: SymPy, which sorts conditions for seconds, does not see it."""
    return Primitive(
        name,
        _PAIR,
        partials=(None, None),
        result="bool",
        ball=ball,
        model=lambda np, x, y: apply(x, y),
        spellings=spellings,
    )


def _in_tf(name: str) -> Template:
    return Template(f"tf.{name}({{x}}, {{y}})")


def _constant(name: str, **known: Any) -> Primitive:
    """A constant has no argument to tell the ball's type: ``ball`` takes one ball,
    any."""
    modules = dict(zip(TARGETS, ("np", "torch", "math", "jnp"), strict=True))
    modules["python"] = "math"
    spellings = {
        target: Template(f"{module}.{name}") for target, module in modules.items()
    }
    model = operator.attrgetter(name)
    return Primitive(name, (), model=model, cost=0, spellings=spellings, **known)


_ARITHMETIC = (
    _binary(
        "add",
        infix("+", 9),
        operator.add,
        partials=("1", "1"),
        is_commutative=True,
    ),
    _binary(
        "sub",
        infix("-", 9),
        operator.sub,
        partials=("1", "-1"),
    ),
    _binary(
        "mul",
        infix("*", 10),
        operator.mul,
        partials=("y", "x"),
        is_commutative=True,
    ),
    _binary(
        "div",
        infix("/", 10),
        operator.truediv,
        partials=("1 / y", "-out / y"),
        domain="y != 0",
        cost=1.5,
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
    _comparison("lt", infix("<", 4), operator.lt, balls.less),
    _comparison("le", infix("<=", 4), operator.le, balls.at_most),
    _comparison("gt", infix(">", 4), operator.gt, balls.more),
    _comparison("ge", infix(">=", 4), operator.ge, balls.at_least),
    _comparison("eq", infix("==", 4, tf=_in_tf("equal")), operator.eq, balls.equal),
    _comparison(
        "ne", infix("!=", 4, tf=_in_tf("not_equal")), operator.ne, balls.unequal
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

_CONSTANTS = (
    _constant(
        "pi",
        ball=lambda one: one.pi(),
        sympy=lambda sp: sp.pi,
        source="DLMF 3.12",
    ),
    _constant("inf", ball=lambda one: one.pos_inf(), sympy=lambda sp: sp.oo),
)

ROWS = _ARITHMETIC + _COMPARISONS + _LOGIC + _CONSTANTS

# --- without a name -------------------------------------------------------------------

VANISHING = "vanishing"
FENCE = "fence"
STOP = "stop"
BROADCAST_LIKE = "broadcast_like"
FLOORDIV, PLACE = "floordiv", "place"
LONGEST = 32
"""The largest number of coefficients."""


def _vanishing(np: Any, x: Any, y: Any) -> Any:
    return np.where(np.isinf(x) & (y == 0), np.zeros_like(x), x) * y


def name_of(count: int) -> str:
    """The primitive with so many coefficients."""
    return f"polynomial{count}"


def _horner(u: Any, coefficients: Sequence[Any]) -> Any:
    *others, total = coefficients
    for coefficient in reversed(others):
        total = total * u + coefficient
    return total


def _meaning(names: Sequence[str]) -> str:
    text = names[-1]
    for name in reversed(names[:-1]):
        text = f"{name} + x * ({text})"
    return text


def _slope(names: Sequence[str]) -> str:
    """The derivative: one coefficient less, each times its power."""
    if len(names) == 2:
        return names[1]
    terms = [names[1], *(f"{n} * {name}" for n, name in enumerate(names[2:], 2))]
    return f"{name_of(len(terms))}(x, {', '.join(terms)})"


def _polynomial(count: int) -> Primitive:
    names = tuple(f"c{n}" for n in range(count))
    return Primitive(
        name_of(count),
        ("x", *names),
        meaning=_meaning(names),
        partials=(_slope(names), *[None] * count),
        types=("real", *["number"] * count),
        ball=lambda x, *given: _horner(x, given),
        sympy=lambda sp, x, *given: _horner(x, given),
        model=lambda np, x, *given: _horner(x, given),
        cost=2.0 * (count - 1),
        source="Horner's rule",
        spellings=dict.fromkeys(TARGETS, Runtime("series")),
    )


NAMELESS = (
    *(_polynomial(count) for count in range(2, LONGEST + 1)),
    Primitive(
        VANISHING,
        _PAIR,
        meaning="x * y",
        partials=("y", "x"),
        ball=lambda x, y: x * y,
        sympy=lambda sp, x, y: x * y,
        model=_vanishing,
        cost=5.0,
        source="the limit of x * exp(-x) at infinity",
    ),
    Primitive(
        FENCE,
        meaning="x",
        partials=("1",),
        ball=lambda x: x,
        sympy=lambda sp, x: x,
        model=lambda np, x: x,
        cost=1,
        source="IEEE 754-2019, 9.6: the minimum of a number and the largest is the number",
        spellings={
            **dict.fromkeys(("numpy", "torch", "tf"), Expand("x")),
            "jax": Runtime("round_before_use"),
        },
    ),
    Primitive(
        STOP,
        meaning="x",
        partials=("0",),
        ball=lambda x: x,
        model=lambda np, x: x,
        cost=1,
        source="the identity; no algebra sees through it (`sympy`)",
        spellings={
            "python": Template("float({x})"),
            "numpy": Expand("x"),
            "torch": Template("{x}.detach()"),
            "tf": Template("tf.stop_gradient({x})"),
            "jax": Template("jax.lax.stop_gradient({x})"),
        },
    ),
    Primitive(
        FLOORDIV,
        _PAIR,
        meaning="floor(x / y)",
        partials=("0", "0"),
        domain="y != 0",
        ball=lambda x, y: (x / y).floor(),
        model=lambda np, x, y: np.floor_divide(x, y),
        cost=2,
        source="x - x mod y = y floor(x / y): Knuth, The Art of Computer Programming 1,"
        " 1.2.4",
        spellings=infix("//", 10),
    ),
    Primitive(
        PLACE,
        meaning="floor(x)",
        partials=("0",),
        ball=lambda x: x.floor(),
        model=lambda np, x: np.floor(x),
        cost=2,
        source="a floor is a whole number",
        spellings={
            "python": Template("math.floor({x})"),
            "numpy": Template("np.floor({x}).astype(np.int64)"),
            "torch": Template("torch.floor({x}).long()"),
            "tf": Template("tf.cast(tf.floor({x}), tf.int64)"),
            "jax": Template("jnp.floor({x}).astype(int)"),
        },
    ),
    Primitive(
        BROADCAST_LIKE,
        _PAIR,
        meaning="x",
        partials=("1", "0"),
        ball=lambda x, y: x,
        sympy=lambda sp, x, y: x,
        model=lambda np, x, y: np.broadcast_arrays(x, y)[0],
        cost=1,
        source="IEEE 754-2019, 6.3: a number less 0 is the number, and so is -0",
        spellings=dict.fromkeys(TARGETS, Runtime("broadcast_like", "core")),
    ),
)
