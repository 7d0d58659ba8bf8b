"""Instances of a rule: every axis at a fixed size, one scalar for each element.

What is known of scalars (derivatives, proofs, enclosures, sampling) then holds of the
rule at these sizes (`ir/unroll.py`). An elementwise rule is the rule of rank 0: it has
one instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, product
from types import MappingProxyType
from typing import TypeAlias

from gradspec.checks.sizes import gaps_of
from gradspec.checks.solutions import Solutions
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import cotangents
from gradspec.ir import unroll as sizes
from gradspec.ir.elements import Nested
from gradspec.ir.expr import ZERO, Expr
from gradspec.ir.rule import Definition, Input, Kind, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import Gap, Sizes, Small, axis_names, count, is_too_large
from gradspec.ir.walk import closed_cotangents, closed_outputs, expand, inline, names
from gradspec.symbolic.enclose import enclose, is_defined, program
from gradspec.symbolic.points.simple import Survey, survey, usual_count

Point: TypeAlias = "Mapping[str, Fraction]"

_MOST_POINTS = 48
_POINTS = 12
"""Points of an instance with several elements an axis; there are several instances."""

_APART, _LONG = (2, 3), 5
_COMPLETIONS = 48  # of the sizes of a few axes


@dataclass(frozen=True, eq=False)
class Instance:
    """``rule`` has the elements of ``written`` as inputs and outputs, at these sizes
    and values of the integers that serve as indices.
    """

    written: Rule
    rule: Rule
    sizes: Mapping[str, int]
    integers: Mapping[str, Nested]
    equations: tuple[Definition, ...] = ()

    @cached_property
    def solutions(self) -> Solutions | None:
        """The solutions of its equations, if it has some."""
        return Solutions(self.rule, self.equations) if self.equations else None

    def solve_points(self, points: Iterable[Point]) -> Iterator[Point]:
        """The points, those with equations where these hold."""
        known = self.solutions
        if known is None:
            yield from points
            return
        solved = (known.solution_near(point) for point in points)
        yield from (point for point in solved if point is not None)

    @property
    def given(self) -> tuple[Input, ...]:
        """The inputs that no equation defines."""
        known = self.solutions
        solved = () if known is None else known.unknowns
        return tuple(i for i in self.rule.inputs if i.name not in solved)

    @property
    def linear(self) -> frozenset[str]:
        """The upstream gradients, and what is linear in them by equations."""
        known = self.solutions
        return frozenset(self.rule.cotangents) if known is None else known.linear

    @cached_property
    def survey(self) -> Survey:
        is_smallest = all(size == 1 for size in self.sizes.values())
        most = _MOST_POINTS if is_smallest else _POINTS
        return survey(self.rule, min(usual_count(self.rule), most))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return tuple(self.solve_points(self.survey.points))

    @cached_property
    def forward(self) -> Mapping[str, Expr]:
        """Each output in terms of the inputs."""
        return {n: expand(value) for n, value in closed_outputs(self.rule).items()}

    @cached_property
    def stated(self) -> Mapping[str, Expr]:
        """Each input's cotangent as the rule states it."""
        found = closed_cotangents(self.rule).items()
        stated = {name.removeprefix("d"): expand(value) for name, value in found}
        if not self.equations:
            return stated
        return {name: tidy(value) for name, value in stated.items()}  # elements are 0

    @cached_property
    def derived(self) -> Mapping[str, Expr]:
        """The true cotangents by input; none of them if the derivative of a primitive
        is not known."""
        try:
            if self.solutions is not None:
                return self.solutions.derived
            found = cotangents(self.rule)
        except Underivable:
            return {}
        return {name: expand(value) for name, value in found.items()}

    @property
    def assumed(self) -> tuple[Expr, ...]:
        return tuple(a.condition for a in self.rule.assumes if not a.indices)

    @property
    def assumed_in_proofs(self) -> tuple[Expr, ...]:
        """The assumptions, where its equations hold."""
        known = self.solutions
        return (
            self.assumed
            if known is None
            else tuple(map(known.apply_equations, self.assumed))
        )

    def is_assumed(self, point: Point, precision: int = 128) -> bool:
        """True if all assumptions hold at the point."""
        return all(enclose(c, point, precision) is True for c in self.assumed)

    def is_inside(self, point: Point) -> bool:
        """True if the assumptions hold at the point, and the outputs have values."""
        return self.is_assumed(point) and all(
            map(is_defined, program(*self.forward.values()).run(point))
        )

    @property
    def whole(self) -> frozenset[str]:
        """The names of integer inputs."""
        whole = (Kind.INT, Kind.STATIC_INT)
        return frozenset(i.name for i in self.rule.inputs if i.kind in whole)

    @property
    def shown(self) -> tuple[str, ...]:
        """Every name of a point, in the order shown to a reader."""
        return (*(i.name for i in self.given), *self.rule.cotangents)

    def backward_path(self) -> dict[str, Expr]:
        """Each output as the backward pass sees it, surrogates substituted."""
        paths = dict(self.forward)
        for surrogate in self.rule.surrogates:
            value = inline(self.rule.forward, surrogate.value)
            paths[surrogate.name] = expand(value)
        return paths


