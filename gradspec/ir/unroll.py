"""A ranked rule unrolled at given sizes: an elementwise rule of its elements.

``x[n]`` at ``n = 2`` becomes the two inputs ``x[0]`` and ``x[1]``, a sum over ``n`` two
terms, a size a number, and a condition on indices is decided. All that is known of
scalars (derivatives, proofs, enclosures, sampling, the float32 model) then holds of the
ranked rule at these sizes. The cotangent of the element ``y[0]`` is ``dy[0]``.

Batch axes are left out: what a rule says, it says of each element of the batch, and
one element stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, combinations, product
from math import prod
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from gradspec.ir.elements import (
    PLAIN,
    Axes,
    Expansion,
    Index,
    Join,
    Nested,
    OutOfRange,
    element,
    extent,
    places,
)
from gradspec.ir.expr import ZERO, Const, Expr, Idx, Reduce, Ref, Size, const
from gradspec.ir.recurrence import System, components
from gradspec.ir.rule import (
    Assume,
    Definition,
    Input,
    Kind,
    Output,
    Rule,
    Shape,
)
from gradspec.ir.tidy import decide, fold
from gradspec.ir.walk import names, nodes, substitute, transform

_V = TypeVar("_V", Input, Output)


@dataclass(frozen=True, slots=True)
class Unrolled:
    """``rule`` is elementwise; its spans and its source are those of the ranked one.
    ``partial`` are the locals of which some elements do not exist (and are not used).
    What an equation defines is an input, called `unknown`, and ``equations`` have the
    value that each of its elements is equal to.
    """

    rule: Rule
    sizes: Mapping[str, int]
    integers: Mapping[str, Nested] = field(default_factory=dict)
    partial: frozenset[str] = frozenset()
    equations: tuple[Definition, ...] = ()


UNKNOWN = "'"


def unknown(name: str) -> str:
    """The input of an unrolled rule that has an element which an equation defines."""
    return UNKNOWN + name


def unroll(
    rule: Rule,
    sizes: Mapping[str, int],
    integers: Mapping[str, Nested] | None = None,
    joins: Mapping[str, Join] = PLAIN,
) -> Unrolled:
    """``rule`` at ``sizes`` (one for every named axis, see :func:`axis_names`).

    ``integers`` gives values to ``int`` and ``static int`` inputs, which then are
    inputs no more; those that serve as indices (:func:`index_inputs`) should be given,
    since an index that depends on data becomes a chain of conditionals. A static that
    is the size of an axis has it from ``sizes``. ``joins`` says how the terms of each
    reduction are written. Raises :class:`OutOfRange`.
    """
    return unroll_by(rule, expansion(rule, sizes, integers, joins))


def expansion(
    rule: Rule,
    sizes: Mapping[str, int],
    integers: Mapping[str, Nested] | None = None,
    joins: Mapping[str, Join] = PLAIN,
) -> Expansion:
    """The expansion of the expressions of ``rule``, and of others with the same names,
    at ``sizes``; the arguments are those of :func:`unroll`."""
    named = {i.name: sizes[i.name] for i in rule.static_inputs if i.name in sizes}
    given: dict[str, Nested] = {**named, **(integers or {})}
    return Expansion(axes_of(rule), sizes, given, joins)


def unroll_by(rule: Rule, by: Expansion) -> Unrolled:
    """:func:`unroll` with a given expansion, which memoises its results."""
    unrolling = _Unrolling(rule, by)
    scalar = unrolling.run()
    partial = frozenset(unrolling.partial)
    equations = tuple(unrolling.equations)
    return Unrolled(scalar, dict(by.sizes), by.integers, partial, equations)


def axis_names(rule: Rule) -> tuple[str, ...]:
    """The named axes of a rule in the order in which its header names them, then
    the static integers that are ranges of indices."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = (axis for variable in variables for axis in variable.shape.axes)
    sizes = (i.name for i in rule.static_inputs if i.is_size)
    return tuple(dict.fromkeys([*(a for a in axes if isinstance(a, str)), *sizes]))


def index_inputs(rule: Rule) -> dict[str, str | int]:
    """The integer inputs that stand in an index, each with the axis it points into."""
    whole = {i.name for i in rule.inputs if i.kind in (Kind.INT, Kind.STATIC_INT)}
    axes = axes_of(rule)
    found: dict[str, str | int] = {}
    for node in _all_nodes(rule):
        if isinstance(node, Ref) and node.indices:
            for index, axis in zip(node.indices, axes[node.name], strict=True):
                used = sorted(names(index) & whole - set(found))
                found |= dict.fromkeys(used, axis)
    return found


