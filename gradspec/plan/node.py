"""What all nodes of array expressions have in common."""

from __future__ import annotations

from gradspec.ir.numbered import Numbered


class Node(Numbered):
    """A node that remembers the names in it."""

    __slots__ = ("_names",)

    _names: tuple[str, ...]

    @property
    def known_names(self) -> tuple[str, ...] | None:
        """The names in it, if they have been asked for."""
        return getattr(self, "_names", None)

    def remember(self, names: tuple[str, ...]) -> None:
        object.__setattr__(self, "_names", names)

    def _freeze(self, *parts: object) -> None:
        """``parts`` are nodes, tuples of them, or plain data."""
        self.number(*map(_numbered, parts))


def _numbered(part: object) -> object:
    match part:
        case Node(key=key):
            return key.number
        case tuple():
            return tuple(map(_numbered, part))
        case _:
            return part
