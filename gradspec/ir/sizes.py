"""Sizes at which a rule is unrolled, and values of the integers that serve as indices.

Small sizes are taken whole: every combination of 1 to 3 for every axis, and every value
of the integers that serve as indices. A rule with many axes has too many of them, and
is then taken at 1 and 2. Larger sizes are one combination, with a size of its own for
every axis, so that axes which were confused at equal sizes are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import TypeAlias

from gradspec.ir.elements import Nested, OutOfRange, extent
from gradspec.ir.expr import Expr, Idx, Ref, Size, const
from gradspec.ir.rule import Input, Rule
from gradspec.ir.tidy import decide, fold
from gradspec.ir.unroll import Unrolled, axis_names, count, index_inputs, unroll, work
from gradspec.ir.walk import nodes, transform

_COMBINATIONS = 64
_FILLINGS = 27
_ELEMENTS = 60
MOST_ELEMENTS = 100
"""Elements beyond which unrolling them all takes more than seconds."""

_WORK = 20_000
"""Nodes visited beyond which the same holds: nested sums."""

_LARGER = (4, 5, 3, 2, 6)
_ASSUMED = (8, 16, 32)
"""Sizes used where assumptions exclude smaller ones."""

Sizes: TypeAlias = "Mapping[str, int]"


@dataclass(frozen=True, slots=True)
class Gap:
    """Sizes, and integers that serve as indices, at which an element does not exist."""

    sizes: Sizes
    integers: Mapping[str, Nested]
    fault: OutOfRange


@dataclass(frozen=True, slots=True)
class Small:
    """Combinations of sizes from 1 to ``largest``, the small ones first. ``is_whole``:
    all of them, with every value of the integers that serve as indices.
    """

    combinations: tuple[Sizes, ...]
    largest: int
    is_whole: bool


def small(rule: Rule) -> Small:
    """As many combinations of small sizes as are unrolled in reasonable time."""
    axes = axis_names(rule)
    chosen = next((n for n in (3, 2) if _is_feasible(rule, axes, n)), None)
    if chosen is None and 2 ** len(axes) > _COMBINATIONS:
        return Small(tuple(_sparse(axes)), 1, False)
    largest = chosen or 2
    is_whole = chosen is not None and not _has_shift(rule)
    return Small(tuple(_combinations(axes, largest)), largest, is_whole)


def larger(rule: Rule) -> Iterator[Sizes]:
    """Larger combinations of sizes in order of preference."""
    axes = axis_names(rule)
    for start in range(len(_LARGER)) if axes else ():
        picked = [_LARGER[(start + k) % len(_LARGER)] for k in range(len(axes))]
        sizes = dict(zip(axes, picked, strict=True))
        if count(rule, sizes) <= _ELEMENTS:
            yield sizes
    yield from (dict.fromkeys(axes, size) for size in _ASSUMED if axes)


def at(rule: Rule, sizes: Sizes) -> tuple[tuple[Unrolled, ...], tuple[Gap, ...]]:
    """The rule at one combination, for each value of the index inputs, and the gaps."""
    if rule.is_elementwise:
        return (Unrolled(rule, {}),), ()
    if count(rule, sizes) > MOST_ELEMENTS or work(rule, sizes) > _WORK:
        return (), ()
    if _is_assumed_away(rule, sizes):
        return (), ()
    made: list[Unrolled] = []
    gaps: list[Gap] = []
    for integers in _fillings(rule, sizes):
        try:
            one = unroll(rule, sizes, integers)
        except OutOfRange as fault:
            gaps.append(Gap(sizes, integers, fault))
            continue
        if not any(decide(a.condition) is False for a in one.rule.assumes):
            made.append(one)
    return tuple(made), tuple(gaps)


def is_too_large(rule: Rule) -> bool:
    """True if fixed sizes give too many elements even if every named axis has one."""
    return count(rule, dict.fromkeys(axis_names(rule), 1)) > MOST_ELEMENTS


@lru_cache(maxsize=64)
def partial(rule: Rule) -> frozenset[str]:
    """The locals that lack elements at every size at which the rule is defined."""
    if not _may_be_partial(rule):
        return frozenset()
    every = [
        one.partial for sizes in small(rule).combinations for one in at(rule, sizes)[0]
    ]
    beyond = (at(rule, sizes)[0] for sizes in larger(rule))
    every += [one.partial for one in next(filter(None, beyond), ())[-2:]]
    return frozenset.intersection(*every) if every else frozenset()


def _may_be_partial(rule: Rule) -> bool:
    """True if an index of a local is not a plain index."""
    outputs = {output.name for output in rule.outputs}
    lets = (*rule.forward, *rule.backward_locals)
    return any(
        isinstance(node, Ref) and any(not isinstance(i, Idx) for i in node.indices)
        for let in lets
        if let.indices and let.name not in outputs
        for node in nodes(let.value)
    )


def _combinations(axes: tuple[str, ...], largest: int) -> Iterator[dict[str, int]]:
    """Every combination of sizes, the small ones first."""
    every = product(range(1, largest + 1), repeat=len(axes))
    for sizes in sorted(every, key=lambda sizes: (sum(sizes), sizes)):
        yield dict(zip(axes, sizes, strict=True))


def _sparse(axes: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Very many axes: no more than two of them have more than one element."""
    ones = dict.fromkeys(axes, 1)
    yield ones
    for axis in axes:
        yield ones | {axis: 2}
    for one, other in combinations(axes, 2):
        yield ones | {one: 2, other: 3}


