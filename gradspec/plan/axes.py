"""Alignment of array values over named indices: indices become axes.

A :class:`Value` is an array and the index that each of its core axes stands for. To
combine values they are aligned to a common *frame*, an order of indices: axes are
brought into that order and an index that a value does not have becomes an axis of size
1 (left out in front of a value without batch axes, where broadcasting supplies it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.products import linear
from gradspec.plan.arrays import (
    Diagonal,
    Expand,
    Expr,
    Gather,
    Literal,
    Name,
    Permute,
    Pick,
    Spread,
    Take,
    Window,
    Windows,
)


@dataclass(frozen=True, slots=True)
class Value:
    """An array, the index of each core axis, and whether it may have batch axes.

    ``is_number`` marks a Python number, which has no axes and needs none.
    """

    expr: Expr
    axes: tuple[str, ...] = ()
    batched: bool = False
    is_number: bool = False


def size_of(axis: str | int) -> Expr:
    """The size of an axis as a number."""
    return Name(axis) if isinstance(axis, str) else Literal(Fraction(axis))


# --- frames ----------------------------------------------------------------------------


def frames(values: Sequence[Value], preferred: Sequence[str]) -> list[tuple[str, ...]]:
    """The orders of all indices of the values that need the fewest transpositions, the
    best first.

    ``preferred`` is the order of the assigned indices, then the bound ones.
    """
    every = tuple(dict.fromkeys(axis for value in values for axis in value.axes))
    rank = {axis: position for position, axis in enumerate(preferred)}
    wished = tuple(sorted(every, key=lambda axis: rank.get(axis, len(rank))))
    wishes = wished, every, every[::-1]
    merged = [_merge(v.axes, wish) for wish in wishes for v in values]
    found = dict.fromkeys((wished, *merged))
    fewest = min(_transposition_count(values, order) for order in found)
    return [order for order in found if _transposition_count(values, order) == fewest]


def _merge(base: tuple[str, ...], wished: tuple[str, ...]) -> tuple[str, ...]:
    """``base`` unchanged, with each other index after those that precede it in
    ``wished``.
    """
    found = list(base)
    for position, axis in enumerate(wished):
        if axis not in base:
            before = [found.index(a) for a in wished[:position]]
            found.insert(max(before, default=-1) + 1, axis)
    return tuple(found)


def _transposition_count(values: Iterable[Value], order: tuple[str, ...]) -> int:
    return sum(value.axes != _in_order(value.axes, order) for value in values)


def _in_order(axes: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(axis for axis in order if axis in axes)


def align(value: Value, order: tuple[str, ...]) -> Expr:
    """The array over the frame: it broadcasts with others over the same frame."""
    if value.is_number:
        return value.expr
    ordered = _in_order(value.axes, order)
    expr = permute(value.expr, value.axes, ordered)
    missing = [p for p, axis in enumerate(order) if axis not in value.axes]
    if not value.batched:
        held = [p for p, axis in enumerate(order) if axis in value.axes]
        first = held[0] if held else len(order)
        missing = [p for p in missing if p > first]
    return expand_axes(expr, tuple(p - len(order) for p in missing))


def permute(expr: Expr, axes: tuple[str, ...], order: tuple[str, ...]) -> Expr:
    """The core axes in another order; leading axes that stay are left alone."""
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
    """The array with all axes of the frame at full size."""
    expr = value.expr if value.is_number else align(value, order)
    if not value.is_number and not value.batched:
        held = [p for p, axis in enumerate(order) if axis in value.axes]
        front = range(held[0] if held else len(order))
        expr = expand_axes(expr, tuple(p - len(order) for p in front))
    for position, (axis, size) in enumerate(zip(order, sizes, strict=True)):
        if axis not in value.axes:
            expr = Spread(expr, position - len(order), size)
    return expr


# --- new axes of size 1 -----------------------------------------------------------------


def expand_axes(expr: Expr, axes: tuple[int, ...]) -> Expr:
    """``Expand``, except of what has lost just these axes. Names of numbers have no
    axes; callers expand only what contains an array.
    """
    if not axes:
        return expr
    match expr:
        case Pick(
            arg=Gather(index=Expand(axes=single), axis=own) as whole, axis=axis
        ) if axis == own and (axis,) == axes and axis in single:
            return whole  # a gathered axis of size 1 that was left out
        case Expand(arg=arg, axes=inner):
            return Expand(arg, _compose(inner, axes))
        case _:
            return Expand(expr, axes)


def _compose(inner: tuple[int, ...], outer: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of both sets of axes in the result of expanding twice."""
    depth = max(-min(inner), -min(outer)) + len(inner) + len(outer)
    held = [p for p in range(-depth, 0) if p not in outer]
    moved = [held[p] for p in inner]
    return tuple(sorted({*outer, *moved}))


# --- references -----------------------------------------------------------------------
#
# ``x[i, j + 1, t]``: which array operations an indexed reference becomes.


ZERO, ONE = Literal(Fraction(0)), Literal(Fraction(1))


@dataclass(frozen=True, slots=True)
class Position:
    """One axis position: the ``index`` expression, and its integer ``value``."""

    index: ir.Expr
    value: Value


