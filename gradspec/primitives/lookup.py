"""Finding a primitive by name."""

from __future__ import annotations

from gradspec.primitives.row import Primitive
from gradspec.primitives.table import ROWS

_BY_NAME = {row.name: row for row in ROWS}


def primitive(name: str) -> Primitive:
    """The row called ``name``; KeyError when there is none (a fault of ours)."""
    return _BY_NAME[name]


def is_primitive(name: str) -> bool:
    return name in _BY_NAME


def function_names() -> tuple[str, ...]:
    """The names that a user can call (operators are not among them), sorted."""
    return tuple(sorted(row.name for row in ROWS if row.name not in _OPERATORS))


_OPERATORS = frozenset(
    "add sub mul div mod pow neg lt le gt ge eq ne and or not pi inf".split()
)