class Instances:
    """The instances of a rule at small sizes and at one larger combination of sizes, of
    those at which it is defined. An instance is made when it is first asked for.
    """

    def __init__(self, rule: Rule, small_sizes: Small) -> None:
        self.largest, self.is_whole = small_sizes.largest, small_sizes.is_whole
        self._rule, self._combinations = rule, small_sizes.combinations
        self._known: dict[object, tuple[tuple[Instance, ...], tuple[Gap, ...]]] = {}

    @cached_property
    def small(self) -> tuple[Instance, ...]:
        return tuple(self._of(self._combinations))

    @cached_property
    def larger(self) -> tuple[Instance, ...]:
        """The first larger combination at which the rule is defined."""
        every = (self._at(wished)[0] for wished in sizes.larger(self._rule))
        return next(filter(None, every), ())[-2:]

    @property
    def further(self) -> tuple[Instance, ...]:
        """Instances at which conditions on indices or sizes have another truth."""
        return self.beyond[0]

    @cached_property
    def beyond(self) -> tuple[tuple[Instance, ...], Sizes | None]:
        """The further instances, and sizes of another truth at which none was made."""
        made: list[Instance] = []
        unreached: Sizes | None = None
        for gaps in gaps_of(self._rule):
            met, unreached_from = gaps.first_met(self._rule)
            usual = (*self.small, *self.larger, *made)
            seen = set().union(
                *(gaps.orders(o.written, o.sizes, o.integers) for o in usual)
            )
            for order, choices in reversed(met.items()):
                for given in choices:
                    some = self._instances_at(given) if order not in seen else ()
                    seen.update(
                        *(gaps.orders(o.written, o.sizes, o.integers) for o in some)
                    )
                    made += some
            missed = (choices[0] for order, choices in met.items() if order not in seen)
            unreached = unreached or next(missed, unreached_from)
        return _distinct(*made), unreached

    def _instances_at(self, given: Sizes) -> tuple[Instance, ...]:
        """The instances at some sizes of a few axes, if any: the others as at small
        sizes, the largest first, or in proportion to what is given."""
        most, axes = max(map(abs, given.values())), axis_names(self._rule)
        statics = {name: n for name, n in given.items() if name not in axes}
        pool = (most, most + 2, 2 * most + 2, 3 * most + 2, most // 2 or 1, 2)
        others = [axis for axis in axes if axis not in given]
        known = ([one.sizes[axis] for axis in others] for one in reversed(self.small))
        every = islice(chain(known, product(pool, repeat=len(others))), _COMPLETIONS)
        full = ({**dict(zip(others, chosen, strict=True)), **given} for chosen in every)
        each = (
            self._at({axis: sizes[axis] for axis in axes}, statics)[0] for sizes in full
        )
        return next(filter(None, each), ())

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Gaps at small sizes; those instances were left out."""
        return tuple(g for wished in self._combinations for g in self._at(wished)[1])

    @property
    def missed(self) -> Iterator[Gap]:
        """Gaps at all sizes that are looked at."""
        _ = self.gaps, self.larger, self.further  # now all are known
        for _, gaps in tuple(self._known.values()):
            yield from gaps

    @property
    def first(self) -> Instance | None:
        return next(self._of(self._combinations), None)

    @cached_property
    def apart(self) -> Instance | None:
        """The smallest instances at which neighbouring axes differ in size, more than 1
        each, which reveals confused axes. Equal or larger sizes if the rule is
        undefined there.
        """
        axes = axis_names(self._rule)
        different = {axis: _APART[k % len(_APART)] for k, axis in enumerate(axes)}
        wished = (different, dict.fromkeys(axes, 2), self._combinations[-1])
        return next(self._of(wished), next(iter(self.larger), None))

    @cached_property
    def usual(self) -> Instance | None:
        """Two elements on each axis where possible, at a size where the rule is
        defined."""
        nearest = sorted(
            self._combinations, key=lambda sizes: sum(n != 2 for n in sizes.values())
        )
        found = (one for one in self._of(nearest) if one.points)
        return next(found, next(self._of(nearest), None))

    @property
    def long(self) -> Iterator[Instance | None]:
        """An instance with five elements along each axis in turn, as moments need."""
        axes = axis_names(self._rule)
        for axis in axes:
            yield next(self._of([{**dict.fromkeys(axes, 2), axis: _LONG}]), None)

    @property
    def always(self) -> tuple[Instance, ...]:
        """Instances examined however short the time."""
        return _distinct(self.first, self.apart)

    @property
    def every(self) -> tuple[Instance, ...]:
        return _distinct(*self.small, *self.always, *self.larger, *self.further)

    @property
    def varied(self) -> tuple[Instance, ...]:
        """A few instances at which the sizes differ."""
        return _distinct(
            *self.larger[:1], self.apart, *self.small[1:2], *self.small[-1:]
        )

    def _of(self, combinations: Iterable[Sizes]) -> Iterator[Instance]:
        for wished in combinations:
            yield from self._at(wished)[0]

    def _at(
        self, wished: Sizes, statics: Sizes = MappingProxyType({})
    ) -> tuple[tuple[Instance, ...], tuple[Gap, ...]]:
        key = (*wished.values(), *statics.items())
        if key not in self._known:
            made, gaps = sizes.unrolled_at(self._rule, wished, statics)
            some = (
                Instance(self._rule, u.rule, u.sizes, u.integers, u.equations)
                for u in made
            )
            self._known[key] = tuple(some), gaps
        return self._known[key]


def _distinct(*some: Instance | None) -> tuple[Instance, ...]:
    return tuple(dict.fromkeys(one for one in some if one is not None))


def instances(rule: Rule) -> Instances:
    """The instances at which the rule is defined."""
    return Instances(rule, sizes.small(rule))


def few(rule: Rule) -> Instances:
    """Instances sufficient where nothing is declared: all axes of size 1, of size 2,
    and larger."""
    axes = axis_names(rule)
    if not axes or count(rule, dict.fromkeys(axes, 2)) > sizes.MOST_ELEMENTS:
        return instances(rule)
    equal = tuple(dict.fromkeys(axes, size) for size in (1, 2))
    some = Instances(rule, Small(equal, 1, False))
    return instances(rule) if some.first is None else some


def typical(rule: Rule) -> Instance | None:
    """Two elements an axis, to look at the elementwise parts of a rule."""
    if is_too_large(rule):
        return None
    known = few(rule)
    return known.usual or next(iter(known.larger), None)


def elementwise(rule: Rule) -> Instance:
    """The one instance of a rule of rank 0."""
    return Instance(rule, rule, {}, {})


# --- names and points --------------------------------------------------------------------


def stem(name: str) -> str:
    """The variable of an element: ``x`` of ``x[0, 1]``."""
    return name.partition("[")[0]


def depends(expr: Expr, name: str) -> bool:
    return expr != ZERO and name in names(expr)