def index_array(
    array: Expr,
    batched: bool,
    positions: tuple[Position, ...],
    sizes: Mapping[str, Expr],
    axis_sizes: tuple[Expr, ...],
    guarded: bool,
) -> Value:
    """The reference as a value over the indices in it.

    ``sizes`` are those of the indices, ``axis_sizes`` those of the array's axes. Where
    ``guarded``, a choice excludes elements outside the axis.
    """
    expr, labels = array, [str(number) for number in range(len(positions))]
    for number in sorted(range(len(positions)), key=lambda n: _is_taken(positions[n])):
        position = positions[number]
        axis = labels.index(str(number)) - len(labels)
        window = _window(position.index, labels)
        if window is not None:
            names, start, backward = window
            sized = [sizes[name] for name in names]
            if len(names) == 2:
                rows, columns = sized
                expr = Windows(expr, axis, start, rows, columns, backward, guarded)
            elif start != ZERO or sized[0] != axis_sizes[number]:
                expr = Window(expr, axis, start, sized[0], guarded)
            at = len(labels) + axis
            labels[at : at + 1] = names
        elif position.value.is_number:
            outside = guarded and not _is_inside(position.index, axis_sizes[number])
            expr = _pick(expr, axis, position.value.expr, outside)
            del labels[axis]
        else:
            expr, labels, batched = _take(
                expr, batched, labels, axis, position.value, guarded
            )
    return Value(*_without_repeats(expr, labels), batched)


def _is_taken(position: Position) -> bool:
    """True of an array of positions, which comes last: some of its axes may be indices
    of the reference."""
    return not position.value.is_number and _window(position.index, ()) is None


def are_windows(indices: Sequence[ir.Expr]) -> bool:
    """True if a reference with these index expressions becomes windows of its array,
    which are 0 beyond the ends of an axis. Elements taken by arrays of positions are
    not 0 there.
    """
    seen: list[str] = []
    for index in indices:
        if _window(index, seen) is None:
            return False
        seen += [n.name for n in walk.nodes(index) if isinstance(n, ir.Idx)]
    return len(seen) == len(set(seen))


def _window(
    index: ir.Expr, labels: Sequence[str]
) -> tuple[list[str], Expr, bool] | None:
    """``i``, ``i + j`` and ``i - j``, perhaps plus a number: the indices, the start, and
    True if the second runs backward. Of two, none is among the ``labels``.
    """
    terms = dict(linear(index))
    start = Literal(terms.pop(ir.ONE, Fraction(0)))
    names = [term.name for term in terms if isinstance(term, ir.Idx)]
    signs = [*terms.values()]
    if len(names) < len(terms) or signs not in ([1], [1, 1], [1, -1]):
        return None
    if len(names) == 2 and not {*names}.isdisjoint(labels):
        return None
    return names, start, signs[-1] < 0


def _is_inside(index: ir.Expr, size: Expr) -> bool:
    """True if a number is a position of an axis of known size."""
    match index, size:
        case ir.Const(value=at), Literal(value=count):
            return 0 <= at < count
        case _:
            return False


def _pick(expr: Expr, axis: int, at: Expr, guarded: bool) -> Expr:
    if guarded:
        return Pick(Window(expr, axis, at, ONE, True), axis, ZERO)
    return Pick(expr, axis, at)


def _take(
    expr: Expr,
    batched: bool,
    labels: list[str],
    axis: int,
    index: Value,
    guarded: bool,
) -> tuple[Expr, list[str], bool]:
    """Elements at integer positions; the indices of the position array replace the
    axis.
    """
    others = [label for p, label in enumerate(labels) if p != len(labels) + axis]
    if not index.batched and not set(index.axes) & set(others):
        at = len(labels) + axis
        new = [*labels[:at], *index.axes, *labels[at + 1 :]]
        return Take(expr, index.expr, axis, guarded), new, batched
    if not batched and not set(index.axes) & set(others):
        label = labels[axis]
        first = permute(expr, tuple(labels), (label, *others))
        taken = Take(first, index.expr, -len(labels), guarded)
        return taken, [*index.axes, *others], True
    return _gather(expr, batched, labels, axis, index, guarded)


def _gather(
    expr: Expr,
    batched: bool,
    labels: list[str],
    axis: int,
    index: Value,
    guarded: bool,
) -> tuple[Expr, list[str], bool]:
    """The last index that the array lacks replaces the axis; the others become axes of
    size 1 in front of it.
    """
    at = len(labels) + axis
    extra = [a for a in index.axes if a not in labels]
    new = [*labels[:at], *extra[:-1], labels[at], *labels[at + 1 :]]
    depth = len(new)
    fresh = tuple(new.index(a) - depth for a in extra[:-1])
    expr = Expand(expr, fresh) if fresh else expr
    slot = new.index(labels[at])
    order = tuple(extra[-1] if extra and p == slot else a for p, a in enumerate(new))
    # An axis of the array that the index lacks has size 1 in the index.
    whole = Value(index.expr, index.axes, True)
    gathered: Expr = Gather(expr, align(whole, order), slot - depth, guarded)
    if extra:
        return gathered, list(order), batched or index.batched
    kept = [a for p, a in enumerate(new) if p != slot]
    return Pick(gathered, slot - depth, ZERO), kept, batched or index.batched


def _without_repeats(expr: Expr, labels: list[str]) -> tuple[Expr, tuple[str, ...]]:
    """``a[i, i]`` is a diagonal: each repeated index becomes one axis, the last."""
    while repeated := next((a for a in labels if labels.count(a) > 1), None):
        first = labels.index(repeated)
        second = labels.index(repeated, first + 1)
        depth = len(labels)
        expr = Diagonal(expr, first - depth, second - depth)
        labels = [a for p, a in enumerate(labels) if p not in (first, second)]
        labels.append(repeated)
    return expr, tuple(labels)
