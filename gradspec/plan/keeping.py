"""Reductions keep their axes where new axes would only be put back.

``(r * r)[..., None]`` of a row's statistic ``r`` is ``r * r`` if ``r`` has an axis of
size 1 already, which costs nothing where it was reduced. So new axes are carried down
through elementwise operations to reductions, and to locals that are only ever used with
them. A reduction that is also used without its axes is not computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradspec.plan.array import (
    Expr,
    Name,
    Op,
    ToFloat,
    Where,
    children,
    substitute,
    transform,
)
from gradspec.plan.axes import pushed
from gradspec.plan.ranked import Expand, Reduce
from gradspec.plan.translate import Types

Axes = tuple[int, ...]


def kept_dimensions(
    values: Mapping[str, Expr], fixed: frozenset[str], types: Types
) -> dict[str, Expr]:
    """The values, over one another's names; those in ``fixed`` keep their shapes."""
    work = _Work(dict(values), fixed, types)
    for name in reversed(tuple(values)):
        work.shrink(name)
    work.carry()
    return work.values


class _Work:
    def __init__(
        self, values: dict[str, Expr], fixed: frozenset[str], types: Types
    ) -> None:
        self.values, self._types = values, types
        self._locals = values.keys() - fixed

    # --- locals ------------------------------------------------------------------------

    def shrink(self, name: str) -> None:
        """Give the local its new axes from the start, if that is where they belong."""
        uses = self._uses(name, {})
        axes = uses.pop() if len(uses) == 1 else None
        if axes is None or not self._is_worth(name, axes, {}):
            return
        own = Name(name)
        wide = Name(f"{name}[None]")  # with its new axes: others may come on top

        def visit(node: Expr) -> Expr:
            if isinstance(node, Expand) and node.arg == own:
                return wide
            if isinstance(node, Expand) and any(
                own in children(part) for part in _operations(node)
            ):
                return transform(pushed(node.arg, node.axes, self._types), visit)
            return node

        placed = {n: transform(v, visit) for n, v in self.values.items()}
        self.values = {n: substitute(v, {wide.id: own}) for n, v in placed.items()}
        self.values[name] = pushed(self.values[name], axes, self._types)

    def _is_worth(self, name: str, axes: Axes, pending: Mapping[str, Axes]) -> bool:
        """Whether a reduction takes up the axes, and no other local must be expanded."""
        value = self.values[name]
        if name not in self._locals or self._uses(name, pending) != {axes}:
            return False
        pending = {**pending, name: axes}
        leaves = [*_leaves(value)] if _is_last(axes) else [value]
        names = [x.id for x in leaves if isinstance(x, Name) and x.id in self.values]
        reduced = any(_takes_up(leaf, axes) for leaf in leaves)
        return bool(reduced or names) and all(
            self._is_worth(other, axes, pending) for other in names
        )

    def _uses(self, name: str, pending: Mapping[str, Axes]) -> set[Axes | None]:
        """With which new axes the name is used. What a ``pending`` local is made of has
        the axes that all its uses have.
        """
        found: set[Axes | None] = set()
        for other, value in self.values.items():
            placed = _placed(value, pending.get(other))
            found |= {axes for node, axes in placed if node == Name(name)}
        return found

    # --- reductions --------------------------------------------------------------------

    def carry(self) -> None:
        """New axes carried down to the reductions of an operation, but for those that
        are there without them anyway."""
        bare = {
            node
            for value in self.values.values()
            for node, axes in _placed(value, None)
            if axes is None and isinstance(node, Reduce)
        }

        def visit(node: Expr) -> Expr:
            if isinstance(node, Expand) and any(
                _takes_up(leaf, node.axes) and leaf not in bare
                for leaf in _leaves(node.arg)
                if _is_last(node.axes)
            ):
                return transform(pushed(node.arg, node.axes, self._types), once)
            return once(node)

        def once(node: Expr) -> Expr:
            if isinstance(node, Reduce) and node.keep:
                without = Reduce(node.op, node.arg, node.axes)
                return Expand(without, node.axes) if without in bare else node
            return node

        self.values = {n: transform(v, visit) for n, v in self.values.items()}


def _takes_up(node: Expr, axes: Axes) -> bool:
    return isinstance(node, Reduce) and node.axes == axes and not node.keep


def _is_last(axes: Axes) -> bool:
    return axes == tuple(range(-len(axes), 0))


def _is_operation(node: Expr) -> bool:
    return isinstance(node, Op | Where | ToFloat) and bool(children(node))


def _operations(node: Expand) -> Iterator[Expr]:
    """The operations under new last axes, as far as the axes can be carried down."""
    todo = [node.arg] if _is_last(node.axes) else []
    while todo:
        part = todo.pop()
        if _is_operation(part):
            yield part
            todo.extend(children(part))


def _leaves(value: Expr) -> Iterator[Expr]:
    """What the operations on top of a value are made of."""
    todo = [value]
    while todo:
        part = todo.pop()
        if _is_operation(part):
            todo.extend(children(part))
        else:
            yield part


def _placed(value: Expr, start: Axes | None) -> Iterator[tuple[Expr, Axes | None]]:
    """Every node with the new axes that it is under, each such pair once."""
    todo: list[tuple[Expr, Axes | None]] = [(value, start)]
    seen = set(todo)
    while todo:
        node, axes = todo.pop()
        yield node, axes
        under = axes if _is_operation(node) and axes and _is_last(axes) else None
        if isinstance(node, Expand):
            under = node.axes
        fresh = [(c, under) for c in children(node) if (c, under) not in seen]
        seen.update(fresh)
        todo += fresh
