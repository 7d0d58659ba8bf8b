"""The sizes at which a ranked rule is examined, and its unrolled form at each.

Small sizes are taken whole: every combination of 1 to 3 for every axis, and every value
of the integers that serve as indices. A rule with many axes has too many of them, and
is then taken at 1 and 2. Larger sizes are one combination, with a size of its own for
every axis, so that axes which were confused at equal sizes are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TypeAlias

from gradspec.checks.subject import Subject, subject
from gradspec.ir.elements import Nested, OutOfRange, extent
from gradspec.ir.expr import Expr, Size, const
from gradspec.ir.rule import Input, Rule
from gradspec.ir.tidy import decide, fold
from gradspec.ir.unroll import Unrolled, axis_names, count, index_inputs, unroll, work
from gradspec.ir.walk import transform

_CASES = 64
_FILLINGS = 27
_ELEMENTS = 60
_ASSUMED = (8, 16, 32)
"""Sizes to fall back on where smaller ones are assumed away."""

_MOST = 100
"""Elements beyond which writing them all out is no longer a matter of seconds."""

_WORK = 20_000
"""Nodes visited beyond which the same holds: sums in sums in sums."""

_POINTS = 12
_LARGER = (4, 5, 3, 2, 6)
_APART = (2, 3)

_Lost: TypeAlias = tuple[Mapping[str, Nested], OutOfRange]
_Missed: TypeAlias = tuple[Mapping[str, int], Mapping[str, Nested]]


@dataclass(frozen=True, eq=False)
class Case:
    """A ranked rule at given sizes and indices."""

    ranked: Rule
    unrolled: Unrolled

    @cached_property
    def subject(self) -> Subject:
        return subject(self.unrolled.rule, _POINTS)

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.unrolled.sizes

    @property
    def integers(self) -> Mapping[str, Nested]:
        return self.unrolled.integers


class Cases:
    """Every combination of sizes from 1 to ``largest``, the small ones first, and one of
    larger sizes. ``is_whole``: the integers that serve as indices had every value.

    A case is written out when it is first asked for.
    """

    def __init__(
        self,
        rule: Rule,
        combinations: Iterable[Mapping[str, int]],
        largest: int,
        is_whole: bool,
    ) -> None:
        self.largest, self.is_whole = largest, is_whole
        self._rule = rule
        self._combinations = tuple(combinations)
        self._known: dict[int, tuple[Case, ...]] = {}
        self._lost: dict[int, tuple[_Lost, ...]] = {}

    @cached_property
    def small(self) -> tuple[Case, ...]:
        return tuple(self._from(range(len(self._combinations))))

    @cached_property
    def larger(self) -> tuple[Case, ...]:
        """The first larger combination in which the rule says something."""
        return self._beyond[0]

    @cached_property
    def _beyond(self) -> tuple[tuple[Case, ...], tuple[_Missed, ...]]:
        """The same, and the larger combinations in which it says nothing."""
        missed: list[_Missed] = []
        for wished in _larger(self._rule, axis_names(self._rule)):
            found, lost = _at(self._rule, wished)
            if found:
                return found[-2:], tuple(missed)
            missed += [(wished, integers) for integers, _ in lost]
        return (), tuple(missed)

    @property
    def missed(self) -> tuple[_Missed, ...]:
        """Sizes, and integers that serve as indices, at which an element is lacking."""
        assert self.small is not None
        small = [
            (sizes, integers)
            for number, sizes in enumerate(self._combinations)
            for integers, _ in self._lost[number]
        ]
        return (*small, *self._beyond[1])

    @property
    def lost(self) -> tuple[OutOfRange, ...]:
        """What did not exist at sizes that were left out."""
        return tuple(fault for _, fault in self.lost_at)

    @property
    def lost_at(self) -> tuple[tuple[Mapping[str, int], OutOfRange], ...]:
        """The same with the sizes."""
        assert self.small is not None
        return tuple(
            (sizes, fault)
            for number, sizes in enumerate(self._combinations)
            for _, fault in self._lost[number]
        )

    @property
    def first(self) -> Case | None:
        return next(self._from(range(len(self._combinations))), None)

    @cached_property
    def apart(self) -> Case | None:
        """The smallest at which neighbouring axes differ in size, more than 1 each: what
        confuses axes shows there already. Equal or larger ones if that says nothing.
        """
        axes = axis_names(self._rule)
        sizes = {axis: _APART[k % len(_APART)] for k, axis in enumerate(axes)}
        for wished in (sizes, dict.fromkeys(axes, 2), self._combinations[-1]):
            if wished in self._combinations:
                found = tuple(self._from([self._combinations.index(wished)]))
            else:
                found = _at(self._rule, wished)[0]
            if found:
                return found[0]
        return next(iter(self.larger), None)

    @property
    def usual(self) -> Case | None:
        """Two elements on each axis where that is possible and anything is defined."""
        order = sorted(range(len(self._combinations)), key=self._distance)
        found = (case for case in self._from(order) if case.subject.points)
        return next(found, next(self._from(order), None))

    def _distance(self, number: int) -> int:
        return sum(size != 2 for size in self._combinations[number].values())

    def _from(self, numbers: Iterable[int]) -> Iterator[Case]:
        for number in numbers:
            if number not in self._known:
                found = _at(self._rule, self._combinations[number])
                self._known[number], self._lost[number] = found
            yield from self._known[number]


def cases(rule: Rule) -> Cases:
    """The cases in which the rule says something."""
    axes = axis_names(rule)
    chosen = next((n for n in (3, 2) if _is_feasible(rule, axes, n)), None)
    if chosen is None and 2 ** len(axes) > _CASES:
        return Cases(rule, _sparse(axes), 1, False)
    largest = chosen or 2
    whole = chosen is not None and not _has_shift(rule)
    return Cases(rule, _combinations(axes, largest), largest, whole)


def is_too_large(rule: Rule) -> bool:
    """Fixed sizes that are too many elements even if every named axis has one."""
    return count(rule, dict.fromkeys(axis_names(rule), 1)) > _MOST


def few(rule: Rule) -> Cases:
    """Enough cases for what is not claimed: all axes of size 1, of size 2, and larger."""
    axes = axis_names(rule)
    if count(rule, dict.fromkeys(axes, 2)) > _MOST:
        return cases(rule)
    some = Cases(rule, [dict.fromkeys(axes, size) for size in (1, 2)], 1, False)
    return cases(rule) if some.first is None else some


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
    """Few enough combinations, with every value of the indices."""
    if largest ** len(axes) > _CASES:
        return False
    largest_sizes = dict.fromkeys(axes, largest)
    if count(rule, largest_sizes) > _MOST:
        return False
    numbers = [_number(rule, sizes) for sizes in _combinations(axes, largest)]
    return max(numbers) <= _FILLINGS and sum(numbers) <= _CASES


def _number(rule: Rule, sizes: Mapping[str, int]) -> int:
    """How many values the index inputs can have."""
    pointing = _pointing(rule, sizes)
    return prod(size**number for v, size, number in pointing if not v.kind.is_static)


def at(rule: Rule, sizes: Mapping[str, int]) -> Case | None:
    """The rule at some sizes, with the first indices that do."""
    return next(iter(_at(rule, sizes)[0]), None)


def _at(
    rule: Rule, sizes: Mapping[str, int]
) -> tuple[tuple[Case, ...], tuple[_Lost, ...]]:
    """The cases of one combination, and what did not exist in others."""
    made: list[Case] = []
    lost: list[_Lost] = []
    if count(rule, sizes) > _MOST or work(rule, sizes) > _WORK:
        return (), ()
    if _is_assumed_away(rule, sizes):
        return (), ()
    for integers in _fillings(rule, sizes):
        try:
            unrolled = unroll(rule, sizes, integers)
        except OutOfRange as fault:
            lost.append((integers, fault))
            continue
        if not _is_excluded(unrolled.rule):
            made.append(Case(rule, unrolled))
    return tuple(made), tuple(lost)


def _is_assumed_away(rule: Rule, sizes: Mapping[str, int]) -> bool:
    """An assumption about sizes alone (``n > 1``) that does not hold."""

    def visit(node: Expr) -> Expr:
        return const(sizes[node.axis]) if isinstance(node, Size) else fold(node)

    plain = (a.condition for a in rule.assumes if not a.indices)
    return any(decide(transform(condition, visit)) is False for condition in plain)


def _is_excluded(rule: Rule) -> bool:
    """An assumption about sizes (``n > 1``) that does not hold."""
    return any(decide(assume.condition) is False for assume in rule.assumes)


def _larger(rule: Rule, axes: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Combinations in the order in which they are wished for."""
    if not axes:
        return
    for start in range(len(_LARGER)):
        picked = [_LARGER[(start + k) % len(_LARGER)] for k in range(len(axes))]
        sizes = dict(zip(axes, picked, strict=True))
        if count(rule, sizes) <= _ELEMENTS:
            yield sizes
    yield from (dict.fromkeys(axes, size) for size in _ASSUMED)


# --- integers that serve as indices ----------------------------------------------------


def _fillings(rule: Rule, sizes: Mapping[str, int]) -> Iterator[Mapping[str, Nested]]:
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
            variable.name: _nested(values, [extent(a, sizes) for a in _axes(variable)])
            for (variable, _, _), values in zip(pointing, chosen, strict=True)
        }


def _pointing(rule: Rule, sizes: Mapping[str, int]) -> list[tuple[Input, int, int]]:
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


def _axes(variable: Input) -> tuple[str | int, ...]:
    return variable.shape.axes


def _static(variable: Input, size: int) -> list[tuple[int, ...]]:
    """A shift: the author's own, or all that may fit."""
    if variable.default is not None:
        return [(int(variable.default),)]
    return [(value,) for value in range(size)]


def _some(size: int, number: int) -> list[tuple[int, ...]]:
    """In order, all the same, backwards, and with repetitions."""
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
    """A static in an index: one value of it is no proof for the others."""
    pointing = index_inputs(rule)
    named = axis_names(rule)
    return any(i.name in pointing and i.name not in named for i in rule.static_inputs)