def _all_nodes(rule: Rule) -> Iterator[Expr]:
    values = (
        *(definition.value for definition in rule.definitions),
        *(assume.condition for assume in rule.assumes),
    )
    for value in values:
        yield from nodes(value)


def axes_of(rule: Rule) -> dict[str, Axes]:
    """The axes of every value that an expression of the rule may name."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found = {let.name: let.axes for let in (*rule.forward, *rule.backward_locals)}
    found |= {v.cotangent: v.shape.axes for v in variables if v.takes_gradient}
    return found | {v.name: v.shape.axes for v in variables}


class _Unrolling:
    """One rule at one choice of sizes."""

    def __init__(self, rule: Rule, by: Expansion) -> None:
        self.rule, self.expansion = rule, by
        self.sizes, self.integers, self.axes = by.sizes, by.integers, by.axes
        self.known: set[str] = set()
        self.causes: dict[str, Ref] = {}
        self.partial: set[str] = set()
        self.equations: list[Definition] = []
        self.unknowns: dict[str, Expr] = {}

    def run(self) -> Rule:
        rule = self.rule
        inputs = tuple(
            self._scalar(variable, name)
            for variable in rule.inputs
            if variable.name not in self.integers
            for name in self._elements(variable.name)
        )
        outputs = tuple(
            self._scalar(variable, name)
            for variable in rule.outputs
            for name in self._elements(variable.name)
        )
        self.known = {variable.name for variable in inputs}
        forward = self._lets(rule.forward)
        self._require(Ref(output.name) for output in outputs)
        surrogates = [s for one in rule.surrogates for s in self._each(one)]
        self._require(s.value for s in surrogates)
        assumes = tuple(a for one in rule.assumes for a in self._assume(one))
        self.known |= {output.cotangent for output in outputs}
        backward = self._backward()
        definitions = (*forward, *surrogates, *backward)
        unknowns = (  # made after the definitions
            Input(unknown(one.name), Kind.NOGRAD, Shape(), span=one.span)
            for one in self.equations
        )
        return replace(
            rule,
            inputs=(*inputs, *unknowns),
            outputs=outputs,
            definitions=definitions,
            assumes=assumes,
            saves=(),
            recomputes=(),
            exacts=(),
            examples=(),
        )

    def _elements(self, name: str) -> Iterator[str]:
        axes = self.axes[name]
        return (element(name, index) for index in places(axes, self.sizes))

    def _scalar(self, variable: _V, name: str) -> _V:
        return replace(
            variable, name=name, shape=replace(variable.shape, batch=True, axes=())
        )

    def _values(
        self, value: Expr, indices: tuple[str, ...], axes: Axes
    ) -> Iterator[tuple[Index, Expr]]:
        for index in places(axes, self.sizes):
            env = dict(zip(indices, index, strict=True))
            yield index, self.expansion.expand(value, env)

    def _require(self, values: Iterable[Expr]) -> None:
        """Raise OutOfRange unless every value uses only elements that exist."""
        for value in values:
            used = self._missing(value)
            if used is not None:
                through = None
                while used.name in self.causes:
                    through, used = used, self.causes[used.name]
                raise OutOfRange(used.name, used.span, through)

    def _missing(self, value: Expr) -> Ref | None:
        """The element that a value lacks: it does not exist, or is a local that lacks
        it."""
        if names(value) <= self.known:
            return None
        unknown = (n for n in nodes(value) if isinstance(n, Ref))
        return next(n for n in unknown if n.name not in self.known)

    # --- forward ---------------------------------------------------------------------

    def _lets(self, lets: tuple[Definition, ...]) -> tuple[Definition, ...]:
        """An element of a local that uses one that does not exist does not exist."""
        made = []
        for name, one in self._elements_of(lets):
            missing = self._missing(one.value)
            if missing is None:
                self.known.add(one.name)
                made.append(one)
            else:
                self.causes[one.name] = missing
                self.partial.add(name)
        return tuple(made)

    def _elements_of(
        self, lets: tuple[Definition, ...]
    ) -> Iterator[tuple[str, Definition]]:
        """The definitions of the elements, each with the name of its value; those of a
        recurrence in its order."""
        for part in components(lets, self.rule.assumes):
            if isinstance(part, Definition):
                yield from ((part.name, one) for one in self._each(part))
                continue
            if isinstance(part, System):
                yield from self._unknowns(part)
                continue
            for let, index in part.elements(self.sizes):
                env = dict(zip(let.indices, index, strict=True))
                yield (
                    let.name,
                    self._element_at(let, index, self.expansion.expand(let.value, env)),
                )

    def _unknowns(self, part: System) -> Iterator[tuple[str, Definition]]:
        """Elements that equations define; an element that is a number needs none."""
        for let in part.values:
            begun = self._values(let.start or ZERO, let.indices, let.axes)
            for one, (_, start) in zip(self._each(let), begun, strict=True):
                if isinstance(one.value, Const):
                    yield let.name, one
                    continue
                started = replace(one, start=let.start and start)
                self.equations.append(started)
                self.known.add(unknown(one.name))
                given = self.unknowns[one.name] = Ref(unknown(one.name), span=one.span)
                yield let.name, replace(one, value=given)

    def _each(self, one: Definition) -> Iterator[Definition]:
        """The definitions of its elements."""
        for index, value in self._values(one.value, one.indices, one.axes):
            yield self._element_at(one, index, value)

    def _element_at(self, one: Definition, index: Index, value: Expr) -> Definition:
        name = element(one.name, index)
        return replace(
            one,
            name=name,
            value=value,
            indices=(),
            axes=(),
            is_equation=False,
            start=None,
        )

    def _assume(self, one: Assume) -> Iterator[Assume]:
        """Assumptions without those that hold whatever the data are."""
        indices = tuple(name for name, _ in one.indices)
        axes = tuple(axis for _, axis in one.indices)
        for _, condition in self._values(one.condition, indices, axes):
            if decide(condition) is not True:
                self._require((condition,))
                yield Assume(substitute(condition, self.unknowns), (), one.span)

    # --- backward --------------------------------------------------------------------

    def _backward(self) -> Iterator[Definition]:
        """Locals and declared gradients may use one another in any order."""
        made = [one for entry in self.rule.backward for one in self._each(entry)]
        self.known |= {one.name for one in made if not one.is_derived}
        lets = self._existing(
            [one for _, one in self._elements_of(self.rule.backward_locals)]
        )
        self._require(one.value for one in made)
        yield from (*lets, *made)

    def _existing(self, lets: list[Definition]) -> tuple[Definition, ...]:
        self.known |= {let.name for let in lets}
        while missing := [let for let in lets if not names(let.value) <= self.known]:
            self.known -= {let.name for let in missing}
            self.partial |= {let.name.partition("[")[0] for let in missing}
            lets = [let for let in lets if let.name in self.known]
        return tuple(lets)


def count(rule: Rule, sizes: Mapping[str, int]) -> int:
    """The number of elements of inputs and outputs, a measure of the cost of
    unrolling."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    shapes = ((extent(a, sizes) for a in v.shape.axes) for v in variables)
    return sum(prod(shape) for shape in shapes)


