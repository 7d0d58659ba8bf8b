"""Hash-consed keys of expression nodes: equal nodes have one number."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary


class Key:
    """The identity of equal nodes, compared by `is`; it is freed with the last of
    them."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


_keys: WeakValueDictionary[tuple[object, ...], Key] = WeakValueDictionary()
"""The keys of all live nodes, by type and contents: children by number, so that an
entry keeps no node alive."""

_numbers = count()


class Numbered:
    """Equality by structure, decided when a node is made: equal nodes have the same
    ``key``. Neither the depth of a tree nor its sharing (``a = b + b, c = a + a, …``)
    makes it slow, and walks keep what they know of a node under its key.
    """

    __slots__ = ()

    key: Key

    def __hash__(self) -> int:
        return self.key.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbered) and self.key is other.key

    def __reduce__(self) -> tuple[partial[Any], tuple[()]]:
        """Pickle by construction: another process numbers its nodes by itself."""
        own: Any = self
        values = {f.name: getattr(self, f.name) for f in fields(own) if f.init}
        return partial(type(self), **values), ()

    def number(self, *parts: object) -> None:
        """Give the node its key; ``parts`` say what it is, with numbers in place of
        nodes."""
        made = (type(self), *parts)
        key = _keys.get(made)
        if key is None:
            key = _keys[made] = Key(next(_numbers))
        object.__setattr__(self, "key", key)
