"""Instances of a rule: every axis at a fixed size, one scalar for each element.

What is known of scalars (derivatives, proofs, enclosures, sampling) then holds of the
rule at these sizes. An elementwise rule is the rule of rank 0: it has one instance.

Small sizes are taken whole: every combination of 1 to 3 for every axis, and every value
of the integers that serve as indices. A rule with many axes has too many of them, and
is then taken at 1 and 2. Larger sizes are one combination, with a size of its own for
every axis, so that axes which were confused at equal sizes are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import TypeAlias

from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import cotangents
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.elements import Nested, OutOfRange, extent
from gradspec.ir.expr import ZERO, Expr, Size, const
from gradspec.ir.rule import Declared, Input, Kind, Rule
from gradspec.ir.tidy import decide, fold
from gradspec.ir.unroll import axis_names, count, index_inputs, unroll, work
from gradspec.ir.walk import inline, names, transform
from gradspec.symbolic.enclose import defined, enclose, program
from gradspec.symbolic.sampling import Survey, survey, usual_count

Point: TypeAlias = "Mapping[str, Fraction]"

_MOST_POINTS = 48
_POINTS = 12
"""Points of an instance with several elements an axis; there are several instances."""

_COMBINATIONS = 64
_FILLINGS = 27
_ELEMENTS = 60
_MOST_ELEMENTS = 100
"""Elements beyond which unrolling them all takes more than seconds."""

_WORK = 20_000
"""Nodes visited beyond which the same holds: nested sums."""

_LARGER = (4, 5, 3, 2, 6)
_APART = (2, 3)
_ASSUMED = (8, 16, 32)
"""Sizes used where assumptions exclude smaller ones."""


@dataclass(frozen=True, eq=False)
class Instance:
    """``rule`` has the elements of ``written`` as inputs and outputs, at these sizes
    and values of the integers that serve as indices; ``partial`` are the locals that
    lack elements there.
    """

    written: Rule
    rule: Rule
    sizes: Mapping[str, int]
    integers: Mapping[str, Nested]
    partial: frozenset[str] = frozenset()

    @cached_property
    def survey(self) -> Survey:
        is_smallest = all(size == 1 for size in self.sizes.values())
        most = _MOST_POINTS if is_smallest else _POINTS
        return survey(self.rule, min(usual_count(self.rule), most))

    @property
    def points(self) -> tuple[Point, ...]:
        return self.survey.points

    @cached_property
    def forward(self) -> Mapping[str, Expr]:
        """Each output in terms of the inputs."""
        return {n: expand(value) for n, value in closed.outputs(self.rule).items()}

    @cached_property
    def stated(self) -> Mapping[str, Expr]:
        """Each input's cotangent as the rule states it."""
        found = closed.cotangents(self.rule).items()
        return {name.removeprefix("d"): expand(value) for name, value in found}

    @cached_property
    def derived(self) -> Mapping[str, Expr]:
        """The true cotangents by input; none of them if the derivative of a primitive
        is not known."""
        try:
            found = cotangents(self.rule)
        except Underivable:
            return {}
        return {name: expand(value) for name, value in found.items()}

    @property
    def upstream(self) -> tuple[str, ...]:
        """The names of the upstream gradients."""
        return tuple(f"d{o.name}" for o in self.rule.outputs if o.takes_gradient)

    @property
    def assumed(self) -> tuple[Expr, ...]:
        return tuple(a.condition for a in self.rule.assumes if not a.indices)

    def is_inside(self, point: Point) -> bool:
        """True if all assumptions hold at the point and the outputs have values."""
        if not all(enclose(c, point) is True for c in self.assumed):
            return False
        return all(map(defined, program(*self.forward.values()).run(point)))

    @property
    def whole(self) -> frozenset[str]:
        """The names of integer inputs."""
        whole = (Kind.INT, Kind.STATIC_INT)
        return frozenset(i.name for i in self.rule.inputs if i.kind in whole)

    @property
    def shown(self) -> tuple[str, ...]:
        """Every name of a point, in the order shown to a reader."""
        return (*(i.name for i in self.rule.inputs), *self.upstream)

    def backward_path(self) -> dict[str, Expr]:
        """Each output as the backward pass sees it, surrogates substituted."""
        paths = dict(self.forward)
        for surrogate in self.rule.surrogates:
            value = inline(self.rule.forward, surrogate.value)
            paths[surrogate.output] = expand(value)
        return paths

    def declared(self) -> Iterator[tuple[Input, Declared]]:
        """The inputs whose cotangent the author wrote."""
        for variable, entry in zip(self.rule.inputs, self.rule.backward, strict=True):
            if isinstance(entry, Declared):
                yield variable, entry


