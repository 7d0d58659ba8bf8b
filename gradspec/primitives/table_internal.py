"""Primitives without a user-visible name, which the compiler inserts into expressions.

* ``vanishing``: a product that gives way to a factor that is 0, where an overflow times 0
  has the limit 0. At finite numbers it is the product, with its slopes.
* ``fence``: the number itself, rounded before what follows (`targets/jax/dialect.py`).
* ``broadcast_like``: a value broadcast with another (`plan/broadcast.py`). What is added
  or subtracted is 0, which changes no number.
* ``polynomial<n>``: polynomials with given coefficients, what series are emitted as.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradspec.primitives.row import (
    TARGETS,
    Expand,
    Primitive,
    Runtime,
    Spelling,
    everywhere,
    special,
)

VANISHING = "vanishing"


def _product(np: Any, x: Any, y: Any) -> Any:
    return np.where(np.isinf(x) & (y == 0), np.zeros_like(x), x) * y


_VANISHING = (
    Primitive(
        VANISHING,
        ("x", "y"),
        meaning="x * y",
        partials=("y", "x"),
        ball=lambda x, y: x * y,
        sympy=lambda sp, x, y: x * y,
        model=_product,
        cost=5.0,
        source="the limit of x * exp(-x) at infinity",
        spellings=everywhere("vanishing"),
    ),
)


FENCE = "fence"

_SPELLINGS: dict[str, Spelling] = {
    **dict.fromkeys(("numpy", "torch", "tf"), Expand("x")),
    "jax": special("rounded"),
}

_FENCE = (
    Primitive(
        FENCE,
        ("x",),
        meaning="x",
        partials=("1",),
        ball=lambda x: x,
        sympy=lambda sp, x: x,
        model=lambda np, x: x,
        cost=1,
        source="IEEE 754-2019, 9.6: the minimum of a number and the largest is the number",
        spellings=_SPELLINGS,
    ),
)


BROADCAST_LIKE = "broadcast_like"

_BROADCAST = (
    Primitive(
        BROADCAST_LIKE,
        ("x", "y"),
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


LONGEST = 32


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


def _row(count: int) -> Primitive:
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
        spellings=everywhere("series"),
    )


_POLYNOMIALS = tuple(_row(count) for count in range(2, LONGEST + 1))

ROWS = (*_POLYNOMIALS, *_VANISHING, *_FENCE, *_BROADCAST)
