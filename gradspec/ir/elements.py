"""Elements of ranked values, and expressions unrolled for given indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from gradspec.ir.expr import (
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    const,
)
from gradspec.ir.joining import Join, join
from gradspec.ir.numbered import Key
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import children, with_children
from gradspec.source import Span

Index: TypeAlias = tuple[int, ...]
Nested: TypeAlias = "int | Sequence[Nested]"
"""A given integer, or the rows of them, as the input has axes."""

Axes: TypeAlias = tuple[str | int, ...]
Env: TypeAlias = Mapping[str, int]


_UNDEFINED = Apply("div", (ZERO, ZERO))
"""An element that does not exist, where data decide which one is meant."""


class OutOfRange(ValueError):
    """At these sizes (or given integers) an output or a gradient uses an element that
    does not exist: the rule is undefined. ``span`` is the place of use; ``through`` the
    element of a local, if one lies between.
    """

    def __init__(
        self, name: str, span: Span | None = None, through: Ref | None = None
    ) -> None:
        super().__init__(f"{name} does not exist")
        self.name, self.span, self.through = name, span, through


def element(name: str, index: Index) -> str:
    """The name of an element: ``x[0, 1]``; a value without axes keeps its own."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def places(axes: Axes, sizes: Mapping[str, int]) -> Iterator[Index]:
    """Every index of a value with these axes, the last one running fastest."""
    return product(*(range(extent(axis, sizes)) for axis in axes))


def extent(axis: str | int, sizes: Mapping[str, int]) -> int:
    return axis if isinstance(axis, int) else sizes[axis]


class Expansion:
    """Expressions with the values of their indices put in.

    An element out of range becomes a reference to a name that nothing defines: whether
    that matters shows only when the conditions around it are decided.
    """

    def __init__(
        self,
        axes: Mapping[str, Axes],
        sizes: Mapping[str, int],
        integers: Mapping[str, Nested],
        joins: Mapping[str, Join],
    ) -> None:
        self.axes, self.sizes = axes, sizes
        self.integers, self.joins = integers, joins
        self.free: dict[Reduce, tuple[str, ...]] = {}
        self.reduced: dict[tuple[Reduce, Index], Expr] = {}
        self.expanded: dict[tuple[Key, tuple[tuple[str, int], ...]], Expr] = {}

    def expand(self, expr: Expr, env: Env) -> Expr:
        """``expr`` with the values of ``env`` in place of its free indices; kept,
        because rules that differ in one value are written out one after the other."""
        whole = expr.key, tuple(env.items())
        if whole not in self.expanded:
            done: dict[Key, Expr] = {}
            for node in _above_reductions(expr):
                done[node.key] = self._node(node, env, done)
            self.expanded[whole] = done[expr.key]
        return self.expanded[whole]

    def _node(self, node: Expr, env: Env, done: Mapping[Key, Expr]) -> Expr:
        match node:
            case Idx(name=name):
                return const(env[name])
            case Size(axis=axis):
                return const(self.sizes[axis])
            case Ref(name=name, indices=indices):
                return self._ref(name, tuple([done[i.key] for i in indices]), node)
            case Reduce():
                return self._reduce(node, env)
            case _:
                parts = tuple([done[child.key] for child in node.below])
                return fold(with_children(node, parts))

    # --- references ------------------------------------------------------------------

    def _ref(self, name: str, indices: tuple[Expr, ...], node: Ref) -> Expr:
        """The element; a choice between elements where an index depends on data."""
        for position, index in enumerate(indices):
            if not isinstance(index, Const):
                return self._choice(name, indices, position, node)
        place = tuple(int(i.value) for i in indices if isinstance(i, Const))
        if name in self.integers:
            return self._given(name, place)
        return Ref(element(name, place), span=node.span)

    def _choice(
        self, name: str, indices: tuple[Expr, ...], position: int, node: Ref
    ) -> Expr:
        result: Expr = _UNDEFINED
        axis = self.axes[name][position]
        for place in reversed(range(extent(axis, self.sizes))):
            chosen = (*indices[:position], const(place), *indices[position + 1 :])
            here = Apply("eq", (indices[position], const(place)))
            result = Select(here, self._ref(name, chosen, node), result)
        return result

    def _given(self, name: str, index: Index) -> Expr:
        value: Nested = self.integers[name]
        for place in index:
            if isinstance(value, int) or not 0 <= place < len(value):
                raise OutOfRange(element(name, index))
            value = value[place]
        if not isinstance(value, int):
            raise OutOfRange(element(name, index))
        return const(value)

    # --- reductions ------------------------------------------------------------------

    def _reduce(self, node: Reduce, env: Env) -> Expr:
        """Each reduction once for the values of the indices that it really uses."""
        if node not in self.free:
            self.free[node] = _free(node)
        key = node, tuple(env[name] for name in self.free[node])
        if key not in self.reduced:
            self.reduced[key] = join(node.op, self._terms(node, env), self.joins)
        return self.reduced[key]

    def _terms(self, node: Reduce, env: Env) -> list[tuple[Expr | None, Expr]]:
        """The terms, each with the condition on which it counts (None: it does)."""
        terms: list[tuple[Expr | None, Expr]] = []
        axes = tuple(bound.axis for bound in node.bounds)
        for index in places(axes, self.sizes):
            inner = dict(env)
            pairs = zip(node.bounds, index, strict=True)
            inner |= {bound.index: place for bound, place in pairs}
            where = None if node.where is None else self.expand(node.where, inner)
            decided = True if where is None else decide(where)
            if decided is not False:
                condition = None if decided else where
                terms.append((condition, self.expand(node.body, inner)))
        return terms


def _above_reductions(expr: Expr) -> Iterator[Expr]:
    """Every node that is in no reduction, children before parents."""
    seen: set[Key] = set()
    todo: list[tuple[Expr, bool]] = [(expr, False)]
    while todo:
        node, is_below_done = todo.pop()
        if is_below_done:
            yield node
        elif node.key not in seen:
            seen.add(node.key)
            todo.append((node, True))
            if not isinstance(node, Reduce):
                todo.extend((child, False) for child in reversed(children(node)))


def _free(node: Reduce) -> tuple[str, ...]:
    """The indices of the surroundings that a reduction uses."""
    found: dict[str, None] = {}
    bound = {b.index for b in node.bounds}
    for part in children(node):
        for below in _above_reductions(part):
            match below:
                case Idx(name=name):
                    found[name] = None
                case Reduce():
                    found |= dict.fromkeys(_free(below))
                case _:
                    continue
    return tuple(name for name in found if name not in bound)
