"""What all nodes of array expressions have in common."""

from __future__ import annotations


class Node:
    """Equality by structure, without recursion, and the hash computed once: a long sum
    is a deep tree, and trees share much.
    """

    __slots__ = ("_names",)

    _names: tuple[str, ...]

    @property
    def known_names(self) -> tuple[str, ...] | None:
        """The names in it, if they have been asked for."""
        return getattr(self, "_names", None)

    def remember(self, names: tuple[str, ...]) -> None:
        object.__setattr__(self, "_names", names)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self._hash != other._hash:  # type: ignore[attr-defined]
            return False
        from gradspec.plan.array import same

        return same(self, other)

    def _freeze(self, *parts: object) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, *parts)))
