"""Finding a primitive by name."""

from __future__ import annotations

from gradspec.primitives import (
    table_bounds,
    table_broadcast,
    table_fence,
    table_operators,
    table_polynomials,
)
from gradspec.primitives.row import Primitive
from gradspec.primitives.table import ROWS

_OURS: tuple[Primitive, ...] = tuple(
    row
    for table in (*(table_polynomials, table_bounds, table_fence, table_broadcast),)
    for row in table.ROWS
)
_BY_NAME = {row.name: row for row in (*ROWS, *_OURS)}
_NAMELESS = frozenset(row.name for row in _OURS)
_OPERATORS = frozenset(row.name for row in table_operators.ROWS) | _NAMELESS


def primitive(name: str) -> Primitive:
    """The row called ``name``; KeyError when there is none (a fault of ours)."""
    return _BY_NAME[name]


def rows() -> tuple[Primitive, ...]:
    """Every row, of what users can call and of what they cannot."""
    return tuple(_BY_NAME.values())


def is_primitive(name: str) -> bool:
    return name in _BY_NAME


def is_function(name: str) -> bool:
    """A user can call it by this name (operators have names too, but only for us)."""
    return name in _BY_NAME and name not in _OPERATORS


def function_names() -> tuple[str, ...]:
    """The names that a user can call, sorted."""
    return tuple(sorted(row.name for row in ROWS if is_function(row.name)))
