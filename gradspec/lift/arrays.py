"""Operations on arrays in index notation: broadcasting with unified sizes, reductions,
products of matrices, axes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Const, Expr, Select
from gradspec.lift.values import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Array,
    Axes,
    CannotLift,
    Chosen,
    Extent,
    Index,
    Opaque,
    as_condition,
    as_number,
    is_condition,
    reduction,
    size_of,
    with_indices,
)
from gradspec.primitives.frameworks import FLOOR

Number = int | Fraction
Node = ast.AST | None


def number(value: object) -> Expr:
    """A Python number as an expression."""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, float):  # an infinity: other literals are fractions
        inf = Apply("inf")
        return inf if value > 0 else Apply("neg", (inf,))
    assert isinstance(value, int | Fraction)
    return Const(Fraction(value))


def arithmetic(op: str, left: Expr, right: Expr) -> Expr:
    """With what keeps the text readable folded: `0 + x`, `1 * x`, `x - 0`, `x / 1`."""
    a, b = as_number(left), as_number(right)
    match op, a, b:
        case ("mul", x, _) if x == ZERO:
            return ZERO
        case ("mul", _, y) if y == ZERO:
            return ZERO
        case ("mul", x, _) | ("add", x, _) if x == (ONE if op == "mul" else ZERO):
            return b
        case ("mul" | "div" | "pow", _, y) if y == ONE:
            return a
        case ("add" | "sub", _, y) if y == ZERO:
            return a
        case ("sub", x, _) if x == ZERO:
            return negative(b)
        case ("div", x, _) if x == ZERO:
            return ZERO
        case _:
            return Apply(op, (a, b))


def negative(value: Expr) -> Expr:
    value = as_number(value)
    return Const(-value.value) if isinstance(value, Const) else Apply("neg", (value,))


def choice(condition: Expr, then: Expr, other: Expr) -> Expr:
    condition = as_condition(condition)
    if condition in (TRUE, FALSE):
        return as_number(then if condition == TRUE else other)
    if is_condition(then) and is_condition(other):
        both = Apply("and", (condition, then))
        return Apply("or", (both, Apply("and", (Apply("not", (condition,)), other))))
    return Select(condition, as_number(then), as_number(other))


class Arrays:
    """The operations on arrays. ``allows_square``: two axes of one input may be found
    to have the same size."""

    def __init__(self, allows_square: bool = False) -> None:
        self.allows_square = allows_square
        self.squares: set[str] = set()

    def array(self, value: Any, node: Node = None) -> Array:
        match value:
            case Array():
                return value
            case bool() | int() | float() | Fraction():
                return Array(number(value))
            case Chosen(array=array):
                return array
            case Opaque(kind=kind, origin=origin):
                raise CannotLift(kind, f"{origin} where an array is expected", node)
            case _:
                kind = type(value).__name__.lower()
                raise CannotLift("python", f"a {kind} where an array is expected", node)

    # --- elementwise ------------------------------------------------------------------

    def unify(self, a: Extent, b: Extent, node: Node = None) -> None:
        a, b = a.root, b.root
        if a is b:
            return
        if a.owner and a.owner == b.owner:
            if not self.allows_square:
                raise CannotLift(
                    "shape", f"two axes of `{a.owner}` would have to be equal", node
                )
            self.squares.add(a.owner)
        if not a.owner:
            a, b = b, a
        b.link = a

    def broadcast(
        self, arrays: Sequence[Array], node: Node = None
    ) -> tuple[list[Expr], Axes, bool]:
        """The elements of arrays at common indices."""
        rank = max(len(a.axes) for a in arrays)
        if any(a.is_open and len(a.axes) < rank for a in arrays):
            told = "operands whose ranks differ by an unknown amount"
            raise CannotLift("shape", told, node)
        axes: list[Index | None] = [None] * rank
        maps: list[dict[str, Expr]] = [{} for _ in arrays]
        for array, names in zip(arrays, maps, strict=True):
            for k, index in enumerate(array.axes, rank - len(array.axes)):
                if index is None:
                    continue
                mine = axes[k]
                if mine is None:
                    mine = Index(index.extent) if index in axes else index
                    axes[k] = mine
                if mine is not index:
                    self.unify(mine.extent, index.extent, node)
                    names[index.name] = mine.value
        pairs = zip(arrays, maps, strict=True)
        elements = [with_indices(a.value, names) for a, names in pairs]
        return elements, tuple(axes), any(a.is_open for a in arrays)

    def each(self, make: Callable[..., Expr], *values: Any, node: Node = None) -> Array:
        """A function of the elements."""
        elements, axes, is_open = self.broadcast(
            [self.array(v, node) for v in values], node
        )
        return Array(make(*elements), axes, is_open)

    def apply(self, name: str, *values: Any, node: Node = None) -> Array:
        """A primitive of the table."""

        def make(*elements: Expr) -> Expr:
            return Apply(name, tuple(map(as_number, elements)))

        return self.each(make, *values, node=node)

    def arithmetic(self, op: str, a: Any, b: Any, node: Node = None) -> Array:
        if op == "floordiv":
            return self.apply(FLOOR, self.arithmetic("div", a, b, node), node=node)
        return self.each(lambda x, y: arithmetic(op, x, y), a, b, node=node)

    def compare(self, op: str, a: Any, b: Any, node: Node = None) -> Array:
        return self.each(
            lambda x, y: Apply(op, (as_number(x), as_number(y))), a, b, node=node
        )

    def logic(self, op: str, a: Any, b: Any, node: Node = None) -> Array:
        return self.each(
            lambda x, y: Apply(op, (as_condition(x), as_condition(y))), a, b, node=node
        )

    def negation(self, a: Any, node: Node = None) -> Array:
        return self.each(lambda x: Apply("not", (as_condition(x),)), a, node=node)

    def where(self, condition: Any, a: Any, b: Any, node: Node = None) -> Array:
        return self.each(choice, condition, a, b, node=node)

    def like(self, value: Any, shape: Array, node: Node = None) -> Array:
        """A value in the shape of an array."""
        return self.each(lambda x, _: x, value, shape, node=node)

    def total(self, values: Sequence[Any], node: Node = None) -> Any:
        found = values[0]
        for other in values[1:]:
            found = self.arithmetic("add", found, other, node)
        return found

    # --- axes -------------------------------------------------------------------------

    def place(self, array: Array, axis: Any, node: Node = None) -> int:
        """The place of an axis that is counted from the front or the end."""
        rank = len(array.axes)
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise CannotLift("shape", "an axis that is not a literal", node)
        if array.is_open and (axis >= 0 or axis < -rank):
            raise CannotLift(
                "shape",
                "an axis counted from the front of an array of unknown rank",
                node,
            )
        if not -rank <= axis < rank:
            raise CannotLift("shape", f"axis {axis} of an array of {rank} axes", node)
        return axis % rank

    def places(self, array: Array, axes: Any, node: Node = None) -> list[int]:
        if axes is None:
            if array.is_open:
                raise CannotLift(
                    "shape",
                    "a reduction over all axes of an array of unknown rank",
                    node,
                )
            return list(range(len(array.axes)))
        several = axes if isinstance(axes, tuple | list | range) else (axes,)
        return [self.place(array, axis, node) for axis in several]

    def reduce(
        self,
        op: str,
        value: Any,
        axes: Any = None,
        keep: bool = False,
        node: Node = None,
    ) -> Array:
        array = self.array(value, node)
        places = self.places(array, axes, node)
        over = [i for k in places if (i := array.axes[k]) is not None]
        body = as_number(array.value)
        if over:
            new = tuple(Index(i.extent) for i in over)
            pairs = zip(over, new, strict=True)
            inner = with_indices(body, {i.name: j.value for i, j in pairs})
            body = reduction(op, new, inner)
        kept = [
            None if k in places else i
            for k, i in enumerate(array.axes)
            if keep or k not in places
        ]
        return Array(body, tuple(kept), array.is_open)

    def matmul(self, a: Any, b: Any, node: Node = None) -> Array:
        left, right = self.array(a, node), self.array(b, node)
        if not left.axes or not right.axes:
            raise CannotLift("shape", "a matrix product of arrays without axes", node)
        if left.is_open and len(right.axes) > 2:
            raise CannotLift(
                "shape", "a matrix product of arrays of unknown rank", node
            )
        i, j = left.axes[-1], right.axes[-2 if len(right.axes) > 1 else -1]
        if i is None or j is None:
            raise CannotLift("shape", "a matrix product over an axis of size 1", node)
        self.unify(i.extent, j.extent, node)
        k = Index(i.extent)
        names = {n.name: Index(n.extent) for n in left.axes[:-1] if n is not None}
        rows = [names[n.name] if n is not None else None for n in left.axes[:-1]]
        changed: dict[str, Expr] = {n: m.value for n, m in names.items()}
        changed[i.name] = k.value
        x = with_indices(left.value, changed)
        if len(right.axes) == 1:
            only: dict[str, Expr] = {j.name: k.value}
            y = with_indices(right.value, only)
            return Array(
                reduction("sum", (k,), arithmetic("mul", x, y)),
                tuple(rows),
                left.is_open,
            )
        last = right.axes[-1]
        column = None if last is None else Index(last.extent)
        turned: dict[str, Expr] = {j.name: k.value}
        if last is not None and column is not None:
            turned[last.name] = column.value
        one = Array(x, (*rows, None), left.is_open)
        middle = (None,) if len(left.axes) > 1 else ()
        beside = (*right.axes[:-2], *middle, column)
        other = Array(with_indices(right.value, turned), beside, right.is_open)
        product = self.arithmetic("mul", one, other, node)
        return Array(
            reduction("sum", (k,), product.value), product.axes, product.is_open
        )

    def permute(self, value: Any, order: Sequence[Any], node: Node = None) -> Array:
        array = self.array(value, node)
        if len(order) != len(array.axes) or array.is_open:
            raise CannotLift(
                "shape", "a transposition of an array of another rank", node
            )
        places = [self.place(array, k, node) for k in order]
        return view(array, tuple(array.axes[k] for k in places))

    def swap(self, value: Any, a: Any, b: Any, node: Node = None) -> Array:
        array = self.array(value, node)
        a, b = self.place(array, a, node), self.place(array, b, node)
        axes = list(array.axes)
        axes[a], axes[b] = axes[b], axes[a]
        return view(array, tuple(axes))

    def with_axis(self, value: Any, place: Any, node: Node = None) -> Array:
        """With a new axis of size 1."""
        array = self.array(value, node)
        rank = len(array.axes) + 1
        if not isinstance(place, int) or isinstance(place, bool):
            raise CannotLift("shape", "an axis that is not a literal", node)
        if (array.is_open and place >= 0) or not -rank <= place < rank:
            raise CannotLift("shape", "a new axis of an array of unknown rank", node)
        axes = list(array.axes)
        axes.insert(place % rank, None)
        return view(array, tuple(axes))

    def without_axis(self, value: Any, place: Any, node: Node = None) -> Array:
        array = self.array(value, node)
        if place is None:
            raise CannotLift("reshape", "`squeeze` of all axes", node)
        k = self.place(array, place, node)
        if array.axes[k] is not None:
            raise CannotLift(
                "reshape", "`squeeze` of an axis that is not known to be 1", node
            )
        return view(array, array.axes[:k] + array.axes[k + 1 :])

    def size(self, array: Array, axis: Any, node: Node = None) -> Array | int:
        index = array.axes[self.place(array, axis, node)]
        return 1 if index is None else Array(size_of(index))

    def count(self, array: Array, axes: Any = None, node: Node = None) -> Any:
        """The number of elements, or of those along some axes."""
        found: Any = 1
        for k in self.places(array, axes, node):
            index = array.axes[k]
            if index is not None:
                found = self.arithmetic("mul", found, Array(size_of(index)), node)
        return found


def view(array: Array, axes: Axes) -> Array:
    """Other axes of the same elements."""
    made = Array(array.value, axes, array.is_open)
    made.is_view = array.is_view = True
    return made