@dataclass(frozen=True, slots=True)
class Gap:
    """Sizes, and integers that serve as indices, at which an element does not exist."""

    sizes: Mapping[str, int]
    integers: Mapping[str, Nested]
    fault: OutOfRange


_Made: TypeAlias = tuple[tuple[Instance, ...], tuple[Gap, ...]]


class Instances:
    """Every combination of sizes from 1 to ``largest``, the small ones first, and one
    of larger sizes. ``is_whole``: the integers that serve as indices had every value.

    An instance is written out when it is first asked for.
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
        self._known: dict[int, _Made] = {}

    @cached_property
    def small(self) -> tuple[Instance, ...]:
        return tuple(self._from(range(len(self._combinations))))

    @property
    def larger(self) -> tuple[Instance, ...]:
        """The first larger combination at which the rule is defined."""
        return self._beyond[0]

    @cached_property
    def _beyond(self) -> _Made:
        """The same, and the gaps of those before it."""
        missed: tuple[Gap, ...] = ()
        for wished in _larger(self._rule, axis_names(self._rule)):
            found, gaps = _at(self._rule, wished)
            if found:
                return found[-2:], missed
            missed += gaps
        return (), missed

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Gaps at small sizes; those instances were left out."""
        made = (self._made(number) for number in range(len(self._combinations)))
        return tuple(gap for _, gaps in made for gap in gaps)

    @property
    def missed(self) -> tuple[Gap, ...]:
        """Gaps at small and at larger sizes."""
        return (*self.gaps, *self._beyond[1])

    @property
    def first(self) -> Instance | None:
        return next(self._from(range(len(self._combinations))), None)

    @cached_property
    def apart(self) -> Instance | None:
        """The smallest instances at which neighbouring axes differ in size, more than 1
        each, which reveals confused axes. Equal or larger sizes if the rule is
        undefined there.
        """
        axes = axis_names(self._rule)
        sizes = {axis: _APART[k % len(_APART)] for k, axis in enumerate(axes)}
        for wished in (sizes, dict.fromkeys(axes, 2), self._combinations[-1]):
            if wished in self._combinations:
                found = self._made(self._combinations.index(wished))[0]
            else:
                found = _at(self._rule, wished)[0]
            if found:
                return found[0]
        return next(iter(self.larger), None)

    @cached_property
    def usual(self) -> Instance | None:
        """Two elements on each axis where possible, at a size where the rule is
        defined."""
        order = sorted(range(len(self._combinations)), key=self._distance)
        found = (one for one in self._from(order) if one.points)
        return next(found, next(self._from(order), None))

    @property
    def always(self) -> tuple[Instance, ...]:
        """Instances examined however short the time."""
        some = (self.first, self.apart)
        return tuple(dict.fromkeys(one for one in some if one is not None))

    @property
    def every(self) -> tuple[Instance, ...]:
        return tuple(dict.fromkeys((*self.small, *self.always, *self.larger)))

    @property
    def varied(self) -> tuple[Instance, ...]:
        """A few instances at which the sizes differ."""
        some = (*self.larger[:1], self.apart, *self.small[1:2], *self.small[-1:])
        return tuple(dict.fromkeys(one for one in some if one is not None))

    def _distance(self, number: int) -> int:
        return sum(size != 2 for size in self._combinations[number].values())

    def _from(self, numbers: Iterable[int]) -> Iterator[Instance]:
        for number in numbers:
            yield from self._made(number)[0]

    def _made(self, number: int) -> _Made:
        if number not in self._known:
            self._known[number] = _at(self._rule, self._combinations[number])
        return self._known[number]


def instances(rule: Rule) -> Instances:
    """The instances at which the rule is defined."""
    axes = axis_names(rule)
    chosen = next((n for n in (3, 2) if _is_feasible(rule, axes, n)), None)
    if chosen is None and 2 ** len(axes) > _COMBINATIONS:
        return Instances(rule, _sparse(axes), 1, False)
    largest = chosen or 2
    whole = chosen is not None and not _has_shift(rule)
    return Instances(rule, _combinations(axes, largest), largest, whole)


