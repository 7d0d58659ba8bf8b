"""Which part of an expression is differentiated in one sweep.

A branch of a conditional is differentiated by itself, down to the inputs: were its
derivative multiplied by a 0 from outside instead, a branch not taken could leak a NaN
(0 times infinity). What several sweeps share is differentiated once, in a sweep of its
own. So every active node has one owner: the expression itself, a branch, or a shared
node, and the work is linear in the size of the expression.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.ir.expr import ZERO, Apply, Call, Expr, Reduce, Select
from gradspec.primitives.formula import partial


def below(node: Expr) -> tuple[Expr, ...]:
    """The children through which a derivative flows (a condition is none of them)."""
    match node:
        case Apply(args=args) | Call(args=args):
            return args
        case Select(then=then, other=other):
            return (then, other)
        case Reduce(body=body):
            return (body,)
        case _:
            return ()


class Regions:
    """The active nodes below ``root``, children first, each with its owner.

    ``is_leaf`` tells what to differentiate by; ``edges`` numbers the edges from left to
    right, so that sums of contributions can follow the text (``places``: the first edge
    that leads to a node).
    """

    def __init__(self, root: Expr, is_leaf: Callable[[Expr], bool]) -> None:
        self.is_leaf = is_leaf
        self.root = root
        self.edges: dict[tuple[Expr, int], int] = {}
        self.places: dict[Expr, int] = {}
        self._active: set[Expr] = set()
        self._visit()
        self.owners: dict[Expr, Expr] = {root: root}
        self._assign()
        self.members: dict[Expr, list[Expr]] = {}
        for node in self.order:
            self.members.setdefault(self.owners[node], []).append(node)

    def parts(self, node: Expr) -> list[tuple[int, Expr]]:
        """The positions and children through which a derivative flows to a leaf."""
        if self.is_leaf(node):
            return []
        return [
            (position, part)
            for position, part in enumerate(below(node))
            if part in self._active and not _is_flat(node, position)
        ]

    def _visit(self) -> None:
        """Children before parents; edges in the order of the text, left to right."""
        self.order: list[Expr] = []
        entered: set[Expr] = set()
        todo: list[tuple[Expr, tuple[Expr, int] | None, bool]] = [
            (self.root, None, False)
        ]
        while todo:
            node, edge, finished = todo.pop()
            if finished:
                self._finish(node)
                continue
            if edge is not None:
                self.places.setdefault(node, len(self.edges))
                self.edges[edge] = len(self.edges)
            if node in entered:
                continue
            entered.add(node)
            todo.append((node, None, True))
            parts = () if self.is_leaf(node) else below(node)
            for position in reversed(range(len(parts))):
                todo.append((parts[position], (node, position), False))

    def _finish(self, node: Expr) -> None:
        if self.is_leaf(node) or self.parts(node):
            self._active.add(node)
            self.order.append(node)

    def _assign(self) -> None:
        """Owners from above; what is only seen by a step keeps none and goes."""
        for node in reversed(self.order):
            owner = self.owners.get(node)
            if owner is None:
                continue
            for _, part in self.parts(node):
                if (
                    isinstance(node, Select)
                    or self.owners.setdefault(part, owner) != owner
                ):
                    self.owners[part] = part
        self.order = [node for node in self.order if node in self.owners]


def _is_flat(node: Expr, position: int) -> bool:
    """Whether the derivative is 0 wherever it exists (steps)."""
    return isinstance(node, Apply) and partial(node.op, position) == ZERO
