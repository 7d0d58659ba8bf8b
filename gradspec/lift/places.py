"""Places along an axis, which an index of a loop names, and conditions on them: they are sums
of whole multiples of indices, sizes and numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Const, Expr, Idx, Ref, Select, Size
from gradspec.ir.walk import nodes, transform
from gradspec.lift.arrays import arithmetic, choice, view
from gradspec.lift.expressions import Expressions
from gradspec.lift.values import (
    COMPARISONS,
    FALSE,
    TRUE,
    ZERO,
    Array,
    CannotLift,
    Extent,
    Index,
    Scope,
    Steps,
    as_number,
    extent_named,
    size_of,
    with_indices,
)

Linear = dict[Any, int]
"""Whole multiples of indices (by name) and sizes (by extent); a number is at ``None``."""


_LARGEST = 1000
"""The largest number in a place: a sum that helpers double again and again is none."""


def _order(key: Any) -> tuple[bool, bool, str]:
    return (
        key is None,
        isinstance(key, Extent),
        f"{key}" if isinstance(key, str) else "",
    )


def whole(value: int) -> Expr:
    return Const(Fraction(value))


def plus(value: Expr, number: int) -> Expr:
    if number == 0:
        return value
    return Apply("add" if number > 0 else "sub", (value, whole(abs(number))))


class Places(Expressions):
    """Places along axes. ``spans`` are the indices of the loops around, with the numbers of
    places that each leaves out at the start and at the end; ``parts`` are the elements that
    were taken out of arrays: those, the array, the axis and the place."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.parts: list[tuple[Array, Array, int, Expr]] = []
        self._sizes: dict[Extent, Expr] = {}

    # --- places along an axis -------------------------------------------------------------

    def size_at(self, extent: Extent) -> Expr:
        """One expression for each size."""
        return self._sizes.setdefault(extent.root, size_of(Index(extent.root)))

    def linear(self, value: Any) -> Linear | None:
        """A place, or None if the value is none."""
        if isinstance(value, Array) and not value.axes:
            value = value.value
        if isinstance(value, int) and not isinstance(value, bool):
            return {None: value}
        if not isinstance(value, Const | Idx | Size | Apply):
            return None
        done: dict[Any, Linear] = {}  # shared parts are looked at once
        for node in nodes(value):
            found = self._sum_of(node, done)
            if found is None or any(abs(v) > _LARGEST for v in found.values()):
                return None
            done[node.key] = found
        return done[value.key]

    def _sum_of(self, node: Expr, done: dict[Any, Linear]) -> Linear | None:
        match node:
            case Const(value=number) if number.denominator == 1:
                return {None: int(number)}
            case Idx(name=name):
                return {name: 1}
            case Size(axis=str() as axis):
                return {extent_named(axis).root: 1}
            case Apply(op="add" | "sub" as op, args=(a, b)):
                left, right = done[a.key], done[b.key]
                sign = 1 if op == "add" else -1
                keys = {**left, **right}
                return {k: left.get(k, 0) + sign * right.get(k, 0) for k in keys}
            case _:
                return None

    def _written(self, found: Linear) -> Expr:
        """A place as it is written: `t - 1`, `n - 1 - t`."""
        keys = [k for k in sorted(found, key=_order) if k is not None and found[k]]
        number = found.get(None, 0)
        made: Expr = ZERO
        for key in sorted(keys, key=lambda k: found[k] < 0):
            if found[key] < 0:
                made, number = plus(made, number), 0
            one = Idx(key) if isinstance(key, str) else self.size_at(key)
            for _ in range(abs(found[key])):
                made = arithmetic("add" if found[key] > 0 else "sub", made, one)
        return plus(made, number)

    def _least(self, found: Linear, sign: int = 1) -> float:
        """The least value of a place, or of its negative, as far as it is known; sizes are
        1 or more."""
        total: Linear = {}
        for key, times in found.items():
            ends = {key: sign * times}
            if isinstance(key, str):
                if key not in self.spans:
                    return -math.inf
                loop, before, short = self.spans[key]
                ends = {None: sign * times * before}
                if sign * times < 0:
                    ends = {loop.extent.root: sign * times}
                    ends[None] = -sign * times * (short + 1)
            total = {k: total.get(k, 0) + ends.get(k, 0) for k in {**total, **ends}}
        if any(v < 0 for k, v in total.items() if k is not None):
            return -math.inf
        return sum(total.values())

    def settled(self, condition: Expr) -> Expr:
        """A condition on places, with an index alone on its left; or what the bounds of
        the loops decide."""
        if not isinstance(condition, Apply) or condition.op not in COMPARISONS:
            return condition
        op, (a, b) = condition.op, condition.args
        a, b = (b, a) if op in ("lt", "le") else (a, b)
        found = self.linear(Apply("sub", (a, b)))
        if found is None:
            return condition
        if op in ("le", "ge"):
            found[None] = found.get(None, 0) + 1
        least, most = self._least(found), -self._least(found, -1)
        if op in ("eq", "ne"):
            if least > 0 or most < 0 or least == most:
                return TRUE if (least == most == 0) == (op == "eq") else FALSE
        elif least > 0 or most <= 0:
            return TRUE if least > 0 else FALSE
        else:
            op = "gt"
        name = next((k for k in sorted(found, key=_order) if isinstance(k, str)), None)
        if name is None or abs(found[name]) != 1:
            return Apply(op, (self._written(found), ZERO))
        times = found.pop(name)
        right = self._written({k: -times * v for k, v in found.items()})
        return Apply("lt" if (op, times) == ("gt", -1) else op, (Idx(name), right))

    def settle(self, node: Expr) -> Expr:
        match node:
            case Select(condition=condition, then=then, other=other):
                return choice(self.settled(condition), then, other)
            case Apply(op="add" | "sub") if (found := self.linear(node)) is not None:
                return self._written(found)
            case _:
                return node

    def placed(self, value: Expr, index: Index, place: Expr) -> Expr:
        return transform(with_indices(value, {index.name: place}), self.settle)

    def steps(self, args: Sequence[Any], node: ast.AST) -> Steps:
        """`range` over the places of an axis."""
        first, stop = (0, args[0]) if len(args) == 1 else args[:2]
        by = args[2] if len(args) > 2 else 1
        low, high = (first, stop) if by == 1 else (stop, first)
        start, end = self.linear(low), dict(self.linear(high) or {})
        before = (start or {None: -1}).pop(None, 0) + (by == -1)
        short = -end.pop(None, 0) - (by == -1)
        extent = next((k for k in end if isinstance(k, Extent)), None)
        if extent is None or end != {extent: 1} or start or by not in (1, -1):
            raise CannotLift("loop", "a loop whose length the file does not fix", node)
        if before < 0 or short < 0:
            raise CannotLift("loop", "a loop that leaves its axis", node)
        return Steps(extent, before, short, by == -1)

    def at(self, array: Array, axis: int, place: Any, node: ast.AST) -> Array:
        """The elements at one place of an axis; a negative one is counted from its end."""
        index, rest = array.axes[axis], array.axes[:axis] + array.axes[axis + 1 :]
        if index is None:
            if place not in (0, -1):
                raise CannotLift("indexing", "a place on an axis of size 1", node)
            return view(array, rest)
        wanted, size = as_number(self.array(place).value), self.size_at(index.extent)
        found = self.linear(wanted) or {}
        for name in (k for k in found if k in self.spans):
            self.unify(self.spans[name][0].extent, index.extent, node)
        if found.keys() <= {None} and found.get(None, 0) < 0:
            wanted = plus(size, found[None])
        value = self.placed(array.value, index, wanted)
        is_in = self.settled(Apply("ge", (wanted, ZERO)))
        if self.settled(Apply("lt", (wanted, size))) != TRUE or (
            is_in != TRUE and not found.keys() & self.spans.keys()
        ):
            raise CannotLift("indexing", "a place that may be outside its axis", node)
        if is_in != TRUE:
            around = self.placed(array.value, index, Apply("add", (size, wanted)))
            value = choice(is_in, value, around)
        made = Array(value, rest, array.is_open)
        made.is_view = array.is_parted = True
        self.parts.append((made, array, axis, wanted))
        return made

    def elements_of(self, places: tuple[Any, ...]) -> list[int]:
        """Which of the places in brackets are those of one element."""
        return [k for k, p in enumerate(places) if self.linear(p) is not None]

    def without_places(
        self, array: Array, places: tuple[Any, ...], node: ast.AST
    ) -> tuple[Array, tuple[Any, ...]]:
        """The elements at the places that are single ones, and the other places."""
        dots = places.index(Ellipsis) if Ellipsis in places else len(places)
        left = list(places)
        for k in reversed(self.elements_of(places)):
            before = sum(p is not None for p in places[:k])
            after = -sum(p is not None for p in left[k:])
            axis = self.place(array, after if k > dots else before, node)
            array = self.at(array, axis, places[k], node)
            del left[k]
        return array, tuple(left)

    def one_place(
        self, base: Array, places: tuple[Any, ...], node: ast.AST
    ) -> tuple[int, Any]:
        """The axis at which one element is taken, of all of the others; and its place."""
        singles = self.elements_of(places)
        whole = all(
            p is Ellipsis or p == slice(None)
            for k, p in enumerate(places)
            if k not in singles
        )
        if len(singles) != 1 or not whole:
            raise CannotLift(
                "indexing", f"the part `{ast.unparse(node)}` of an array", node
            )
        number = singles[0]
        after_dots = Ellipsis in places[:number]
        axis = number - len(places) if after_dots else number
        return self.place(base, axis, node), places[number]

    # --- conditions on the place ------------------------------------------------------------

    def place_condition(self, test: ast.expr, scope: Scope) -> Expr | None:
        """The condition on the index of a loop that a test is; None if it is another."""
        read = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
        if not self.spans or not any(self._is_place(scope.names.get(n)) for n in read):
            return None
        value = self.evaluate(test, scope)
        if not isinstance(value, Array) or not self._is_place(value):
            return None
        inner = value.value
        return self.settled(inner if value.is_condition else Apply("ne", (inner, ZERO)))

    def _is_place(self, value: Any) -> bool:
        if not isinstance(value, Array) or value.axes or value.is_open:
            return False
        found = nodes(value.value)
        is_pure = not any(isinstance(n, Ref) for n in found)
        return is_pure and any(
            isinstance(n, Idx) and n.name in self.spans for n in found
        )

    def _on_IfExp(self, node: ast.IfExp, scope: Scope) -> Any:
        condition = self.place_condition(node.test, scope)
        if condition is None:
            return super()._on_IfExp(node, scope)
        if condition in (TRUE, FALSE):
            return self.evaluate(node.body if condition == TRUE else node.orelse, scope)
        with self.where_holds(condition, True):
            then = self.evaluate(node.body, scope)
        with self.where_holds(condition, False):
            other = self.evaluate(node.orelse, scope)
        return self.where(Array(condition), then, other, node)

    def truth(self, node: ast.expr, scope: Scope) -> bool:
        condition = self.place_condition(node, scope)
        if condition is None:
            return super().truth(node, scope)
        if condition not in (TRUE, FALSE):
            raise CannotLift("loop", "a condition on the step in another one", node)
        return condition == TRUE

    @contextmanager
    def where_holds(self, condition: Expr, holds: bool) -> Iterator[None]:
        """The bounds of the loops where a condition holds, or does not."""
        kept = dict(self.spans)
        match condition:
            case Apply(op=op, args=(Idx(name=name), b)) if name in kept:
                loop, before, short = kept[name]
                found = dict(self.linear(b) or {})
                number, is_end = found.pop(None, 0), found == {loop.extent.root: 1}
                if not holds:
                    number += {"gt": 1, "lt": -1}.get(op, 0)
                    op = {"gt": "lt", "lt": "gt", "eq": "ne", "ne": "eq"}[op]
                if op == "gt" and not found:
                    before = max(before, number + 1)
                elif op == "lt" and is_end:
                    short = max(short, -number)
                elif op == "ne":
                    before += not found and number == before
                    short += is_end and -number == short + 1
                self.spans[name] = loop, before, short
        try:
            yield
        finally:
            self.spans = kept