def few(rule: Rule) -> Instances:
    """Instances sufficient where nothing is declared: all axes of size 1, of size 2,
    and larger."""
    axes = axis_names(rule)
    if not axes or count(rule, dict.fromkeys(axes, 2)) > _MOST_ELEMENTS:
        return instances(rule)
    some = Instances(rule, [dict.fromkeys(axes, size) for size in (1, 2)], 1, False)
    return instances(rule) if some.first is None else some


def typical(rule: Rule) -> Instance | None:
    """Two elements an axis, to look at the elementwise parts of a rule."""
    if is_too_large(rule):
        return None
    known = few(rule)
    return known.usual or next(iter(known.larger), None)


def at(rule: Rule, sizes: Mapping[str, int]) -> Instance | None:
    """The rule at some sizes, with the first index values that are in range."""
    return next(iter(_at(rule, sizes)[0]), None)


def elementwise(rule: Rule) -> Instance:
    """The one instance of a rule of rank 0."""
    return Instance(rule, rule, {}, {})


def is_too_large(rule: Rule) -> bool:
    """True if fixed sizes give too many elements even if every named axis has one."""
    return count(rule, dict.fromkeys(axis_names(rule), 1)) > _MOST_ELEMENTS


# --- sizes -------------------------------------------------------------------------------


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


def _larger(rule: Rule, axes: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Larger combinations of sizes in order of preference."""
    if not axes:
        return
    for start in range(len(_LARGER)):
        picked = [_LARGER[(start + k) % len(_LARGER)] for k in range(len(axes))]
        sizes = dict(zip(axes, picked, strict=True))
        if count(rule, sizes) <= _ELEMENTS:
            yield sizes
    yield from (dict.fromkeys(axes, size) for size in _ASSUMED)


def _is_feasible(rule: Rule, axes: tuple[str, ...], largest: int) -> bool:
    """True if there are few enough combinations, with every value of the indices."""
    if largest ** len(axes) > _COMBINATIONS:
        return False
    largest_sizes = dict.fromkeys(axes, largest)
    if count(rule, largest_sizes) > _MOST_ELEMENTS:
        return False
    numbers = [_number(rule, sizes) for sizes in _combinations(axes, largest)]
    return max(numbers) <= _FILLINGS and sum(numbers) <= _COMBINATIONS


def _at(rule: Rule, sizes: Mapping[str, int]) -> _Made:
    """The instances of one combination, and the gaps of others."""
    made: list[Instance] = []
    gaps: list[Gap] = []
    if rule.is_elementwise:
        return (elementwise(rule),), ()
    if count(rule, sizes) > _MOST_ELEMENTS or work(rule, sizes) > _WORK:
        return (), ()
    if _is_assumed_away(rule, sizes):
        return (), ()
    for integers in _fillings(rule, sizes):
        try:
            one = unroll(rule, sizes, integers)
        except OutOfRange as fault:
            gaps.append(Gap(sizes, integers, fault))
            continue
        if not any(decide(a.condition) is False for a in one.rule.assumes):
            found = Instance(rule, one.rule, one.sizes, one.integers, one.partial)
            made.append(found)
    return tuple(made), tuple(gaps)


def _is_assumed_away(rule: Rule, sizes: Mapping[str, int]) -> bool:
    """True if an assumption about sizes alone (``n > 1``) does not hold."""

    def visit(node: Expr) -> Expr:
        return const(sizes[node.axis]) if isinstance(node, Size) else fold(node)

    plain = (a.condition for a in rule.assumes if not a.indices)
    return any(decide(transform(condition, visit)) is False for condition in plain)


# --- integers that serve as indices ------------------------------------------------------


def _number(rule: Rule, sizes: Mapping[str, int]) -> int:
    """The number of combinations of values of the index inputs."""
    pointing = _pointing(rule, sizes)
    return prod(size**number for v, size, number in pointing if not v.kind.is_static)


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
            v.name: _nested(values, [extent(a, sizes) for a in v.shape.axes])
            for (v, _, _), values in zip(pointing, chosen, strict=True)
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


# --- names and points --------------------------------------------------------------------


def stem(name: str) -> str:
    """The variable of an element: ``x`` of ``x[0, 1]``."""
    return name.partition("[")[0]


def depends(expr: Expr, name: str) -> bool:
    return expr != ZERO and name in names(expr)


def said(point: Point, only: tuple[str, ...]) -> str:
    """A point as a reader writes it: ``x = 2, dy = 1``."""
    return ", ".join(f"{name} = {number(point[name])}" for name in only)


def number(value: Fraction) -> str:
    """An integer as such, another number as the shortest decimal of its double."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