def work(rule: Rule, sizes: Mapping[str, int]) -> int:
    """The number of nodes that unrolling visits, at most."""
    return sum(
        prod(extent(axis, sizes) for axis in one.axes) * _visits(one.value, sizes)
        for one in rule.values.values()
    )


def _visits(value: Expr, sizes: Mapping[str, int]) -> int:
    found: dict[Expr, int] = {}
    for node in nodes(value):
        below = sum(found[child] for child in node.below)
        if isinstance(node, Reduce):
            below *= prod(extent(bound.axis, sizes) for bound in node.bounds)
        found[node] = 1 + below
    return found[value]


# --- sizes ----------------------------------------------------------------------------
#
# Small sizes are taken whole: every combination of 1 to 3 for every axis, and every value
# of the integers that serve as indices. A rule with many axes has too many of them, and is
# then taken at 1 and 2. Larger sizes are one combination, with a size of its own for every
# axis, so that axes which were confused at equal sizes are told apart.


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


def unrolled_at(
    rule: Rule, sizes: Sizes, statics: Sizes = MappingProxyType({})
) -> tuple[tuple[Unrolled, ...], tuple[Gap, ...]]:
    """The rule at one combination, for each value of the index inputs but those that
    ``statics`` gives, and the gaps."""
    if not rule.has_axes and not any(d.is_equation for d in rule.definitions):
        return (Unrolled(rule, {}),), ()
    if _is_beyond_reach(rule, sizes):
        return (), ()
    if is_assumed_away(rule, sizes):
        return (), ()
    made: list[Unrolled] = []
    gaps: list[Gap] = []
    every = ({**integers, **statics} for integers in _fillings(rule, sizes))
    for integers in {tuple(one.items()): one for one in every}.values():
        if is_assumed_away(rule, sizes, integers):
            continue  # a step by such an integer need not be one to an earlier place
        try:
            one = unroll(rule, sizes, integers)
        except OutOfRange as fault:
            gaps.append(Gap(sizes, integers, fault))
            continue
        if not any(decide(a.condition) is False for a in one.rule.assumes):
            made.append(one)
    return tuple(made), tuple(gaps)


def is_beyond(rule: Rule, gap: Gap) -> bool:
    """True if a shift leaves the axis at a gap, which may not be what it is for."""
    return any(
        (gap.integers[variable.name],) in _beyond(variable, size)
        for variable, size, _ in _pointing(rule, gap.sizes)
    )


