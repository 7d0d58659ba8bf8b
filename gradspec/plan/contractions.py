"""Contractions: the sum of a product, two factors at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations

from gradspec.plan.arrays import Einsum
from gradspec.plan.axes import Value
from gradspec.plan.translation import Translation

BATCH = "..."
Bounds = tuple[str, ...]


def axes_of(value: Value) -> set[str]:
    """The indices of a value, ``BATCH`` among them where it has batch axes."""
    return {*value.axes, BATCH} if value.batched else set(value.axes)


def taken_in(
    t: Translation, inner: list[Value], above: list[Value], below: list[Value]
) -> list[Value]:
    """The values under a sum, with factors without summed indices multiplied in."""
    if len({frozenset(axes_of(value)) for value in inner}) == 1:
        inner = [reduce(lambda a, b: t.combine("mul", a, b), inner)]
    needed = set[str]().union(*map(axes_of, [*above, *below]))
    at = max(
        range(len(inner)),
        key=lambda k: (needed <= axes_of(inner[k]), -len(axes_of(inner[k]))),
    )
    value = reduce(lambda a, b: t.combine("mul", a, b), above, inner[at])
    value = reduce(lambda a, b: t.combine("div", a, b), below, value)
    return [*inner[:at], value, *inner[at + 1 :]]


def contract(t: Translation, values: list[Value], bounds: Bounds) -> list[Value]:
    """The sum of the product, as one value; no value for an empty product."""
    while len(values) > 1:
        first, second = min(
            combinations(range(len(values)), 2),
            key=lambda pair: _cost(values, pair, bounds),
        )
        rest = [v for p, v in enumerate(values) if p not in (first, second)]
        gone = _summed_here(values[first], values[second], rest, bounds)
        values = [
            *rest[:first],
            _pair(t, values[first], values[second], gone),
            *rest[first:],
        ]
    return [sum_of(t, value, bounds) for value in values]


def _summed_here(
    left: Value, right: Value, rest: Sequence[Value], bounds: Bounds
) -> tuple[str, ...]:
    """The summed indices that occur in this pair only."""
    others = {axis for value in rest for axis in axes_of(value)}
    here = axes_of(left) | axes_of(right)
    return tuple(b for b in bounds if b in here and b not in others)


def _cost(
    values: list[Value], pair: tuple[int, int], bounds: Bounds
) -> tuple[int, bool, int]:
    """The result's rank, True if nothing is summed, and the rank of the work."""
    left, right = values[pair[0]], values[pair[1]]
    rest = [v for p, v in enumerate(values) if p not in pair]
    every = axes_of(left) | axes_of(right)
    gone = _summed_here(left, right, rest, bounds)
    return len(every) - len(gone), not gone, len(every)


def _pair(t: Translation, left: Value, right: Value, gone: Bounds) -> Value:
    alone = (axes_of(left) ^ axes_of(right)) & set(gone)
    same = axes_of(left) == axes_of(right)
    within = axes_of(left) <= axes_of(right) or axes_of(right) <= axes_of(left)
    summed = tuple(g for g in gone if g not in alone)
    first = tuple(g for g in gone if g in alone)
    left, right = sum_of(t, left, first), sum_of(t, right, first)
    if same or not summed or (within and summed == (BATCH,)):
        return sum_of(t, t.combine("mul", left, right), summed)
    return _einsum(t, left, right, summed)


def sum_of(t: Translation, value: Value, bounds: Bounds) -> Value:
    """The sum of one value over the bounds that it has."""
    held = tuple(b for b in bounds if b in value.axes)
    if held:
        value = t.over("sum", held, value)
    if BATCH in bounds and value.batched:
        words = _words(value.axes)
        word = "".join(words[axis] for axis in value.axes)
        expr = Einsum((t.floating(value.expr),), (f"...{word}",), word)
        value = Value(expr, value.axes, False)
    return value


def _einsum(t: Translation, left: Value, right: Value, gone: Bounds) -> Value:
    """A contraction; one that is held already, if there is one."""
    frames = t.frames((left, right))
    orders = [tuple(a for a in order if a not in gone) for order in frames]
    made = [_einsum_in_order(t, left, right, gone, order) for order in orders]
    return next((m for m in made if m.expr in t.held), made[0])


def _einsum_in_order(
    t: Translation, left: Value, right: Value, gone: Bounds, order: tuple[str, ...]
) -> Value:
    batched = (left.batched or right.batched) and BATCH not in gone
    words = _words((*order, *left.axes, *right.axes))

    def word(axes: Sequence[str], is_batched: bool) -> str:
        return "..." * is_batched + "".join(words[axis] for axis in axes)

    expr = Einsum(
        (t.floating(left.expr), t.floating(right.expr)),
        (word(left.axes, left.batched), word(right.axes, right.batched)),
        word(order, batched),
    )
    return Value(expr, order, batched)


def _words(axes: Sequence[str]) -> dict[str, str]:
    """A letter for each index, in order of appearance: equal contractions have equal
    subscripts, whatever their indices are called.
    """
    distinct = dict.fromkeys(axes)
    return dict(zip(distinct, "ijklmnopqrstuvwxyzabcdefgh", strict=False))
