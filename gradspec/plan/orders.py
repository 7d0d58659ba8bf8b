"""Sorting instead of counting: ranks, and elements chosen by their rank, become places
that one `argsort` gives.

A rank (`ir.expr.rank_of`) becomes ``rank[i]``, an element of a local, and ``sum(a[i] for i
if rank[i] == k)`` becomes ``a[order[k]]``; so does ``a[nth(k, x[j] for j)]``, which is made
of such a sum. A local of the author that says the same is used, else one is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

from gradspec.derive.scopes import replace_indices
from gradspec.ir.expr import (
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Rank,
    Ref,
    Select,
    const,
    exists_on,
    rank_of,
    selection_of,
)
from gradspec.ir.recurrence import states
from gradspec.ir.rule import Complete, Definition, Kind, Role
from gradspec.ir.walk import names, nodes, transform
from gradspec.plan.rewrites import ranges_of

_Ranges = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Order:
    """What a local of whole numbers has along its last axis: the places of the keys in
    ascending order, or their ranks. The ``indices`` are those of the ``key``."""

    key: Expr
    indices: tuple[str, ...]
    axes: tuple[str | int, ...]
    is_rank: bool


def with_orders(rule: Complete) -> tuple[Complete, Orders]:
    """The rule with such locals, and what they are; the value of one that is added is
    its key."""
    orders = Orders(rule)
    if not any(map(rank_of, nodes(*(one.value for one in rule.definitions)))):
        return rule, orders
    found = [*chain.from_iterable(map(orders.ordered, rule.definitions))]
    used = {
        *chain(*(names(d.value) for d in found), (d.name for d in rule.definitions))
    }
    kept = tuple(one for one in found if one.name in used)
    orders.keep(one.name for one in kept)
    return replace(rule, definitions=kept), orders


class Orders:
    """The locals by name and by what they are. Keys are made of inputs and of values of
    the forward pass that are no recurrences."""

    def __init__(self, rule: Complete) -> None:
        self.known: dict[str, Order] = {}
        self._names: dict[Order, str] = {}
        self._is_closed = False
        self._running = states(rule)
        self._kinds = {output.name: output.kind for output in rule.outputs}
        self._given = {variable.name for variable in rule.inputs}
        ends = {*self._given, *self._kinds, *(d.name for d in rule.definitions)}
        axes = {axis for one in rule.definitions for axis in one.axes}
        self._taken = {*ends, *axes, *(f"d{end}" for end in ends)}

    def keep(self, found: Iterable[str]) -> None:
        """Forget all but these; none is added any more."""
        self.known = {name: self.known[name] for name in found if name in self.known}
        self._names = {order: name for name, order in self.known.items()}
        self._is_closed = True

    def changed(self, one: Definition) -> Definition:
        """A definition with places that sorting gives."""
        ranges = ranges_of(one)
        value = transform(one.value, lambda node: self._visit(node, ranges))
        return replace(one, value=value)

    def ordered(self, one: Definition) -> list[Definition]:
        """The changed definition after the locals that it needs and that are new."""
        if one.role is Role.SURROGATE:
            return [one]
        before = {*self.known}
        changed = self.changed(one)
        value, added = changed.value, self.known.keys() - before
        if isinstance(value, Ref) and value.name in added and self._is_same(one, value):
            order = self.known[one.name] = self.known.pop(value.name)
            self._names[order], changed = one.name, one
        if one.is_forward and one.name not in self._running:
            self._given.add(one.name)
        new = ((n, o) for n, o in self.known.items() if n not in before | {one.name})
        locals = (Definition(n, Role.LOCAL, o.key, o.indices, o.axes) for n, o in new)
        return [*locals, changed]

    def _is_same(self, one: Definition, value: Ref) -> bool:
        """True if a local, or an output of integers, is the whole of ``value``."""
        is_whole = self._kinds.get(one.name, Kind.INT) is Kind.INT and one.is_forward
        is_plain = value.indices == (*map(Idx, one.indices),)
        return is_whole and is_plain and self.known[value.name].axes == one.axes

    def _visit(self, node: Expr, ranges: _Ranges) -> Expr:
        ranks = rank_of(node)
        if ranks is not None:
            return self._rank(ranks, ranges) or node
        if isinstance(node, Select) and node.other == const(-1):
            return self._unguarded(node)
        found = selection_of(node)
        if found is None:
            return node
        at, place = found.at, found.place
        match found.ranked, at:
            case Ref(indices=(*rows, Idx(name=place.index))) as ranked, _ if self._is(
                ranked, True
            ) or found.body == Idx(place.index):
                there = self._inverse(ranked, (*rows, at))
                exists = isinstance(at, Idx) and ranges.get(at.name) == place.axis
            case Idx(name=place.index), Ref() as there if there.name in self.known:
                exists = self.known[there.name].axes[-1] == place.axis
            case _:
                return node
        if there is None:
            return node
        body = replace_indices(found.body, {place.index: there})
        return body if exists else Select(exists_on(place.axis, at), body, ZERO)

    def _inverse(self, node: Ref, indices: tuple[Expr, ...]) -> Ref | None:
        """An element of the places whose ranks ``node`` is one of, or the reverse."""
        if node.name not in self.known:
            return None
        order = self.known[node.name]
        return self._element(replace(order, is_rank=not order.is_rank), indices)

    def _is(self, node: Ref, is_rank: bool) -> bool:
        order = self.known.get(node.name)
        return order is not None and order.is_rank is is_rank

    def _unguarded(self, node: Select) -> Expr:
        """``order[k]`` of `nth`, which says of a place that may not exist that it is
        -1: an array of places has none."""
        inner = node.then
        guard = _without_quotients(node.condition)
        if isinstance(inner, Select) and _without_quotients(inner.condition) == guard:
            inner = inner.then
        if not isinstance(inner, Ref) or not self._is(inner, False):
            return node
        axis = self.known[inner.name].axes[-1]
        exists = exists_on(axis, inner.indices[-1])
        return inner if _without_quotients(exists) == guard else node

    def _rank(self, ranks: Rank, ranges: _Ranges) -> Expr | None:
        """The element of a local, if the rule can have it."""
        key, last = ranks.key, ranks.bound
        rows = tuple(index for index in key.free if index != last.index)
        axes = (*(ranges.get(index, -1) for index in rows), last.axis)
        used = [n for n in nodes(key) if isinstance(n, Ref)]
        is_shifted = any(
            isinstance(i, Apply) and i.free for n in used for i in n.indices
        )
        if is_shifted or -1 in axes or not names(key) <= self._given:
            return None
        indices = tuple(f"@{number}" for number in range(len(axes)))
        own = dict(zip((*rows, last.index), map(Idx, indices), strict=True))
        order = Order(replace_indices(key, own), indices, axes, True)
        return self._element(order, (*map(Idx, rows), ranks.place))

    def _element(self, order: Order, indices: tuple[Expr, ...]) -> Ref | None:
        """An element of the local, which is added if there is none."""
        if order not in self._names:
            if self._is_closed:
                return None
            base = "rank" if order.is_rank else "order"
            every = (f"{base}{number or ''}" for number in count())
            name = next(name for name in every if name not in self._taken)
            self._taken.add(name)
            self._names[order], self.known[name] = name, order
        return Ref(self._names[order], indices)


def _without_quotients(expr: Expr) -> Expr:
    """A condition in which quotients by numbers are products: derived ones are."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op="div", args=(above, Const(value=by))) if by:
                return Apply("mul", (Const(1 / by), above))
            case _:
                return node

    return transform(expr, visit)
