"""What all nodes of array expressions have in common."""

from __future__ import annotations


class Node:
    """Equality by structure, without recursion, and the hash computed once: a long sum
    is a deep tree, and trees share much.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        from gradspec.plan.array import same

        return self is other or (isinstance(other, Node) and same(self, other))

    def _freeze(self, *parts: object) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, *parts)))
