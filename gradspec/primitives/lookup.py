"""The table of primitives: all rows, and a row by its name."""

from __future__ import annotations

from gradspec.primitives import (
    table_algebraic,
    table_elementary,
    table_operators,
    table_special,
)
from gradspec.primitives.row import Primitive

ROWS: tuple[Primitive, ...] = (
    *table_operators.ROWS,
    *table_elementary.ROWS,
    *table_algebraic.ROWS,
    *table_special.ROWS,
)
"""All rows that users have a name or an operator for, family by family."""

_BY_NAME = {row.name: row for row in (*ROWS, *table_operators.NAMELESS)}
_NAMELESS = frozenset(row.name for row in table_operators.NAMELESS)
_OPERATORS = frozenset(row.name for row in table_operators.ROWS) | _NAMELESS


def primitive(name: str) -> Primitive:
    """The row called ``name``; KeyError when there is none (an internal error)."""
    return _BY_NAME[name]


def rows() -> tuple[Primitive, ...]:
    """Every row, of what users can call and of what they cannot."""
    return tuple(_BY_NAME.values())


def is_primitive(name: str) -> bool:
    return name in _BY_NAME


def is_function(name: str) -> bool:
    """True if users can call it by this name (operators have names too, for internal
    use).
    """
    return name in _BY_NAME and name not in _OPERATORS


def function_names() -> tuple[str, ...]:
    """The names that a user can call, sorted."""
    return tuple(sorted(row.name for row in ROWS if is_function(row.name)))
