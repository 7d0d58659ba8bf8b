"""Nodes of expressions, counted: equal nodes have one number."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

_numbers: dict[tuple[object, ...], int] = {}
"""The number of each node made so far, by its type and what it is made of."""


class Numbered:
    """Equality by structure, decided when a node is made: equal nodes have the same
    ``key``. Neither the depth of a tree nor its sharing (``a = b + b, c = a + a, …``)
    makes it slow, and walks keep what they know of a node under its key.
    """

    __slots__ = ()

    key: int

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbered) and self.key == other.key

    def __reduce__(self) -> tuple[partial[Any], tuple[()]]:
        """Copied by making it again: another process counts its nodes by itself."""
        own: Any = self
        values = {f.name: getattr(self, f.name) for f in fields(own) if f.init}
        return partial(type(self), **values), ()

    def number(self, *parts: object) -> None:
        """Give it its key; ``parts`` say what it is, with keys in place of nodes."""
        made = (type(self), *parts)
        object.__setattr__(self, "key", _numbers.setdefault(made, len(_numbers)))
