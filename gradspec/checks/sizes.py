"""Sizes at which a condition on indices and sizes first has another truth.

``n <= 4`` and ``i < 7`` hold at all small sizes. So for each pair of sides that a
comparison, a ``min`` or a rounding compares, if they consist of indices, sizes and
numbers alone, sizes near their constants are looked through for one at which their order
is one that it is at no small size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product
from math import isqrt

from gradspec.ir.elements import Axes
from gradspec.ir.expr import (
    ONE,
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
from gradspec.ir.rule import Declared, Override, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import Sizes, axis_names, small
from gradspec.ir.walk import nodes, transform
from gradspec.symbolic.breaks import STEPS, borders_of

_MOST = 4000
"""Combinations of sizes and indices at which one pair is compared."""

_ALL = 12
"""Sizes up to which every one is looked at, with every index."""

_LARGEST = 1_000_000
_USUAL = 2

_Pair = tuple[Expr, Expr]
_Env = Mapping[str, str | int]
"""The axis of each index."""


@lru_cache(maxsize=64)
def further_sizes(rule: Rule) -> tuple[Sizes, ...]:
    """Sizes of a few axes at which the rule may be another than at small ones."""
    largest = small(rule).largest
    found: dict[tuple[tuple[str, int], ...], Sizes] = {}
    for pair, env in dict.fromkeys(_pairs(rule)):
        for sizes in _new_orders(pair, dict(env), largest):
            found[tuple(sorted(sizes.items()))] = sizes
    return tuple(found.values())


def full_sizes(rule: Rule, given: Sizes, known: Iterable[Sizes]) -> Iterator[Sizes]:
    """Sizes of all axes, those of a few given: the others of size 2, or as in ``known``
    sizes at which the rule is defined, or one of them larger than what is given.
    """
    axes = axis_names(rule)
    usual = dict.fromkeys(axes, _USUAL)
    larger = max(given.values()) + _USUAL
    for others in (usual, *known, *({**usual, axis: larger} for axis in axes)):
        yield {axis: given.get(axis, others[axis]) for axis in axes}


def _pairs(rule: Rule) -> Iterator[tuple[_Pair, tuple[tuple[str, str | int], ...]]]:
    """The sides that are compared, and the axes of their indices."""
    statics = {i.name: i.default for i in rule.static_inputs if i.default is not None}
    for value, indices, axes in _values(rule):
        bound = {
            b.index: b.axis
            for node in nodes(value)
            if isinstance(node, Reduce)
            for b in node.bounds
        }
        env: _Env = dict(zip(indices, axes, strict=True)) | bound
        for node in nodes(value):
            for pair in _compared(node):
                left, right = (_with_statics(side, statics) for side in pair)
                inner = [*nodes(left), *nodes(right)]
                if any(isinstance(n, Ref | Reduce) for n in inner):
                    continue
                used = {n.name for n in inner if isinstance(n, Idx)}
                used_sizes = any(isinstance(n, Size) for n in inner)
                if (used or used_sizes) and used <= env.keys():
                    yield (left, right), tuple((i, env[i]) for i in sorted(used))


def _values(rule: Rule) -> Iterator[tuple[Expr, tuple[str, ...], Axes]]:
    for let in (*rule.forward, *rule.backward_locals):
        yield let.value, let.indices, let.axes
    for variable, entry in rule.entries:
        if isinstance(entry, Declared | Override):
            yield entry.value, entry.indices, variable.shape.axes


def _compared(node: Expr) -> Iterator[_Pair]:
    match node:
        case Apply(op="mod", args=(left, right)):
            yield left, right
        case Apply(op=op, args=(arg,)) if op in STEPS:
            yield arg, Const(STEPS[op])
        case Select(condition=condition) | Reduce(where=condition) if condition:
            yield Select(condition, ONE, ZERO), Const(Fraction(1, 2))
        case _:
            yield from borders_of(node)


def _with_statics(expr: Expr, statics: Mapping[str, object]) -> Expr:
    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in statics:
            return const(statics[node.name])  # type: ignore[arg-type]
        return fold(node)

    return transform(expr, visit)


def _new_orders(pair: _Pair, env: _Env, largest: int) -> Iterator[dict[str, int]]:
    """The smallest sizes at which the sides are in an order that is new."""
    both = [*nodes(pair[0]), *nodes(pair[1])]
    axes = [axis for axis in env.values() if isinstance(axis, str)]
    axes += [node.axis for node in both if isinstance(node, Size)]
    names = tuple(dict.fromkeys(axes))
    numbers = {int(abs(n.value)) for n in both if isinstance(n, Const)}
    if not names or max(numbers, default=0) < largest - 1:
        return
    candidates = _candidates(numbers)
    combinations = sorted(
        product(candidates, repeat=len(names)), key=lambda c: (max(c), c)
    )
    seen: set[int] = set()
    trials = 0
    for chosen in combinations:
        sizes = dict(zip(names, chosen, strict=True))
        orders: set[int] = set()
        for order in islice(_orders(pair, env, sizes, numbers), _MOST - trials):
            trials += 1
            orders.add(order)
        if max(chosen) > largest and not orders <= seen:
            yield sizes
        seen |= orders
        if trials >= _MOST or len(seen) == 3:
            return


def _candidates(numbers: set[int]) -> list[int]:
    found = set(range(1, _ALL + 1))
    for number in (n for n in numbers if n <= _LARGEST):
        around = {number, isqrt(number), *(number // k for k in numbers if k > 1)}
        found |= {near + step for near in around for step in (-1, 0, 1, 2)}
    return sorted(n for n in found if n > 0)


def _orders(
    pair: _Pair, env: _Env, sizes: Mapping[str, int], numbers: set[int]
) -> Iterator[int]:
    """The signs of the difference of the sides, for indices that may matter."""
    pools = []
    for axis in env.values():
        size = axis if isinstance(axis, int) else sizes[axis]
        near = {n + step for n in numbers for step in (-2, -1, 0, 1, 2)}
        ends = {0, 1, 2, size // 2, size - 3, size - 2, size - 1}
        every = range(size) if size <= _ALL else sorted(near | ends)
        pools.append([k for k in every if 0 <= k < size])
    for chosen in product(*pools):
        given = dict(zip(env, chosen, strict=True))
        gap = _value(Apply("sub", pair), given, sizes)
        if isinstance(gap, Const):
            yield (gap.value > 0) - (gap.value < 0)


def _value(expr: Expr, given: Mapping[str, int], sizes: Mapping[str, int]) -> Expr:
    def visit(node: Expr) -> Expr:
        match node:
            case Idx(name=name) if name in given:
                return const(given[name])
            case Size(axis=axis) if axis in sizes:
                return const(sizes[axis])
            case _:
                return fold(node)

    return transform(expr, visit)