def _is_feasible(rule: Rule, axes: tuple[str, ...], largest: int) -> bool:
    """True if there are few enough combinations, with every value of the indices."""
    if largest ** len(axes) > _COMBINATIONS:
        return False
    if count(rule, dict.fromkeys(axes, largest)) > MOST_ELEMENTS:
        return False
    numbers = [_number(rule, sizes) for sizes in _combinations(axes, largest)]
    return max(numbers) <= _FILLINGS and sum(numbers) <= _COMBINATIONS


def _is_assumed_away(rule: Rule, sizes: Sizes) -> bool:
    """True if an assumption about sizes alone (``n > 1``) does not hold."""

    def visit(node: Expr) -> Expr:
        return const(sizes[node.axis]) if isinstance(node, Size) else fold(node)

    plain = (a.condition for a in rule.assumes if not a.indices)
    return any(decide(transform(condition, visit)) is False for condition in plain)


# --- integers that serve as indices ------------------------------------------------------


def _number(rule: Rule, sizes: Sizes) -> int:
    """The number of combinations of values of the index inputs."""
    pointing = _pointing(rule, sizes)
    return prod(size**number for v, size, number in pointing if not v.kind.is_static)


def _fillings(rule: Rule, sizes: Sizes) -> Iterator[Mapping[str, Nested]]:
    """Values for the index inputs: all of them if they are few."""
    pointing = _pointing(rule, sizes)
    few = _number(rule, sizes) <= _FILLINGS
    pools = []
    for variable, size, number in pointing:
        if variable.kind.is_static:
            pools.append(_static(variable, size))
        elif few:
            pools.append(list(product(range(size), repeat=number)))
        else:
            pools.append(_some(size, number))
    together = product(*pools) if few else zip(*pools, strict=False)
    for chosen in together:
        yield {
            v.name: _nested(values, [extent(a, sizes) for a in v.shape.axes])
            for (v, _, _), values in zip(pointing, chosen, strict=True)
        }


def _pointing(rule: Rule, sizes: Sizes) -> list[tuple[Input, int, int]]:
    """Each index input, the size it points into, and how many numbers it has."""
    axes = index_inputs(rule)
    return [
        (
            variable,
            extent(axes[variable.name], sizes),
            prod(extent(axis, sizes) for axis in variable.shape.axes),
        )
        for variable in rule.inputs
        if variable.name in axes and variable.name not in sizes
    ]


def _static(variable: Input, size: int) -> list[tuple[int, ...]]:
    """Values of a shift: the author's own, or all that may fit."""
    if variable.default is not None:
        return [(int(variable.default),)]
    return [(value,) for value in range(size)]


def _some(size: int, number: int) -> list[tuple[int, ...]]:
    """Some index values: in order, all equal, reversed, and with repetitions."""
    order = [k % size for k in range(number)]
    return [
        tuple(order),
        (0,) * number,
        tuple(reversed(order)),
        tuple((2 * k + 1) % size for k in range(number)),
    ]


def _nested(values: tuple[int, ...], shape: list[int]) -> Nested:
    if not shape:
        return values[0]
    step = prod(shape[1:])
    rows = (values[k * step : (k + 1) * step] for k in range(shape[0]))
    return tuple(_nested(row, shape[1:]) for row in rows)


def _has_shift(rule: Rule) -> bool:
    """True if an index uses a static: one value of it is no proof for the others."""
    pointing = index_inputs(rule)
    named = axis_names(rule)
    return any(i.name in pointing and i.name not in named for i in rule.static_inputs)