def is_too_large(rule: Rule) -> bool:
    """True if fixed sizes and ranges give too many elements, or too much work, even if
    every named axis has one."""
    sizes = dict.fromkeys(axis_names(rule), 1)
    return _is_beyond_reach(rule, sizes)


def _is_beyond_reach(rule: Rule, sizes: Sizes) -> bool:
    return count(rule, sizes) > MOST_ELEMENTS or (
        rule.has_axes and work(rule, sizes) > _WORK
    )


def is_assumed_away(
    rule: Rule, sizes: Sizes, integers: Mapping[str, Nested] | None = None
) -> bool:
    """True if an assumption about sizes (``n > 1``) and given integers alone does not
    hold."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Size) and node.axis in sizes:
            return const(sizes[node.axis])
        if isinstance(node, Ref) and integers and not node.indices:
            value = integers.get(node.name)
            return const(value) if isinstance(value, int) else node
        return fold(node)

    plain = (a.condition for a in rule.assumes if not a.indices)
    return any(decide(transform(condition, visit)) is False for condition in plain)


@lru_cache(maxsize=64)
def partial(rule: Rule) -> frozenset[str]:
    """The locals that lack elements at every size at which the rule is defined."""
    if not _may_be_partial(rule):
        return frozenset()
    every = [
        one.partial
        for sizes in small(rule).combinations
        for one in unrolled_at(rule, sizes)[0]
    ]
    beyond = (unrolled_at(rule, sizes)[0] for sizes in larger(rule))
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


# --- integers that serve as indices ------------------------------------------------------


def _number(rule: Rule, sizes: Sizes) -> int:
    """The number of combinations of values of the index inputs."""
    pointing = _pointing(rule, sizes)
    return prod(size**number for v, size, number in pointing if not v.kind.is_static)


def _fillings(rule: Rule, sizes: Sizes) -> Iterator[Mapping[str, Nested]]:
    """Values for the index inputs: all of them if they are few. One shift at a time
    leaves its axis, too, and those with defaults move together, so that what differs by
    default still does."""
    pointing = _pointing(rule, sizes)
    few = _number(rule, sizes) <= _FILLINGS
    pools: list[list[tuple[int, ...]]] = []
    beyond: list[list[tuple[int, ...]]] = []
    for variable, size, number in pointing:
        beyond.append(_beyond(variable, size))
        if variable.kind.is_static:
            pools.append(_static(variable, size))
        elif few:
            pools.append(list(product(range(size), repeat=number)))
        else:
            pools.append(_some(size, number))
    join = product if few else zip
    usual = tuple(join(*pools))
    outer = (join(*pools[:k], one, *pools[k + 1 :]) for k, one in enumerate(beyond))
    is_given = [v.kind.is_static and v.default is not None for v, _, _ in pointing]
    next_pools = (
        _next(v, size) if given else pool
        for (v, size, _), given, pool in zip(pointing, is_given, pools, strict=True)
    )
    moved = join(*next_pools) if any(is_given) else ()
    together = (*usual[:1], *chain.from_iterable(outer), *moved, *usual[1:])
    for chosen in together:
        yield {
            v.name: _nest(values, [extent(a, sizes) for a in v.shape.axes])
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


def _beyond(variable: Input, size: int) -> list[tuple[int, ...]]:
    """Values of a shift that leave the axis, if the author does not give his own."""
    is_free = variable.kind.is_static and variable.default is None
    return [(size,), (size + 1,), (-1,)] if is_free else []


def _next(variable: Input, size: int) -> list[tuple[int, ...]]:
    """The value after the author's own, if it fits."""
    if not variable.kind.is_static or variable.default is None:
        return []
    following = int(variable.default) + 1
    return [(following,)] if following < size else []


def _some(size: int, number: int) -> list[tuple[int, ...]]:
    """Some index values: in order, all equal, reversed, from the end, and with
    repetitions."""
    order = [k % size for k in range(number)]
    return [
        tuple(order),
        (0,) * number,
        tuple(reversed(order)),
        tuple(size - 1 - k for k in order),
        tuple((2 * k + 1) % size for k in range(number)),
    ]


def _nest(values: tuple[int, ...], shape: list[int]) -> Nested:
    if not shape:
        return values[0]
    step = prod(shape[1:])
    rows = (values[k * step : (k + 1) * step] for k in range(shape[0]))
    return tuple(_nest(row, shape[1:]) for row in rows)


def _has_shift(rule: Rule) -> bool:
    """True if an index uses a static: one value of it is no proof for the others."""
    pointing = index_inputs(rule)
    named = axis_names(rule)
    return any(i.name in pointing and i.name not in named for i in rule.static_inputs)
