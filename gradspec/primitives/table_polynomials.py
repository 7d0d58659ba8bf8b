"""Polynomials with given coefficients: what series are emitted as.

Users have no name for them; the stabiliser puts them in place of what cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradspec.primitives.row import Primitive
from gradspec.primitives.spelling import everywhere

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


ROWS = tuple(_row(count) for count in range(2, LONGEST + 1))
NAMES = frozenset(row.name for row in ROWS)
