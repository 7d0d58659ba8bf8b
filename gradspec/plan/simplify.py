"""Rewrites of array expressions: kept dimensions, functions of frameworks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TypeVar

from gradspec.plan.arrays import (
    Expand,
    Expr,
    LogSoftmax,
    Name,
    Op,
    Reduce,
    Softmax,
    ToFloat,
    Where,
    children,
    nodes,
    substitute,
    transform,
    with_children,
)
from gradspec.plan.axes import pushed
from gradspec.plan.operations import Types

# --- kept axes ------------------------------------------------------------------------
#
# Reductions keep their axes where the axes would be inserted again.
#
# ``(r * r)[..., None]`` of a row's statistic ``r`` is ``r * r`` if ``r`` has an axis of
# size 1 already, which is free in the reduction. So new axes are moved inward through
# elementwise operations to reductions, and to locals that are always used with them. A
# reduction that is also used without its axes is not computed twice.


Axes = tuple[int, ...]


def kept_dimensions(
    values: Mapping[str, Expr], fixed: frozenset[str], types: Types
) -> dict[str, Expr]:
    """The values, over one another's names; those in ``fixed`` keep their shapes."""
    if not any(isinstance(n, Expand | Reduce) for n in nodes(*values.values())):
        return dict(values)
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
        """Give the local its new axes at its definition, if they belong there."""
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
        """True if a reduction absorbs the axes, and no other local must be expanded."""
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
        """The new axes with which the name is used. The parts of a ``pending`` local
        have the axes that all its uses have.
        """
        found: set[Axes | None] = set()
        for other, value in self.values.items():
            placed = _placed(value, pending.get(other))
            found |= {axes for node, axes in placed if node == Name(name)}
        return found

    # --- reductions --------------------------------------------------------------------

    def carry(self) -> None:
        """Move new axes inward to the reductions of an operation, except those that are
        present without them.
        """
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
    """The operations under new last axes, as far inward as the axes can move."""
    todo = [node.arg] if _is_last(node.axes) else []
    while todo:
        part = todo.pop()
        if _is_operation(part):
            yield part
            todo.extend(children(part))


def _leaves(value: Expr) -> Iterator[Expr]:
    """The operands of the outermost operations of a value."""
    todo = [value]
    while todo:
        part = todo.pop()
        if _is_operation(part):
            todo.extend(children(part))
        else:
            yield part


def _placed(value: Expr, start: Axes | None) -> Iterator[tuple[Expr, Axes | None]]:
    """Every node with the new axes above it, each such pair once."""
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


# --- functions of frameworks ----------------------------------------------------------
#
# Operations that every framework has as one function, recognised in planned values.
#
# One function makes one pass where its parts make four, and its own derivative is as
# stable. Where a part is needed separately, it is computed anyway, and nothing changes.


_K = TypeVar("_K", bound=Hashable)


def with_natives(values: Mapping[_K, Expr], wanted: Collection[_K]) -> dict[_K, Expr]:
    """The values with softmax and its logarithm recognised; ``wanted`` are those needed
    in their own right.
    """
    if not any(isinstance(n, Reduce) for n in nodes(*values.values())):
        return dict(values)
    uses = Counter(values[name] for name in wanted)
    for node in nodes(*values.values()):
        uses.update(children(node))
    done: dict[Expr, Expr] = {}
    for node in nodes(*values.values()):
        made = _native(node, uses) or node
        done[node] = with_children(made, tuple(done[part] for part in children(made)))
    return {name: done[value] for name, value in values.items()}


def _native(node: Expr, uses: Counter[Expr]) -> Expr | None:
    match node:
        case Op(primitive="div", args=(Op(primitive="exp") as top, below)):
            total = _along_row(("sum",), below)
            shifted = _shifted(("max", "peak"), top.args[0])
            if total is None or shifted is None or uses[top] != 2:
                return None
            is_row = total.arg == top and total.axes == shifted.axes
            return Softmax(shifted.arg, shifted.axes[0]) if is_row else None
        case Op(primitive="exp", args=(shift,)) if uses[shift] == 1:
            shifted = _shifted(("logsumexp",), shift)
            alone = shifted is not None and uses[shifted] == 1
            return Softmax(shifted.arg, shifted.axes[0]) if shifted and alone else None
        case Op(primitive="sub"):
            shifted = _shifted(("logsumexp",), node)
            alone = shifted is not None and uses[shifted] == 1
            found = shifted if alone else None
            return LogSoftmax(found.arg, found.axes[0]) if found else None
        case _:
            return None


def _shifted(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """The reduction ``r`` of ``a`` along one axis, if the value is ``a - r``."""
    match value:
        case Op(primitive="sub", args=(arg, below)):
            found = _along_row(ops, below)
            return found if found is not None and found.arg == arg else None
        case _:
            return None


def _along_row(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """A reduction along one axis, which is kept with size 1."""
    match value:
        case Expand(arg=Reduce(keep=False) as reduced, axes=axes) if (
            axes == reduced.axes
        ):
            found = reduced
        case Reduce(keep=True):
            found = value
        case _:
            return None
    return found if found.op in ops and len(found.axes) == 1 else None
