"""Where indices become axes: alignment of array values over named indices.

A :class:`Value` is an array and the index that each of its core axes stands for. To
combine values they are aligned to a common *frame*, an order of indices: axes are
brought into that order and an index that a value does not have becomes an axis of size
1 (left out in front of a value without batch axes, where broadcasting supplies it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Name, Op, ToFloat, Where
from gradspec.plan.ranked import Arange, Expand, Gather, Permute, Pick, Reduce, Spread
from gradspec.plan.translate import Types, is_scalar


@dataclass(frozen=True, slots=True)
class Value:
    """An array, the index of each core axis, and whether it may have batch axes.

    ``is_number`` tells a Python number, which has no axes and needs none.
    """

    expr: Expr
    axes: tuple[str, ...] = ()
    batched: bool = False
    is_number: bool = False


def size_of(axis: str | int) -> Expr:
    """The size of an axis as a number."""
    return Name(axis) if isinstance(axis, str) else Literal(Fraction(axis))


# --- frames ----------------------------------------------------------------------------


def frame(values: Sequence[Value], preferred: Sequence[str]) -> tuple[str, ...]:
    """An order of all indices of the values in which the fewest need transposing.

    ``preferred`` is the order of the assigned indices, then the bound ones.
    """
    every = tuple(dict.fromkeys(axis for value in values for axis in value.axes))
    rank = {axis: position for position, axis in enumerate(preferred)}
    wished = tuple(sorted(every, key=lambda axis: rank.get(axis, len(rank))))
    merged = (_merged(value.axes, wished) for value in values)
    return min((wished, *merged), key=lambda order: _transposed(values, order))


def _merged(base: tuple[str, ...], wished: tuple[str, ...]) -> tuple[str, ...]:
    """``base`` as it is, and each other index after those that it is wished after."""
    found = list(base)
    for position, axis in enumerate(wished):
        if axis not in base:
            before = [found.index(a) for a in wished[:position]]
            found.insert(max(before, default=-1) + 1, axis)
    return tuple(found)


def _transposed(values: Iterable[Value], order: tuple[str, ...]) -> int:
    return sum(value.axes != _in_order(value.axes, order) for value in values)


def _in_order(axes: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in order if axis in axes)


def aligned(value: Value, order: tuple[str, ...]) -> Expr:
    """The array over the frame: it broadcasts with others over the same frame."""
    if value.is_number:
        return value.expr
    ordered = _in_order(value.axes, order)
    expr = permuted(value.expr, value.axes, ordered)
    missing = [p for p, axis in enumerate(order) if axis not in value.axes]
    if not value.batched:
        held = [p for p, axis in enumerate(order) if axis in value.axes]
        first = held[0] if held else len(order)
        missing = [p for p in missing if p > first]
    return expanded(expr, tuple(p - len(order) for p in missing))


def permuted(expr: Expr, axes: tuple[str, ...], order: tuple[str, ...]) -> Expr:
    """The core axes in another order; those in front that stay are left alone."""
    if axes == order:
        return expr
    first = next(p for p, (a, b) in enumerate(zip(axes, order, strict=True)) if a != b)
    axes, order = axes[first:], order[first:]
    moves = tuple(axes.index(axis) - len(axes) for axis in order)
    if isinstance(expr, Permute) and len(expr.order) == len(moves):
        moves, expr = tuple(expr.order[m] for m in moves), expr.arg
        if moves == tuple(range(-len(moves), 0)):
            return expr
    return Permute(expr, moves)


def spread(value: Value, order: tuple[str, ...], sizes: Sequence[Expr]) -> Expr:
    """The array with all axes of the frame in full."""
    expr = value.expr if value.is_number else aligned(value, order)
    if not value.is_number and not value.batched:
        held = [p for p, axis in enumerate(order) if axis in value.axes]
        front = range(held[0] if held else len(order))
        expr = expanded(expr, tuple(p - len(order) for p in front))
    for position, (axis, size) in enumerate(zip(order, sizes, strict=True)):
        if axis not in value.axes:
            expr = Spread(expr, position - len(order), size)
    return expr


# --- new axes of size 1 -----------------------------------------------------------------


def expanded(expr: Expr, axes: tuple[int, ...]) -> Expr:
    """``Expand``, carried down to where it costs nothing: a reduction keeps its axes.

    Names of numbers have no axes; callers expand only what contains an array.
    """
    if not axes:
        return expr
    match expr:
        case Reduce(keep=False, axes=gone) if gone == axes:
            return Reduce(expr.op, expr.arg, gone, True)
        case Pick(arg=Gather() as whole, axis=axis) if (axis,) == axes:
            return whole  # a gathered axis of size 1 that was left out
        case Expand(arg=arg, axes=inner):
            return Expand(arg, _composed(inner, axes))
        case _:
            return Expand(expr, axes)


def pushed(expr: Expr, axes: tuple[int, ...], types: Types) -> Expr:
    """The same, also through elementwise operations on values of fewer axes."""

    def part(value: Expr) -> Expr:
        is_number = is_scalar(value, types) and not isinstance(value, Arange)
        return value if is_number else pushed(value, axes, types)

    if axes != tuple(range(-len(axes), 0)):
        return expanded(expr, axes)  # an operand may lack the axes behind the new ones
    match expr:
        case Op(primitive=op, args=args) if args:
            return Op(op, tuple(part(arg) for arg in args))
        case Where(condition=condition, then=then, other=other):
            return Where(part(condition), part(then), part(other))
        case ToFloat(arg=arg):
            return ToFloat(part(arg))
        case _:
            return expanded(expr, axes)


def _composed(inner: tuple[int, ...], outer: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of both in the result of expanding twice."""
    depth = max(-min(inner), -min(outer)) + len(inner) + len(outer)
    held = [p for p in range(-depth, 0) if p not in outer]
    moved = [held[p] for p in inner]
    return tuple(sorted({*outer, *moved}))
