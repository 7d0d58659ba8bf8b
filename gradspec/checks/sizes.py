"""Sizes at which conditions on indices and sizes first have another truth.

``n <= 4`` and ``i < 7`` hold at all small sizes, and ``i * (i - 1) * (i - 2)`` is 0. So
what consists of indices, sizes and numbers alone is evaluated at small sizes, at larger
ones and near its numbers. The signs of all such differences in one value are an order;
a size is looked at if it has an order that no size has that was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import product
from math import isqrt, prod
from typing import TypeAlias

from gradspec.derive.indexed import closed_cotangent
from gradspec.ir.elements import PLAIN, Expansion, Nested, above_reductions, extent
from gradspec.ir.expr import (
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
    show,
)
from gradspec.ir.recurrence import recurrences
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import Sizes, index_inputs, is_assumed_away
from gradspec.ir.walk import names, nodes, transform
from gradspec.symbolic.borders.bounds import STEPS, borders_of
from gradspec.symbolic.borders.signs import sign_of
from gradspec.symbolic.enclose import Program, program

_EVERY, _LARGEST = 10_000, 100
"""Combinations of sizes and indices of which every one is looked at, up to a size."""

_MOST = 40_000
"""Combinations that are looked at in all."""

_JOINT = 6
"""Indices and sizes up to which the differences of one value have a common order."""

_CHOICES = 3  # of sizes for one order
_FAR = tuple(2**k for k in range(3, 21))

Order: TypeAlias = tuple[int | None, ...]


class Gaps:
    """Differences of indices, sizes and numbers in one value; ``env`` are the axes of
    their indices. Static integers without defaults are chosen as sizes are; they are
    among the ``axes``."""

    def __init__(self, gaps: tuple[Expr, ...], env: Mapping[str, str | int]) -> None:
        every = [node for gap in gaps for node in nodes(gap)]
        self.bounds = [b for n in every if isinstance(n, Reduce) for b in n.bounds]
        used = {name for gap in gaps for name in gap.free}
        self.env = {name: axis for name, axis in env.items() if name in used}
        axes = [*self.env.values(), *(bound.axis for bound in self.bounds)]
        axes += [node.axis for node in every if isinstance(node, Size)]
        self.statics = tuple(dict.fromkeys(n.name for n in every if isinstance(n, Ref)))
        named = dict.fromkeys(a for a in axes if isinstance(a, str))
        self.axes = (*named, *self.statics)
        self.numbers = {int(abs(n.value)) for n in every if isinstance(n, Const)}
        self.gaps = gaps
        self.dimensions = len(self.axes) + len(self.env)
        self._every = min(int(_EVERY ** (1 / max(self.dimensions, 1))), _LARGEST)

    def orders(
        self, rule: Rule, sizes: Sizes, integers: Mapping[str, Nested]
    ) -> frozenset[Order]:
        """The orders at some sizes, for indices that may matter, and given integers;
        those that are assumed away are left out."""
        chosen = {**sizes, **{n: v for n, v in integers.items() if isinstance(v, int)}}
        if not {*self.axes} <= chosen.keys():
            return frozenset()
        given = {f"size of {axis}": chosen[axis] for axis in self.axes}
        given |= {name: chosen[name] for name in self.statics}
        inputs = ((name, name.partition("[")[0]) for name in self.env)
        pools = [
            _flat(integers[stem]) if stem in integers else self._pool(name, sizes)
            for name, stem in inputs
        ]
        every = (dict(zip(self.env, p, strict=True)) for p in product(*pools))
        assumed = {n for a in rule.assumes for n in names(a.condition)}
        statics = tuple(name for name in self.env if name in assumed)
        is_away = lru_cache(None)(
            lambda *chosen: is_assumed_away(
                rule, sizes, dict(zip(statics, chosen, strict=True))
            )
        )
        points = (
            point
            for point in every
            if not statics or not is_away(*(point[name] for name in statics))
        )
        if self.bounds:
            by = Expansion({}, sizes, {n: chosen[n] for n in self.statics}, PLAIN)
            each = (tuple(by.expand(g, point) for g in self.gaps) for point in points)
            values = (Program(gaps).run({}, 64) for gaps in each)
        else:
            compiled = program(*(transform(gap, _as_input) for gap in self.gaps))
            values = (compiled.run({**given, **point}, 64) for point in points)
        return frozenset(tuple(map(sign_of, gaps)) for gaps in values)

    def _pool(self, name: str, sizes: Sizes) -> list[int]:
        size = extent(self.env[name], sizes)
        if size <= max(self._every, 3):
            return list(range(size))
        near = (n + step for n in self.numbers for step in (-1, 0, 1))
        some = {0, 1, size // 2, size - 2, size - 1, *near}
        return sorted(k for k in some if 0 <= k < size)

    @cached_property
    def candidates(self) -> tuple[Sizes, ...]:
        """Every combination of sizes up to a limit, and larger ones."""
        places = [axis in self.statics for axis in self.axes]
        few = (range(1 - 2 * is_static, self._every + 1) for is_static in places)
        found = dict.fromkeys(product(*few))
        around = {*self.numbers, *map(isqrt, self.numbers)}
        around |= {n // k for n in self.numbers for k in self.numbers if k > 1}
        near = {number + step for number in around for step in (-1, 0, 1, 2)}
        steps = (*near, *(-number for number in near)) if sum(places) == 1 else ()
        for far in (*near, *_FAR):
            size, static = (2, max(far, 1)), (0, 2, far, *steps)
            pools = (dict.fromkeys(static if one else size) for one in places)
            found |= dict.fromkeys(product(*pools))
        ordered = sorted(found, key=lambda sizes: (max(map(abs, sizes)), sizes))
        return tuple(dict(zip(self.axes, sizes, strict=True)) for sizes in ordered)

    def first_met(self, rule: Rule) -> tuple[dict[Order, list[Sizes]], Sizes | None]:
        """Each order with the smallest sizes that have it and are not assumed away; and
        the sizes from which on nothing was looked at, if any."""
        found: dict[Order, list[Sizes]] = {}
        left = _MOST
        for sizes in self.candidates:
            statics = {name: sizes[name] for name in self.statics}
            if not is_assumed_away(rule, sizes, statics):
                terms = prod(extent(bound.axis, sizes) for bound in self.bounds)
                left -= terms * prod(len(self._pool(name, sizes)) for name in self.env)
                if left < 0:
                    return found, sizes
                for order in self.orders(rule, sizes, {}):
                    choices = found.setdefault(order, [])
                    choices += [sizes][: len(choices) < _CHOICES]
        return found, None


@lru_cache(maxsize=64)
def gaps_of(rule: Rule) -> tuple[Gaps, ...]:
    """The differences of each value: together, or each alone if there are many
    indices."""
    statics = {i.name: i.default for i in rule.static_inputs if i.default is not None}
    free = frozenset(
        i.name
        for i in rule.static_inputs
        if i.kind is Kind.STATIC_INT and i.default is None and not i.is_size
    )
    pointing = {n: axis for n, axis in index_inputs(rule).items() if n not in free}
    found: dict[tuple[Expr, ...], Gaps] = {}
    for value, env in _values(rule):
        bounds = (b for n in nodes(value) if isinstance(n, Reduce) for b in n.bounds)
        env |= {bound.index: bound.axis for bound in bounds}
        for scope in _scopes(value):
            sides = (_with_statics(gap, statics, pointing) for gap in scope)
            every = (gap for gap in sides if names(gap) <= free)
            gaps = _with_places(tuple(dict.fromkeys(every)))
            values = (n for gap in gaps for n in nodes(gap) if isinstance(n, Idx))
            stems = ((n.name, n.name.partition("[")[0]) for n in values)
            env |= {name: pointing[stem] for name, stem in stems if stem in pointing}
            is_small = Gaps(gaps, env).dimensions <= _JOINT
            for part in (gaps,) if is_small else zip(gaps):
                found[part] = Gaps(part, env)
    return tuple(gaps for gaps in found.values() if gaps.axes)


def _values(rule: Rule) -> Iterator[tuple[Expr, dict[str, str | int]]]:
    for let in rule.forward:
        yield let.value, dict(zip(let.indices, let.axes, strict=True))
    for one in rule.surrogates:
        yield one.value, dict(zip(one.indices, one.axes, strict=True))
    if any(one.is_equation for one in rule.definitions):
        for one in (*rule.backward_locals, *rule.declared.values()):
            yield one.value, dict(zip(one.indices, one.axes, strict=True))
        return
    for part in recurrences(rule, rule.backward_locals):
        for let in part.values:
            yield let.value, dict(zip(let.indices, let.axes, strict=True))
    for entry in rule.declared.values():
        places = {str(place): axis for place, axis in enumerate(entry.axes)}
        yield closed_cotangent(rule, entry), places


def _scopes(value: Expr, outside: tuple[Expr, ...] = ()) -> Iterator[tuple[Expr, ...]]:
    """The differences in each innermost reduction with those around it: the sides of
    what is compared, and what may be 0."""
    above = tuple(above_reductions(value))
    plain = above_reductions(transform(value, _without_indices))
    compared = (gap for node in above for gap in _compared_pairs(node))
    gaps = (*outside, *compared, *(n for n in plain if isinstance(n, Apply)))
    inner = [node for node in above if isinstance(node, Reduce)]
    for reduction in inner:
        below = reduction.below
        yield from _scopes(below[0] if len(below) == 1 else Apply("and", below), gaps)
    if not inner:
        yield gaps


def _compared_pairs(node: Expr) -> Iterator[Expr]:
    match node:
        case Apply(op="mod", args=pair):
            yield Apply("sub", pair)
        case Apply(op=op, args=(arg,)) if op in STEPS:
            yield Apply("sub", (arg, Const(STEPS[op])))
        case _:
            yield from (Apply("sub", pair) for pair in borders_of(node))


def _with_places(gaps: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The differences with indices or sizes, and those of statics that stand in one."""
    known = {gap for gap in gaps if any(map(_is_place, nodes(gap)))}
    met = frozenset[str]().union(*map(names, known))
    return tuple(gap for gap in gaps if gap in known or names(gap) & met)


def _is_place(node: Expr) -> bool:
    return isinstance(node, Idx | Size | Reduce)


def _with_statics(
    expr: Expr, statics: Mapping[str, object], pointing: Mapping[str, str | int]
) -> Expr:
    """Defaults in place of statics; an integer that serves as an index is one."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in statics:
            return const(statics[node.name])  # type: ignore[arg-type]
        is_index = isinstance(node, Ref) and node.name in pointing
        return Idx(show(node)) if is_index else _counted(fold(node))

    return transform(expr, visit)


def _counted(node: Expr) -> Expr:
    """A sum of what is the same for all of its indices, as the product that it is."""
    if not (isinstance(node, Reduce) and node.op == "sum"):
        return node
    indices = {bound.index for bound in node.bounds}
    if any(indices & {*part.free} for part in node.below):
        return node
    value = node.body if node.where is None else Select(node.where, node.body, ZERO)
    for bound in node.bounds:
        times = Size(bound.axis) if isinstance(bound.axis, str) else const(bound.axis)
        value = Apply("mul", (times, value))
    return value


def _flat(value: Nested) -> list[int]:
    return [value] if isinstance(value, int) else [n for v in value for n in _flat(v)]


def _without_indices(node: Expr) -> Expr:
    return Ref("") if isinstance(node, Ref) and node.indices else node


def _as_input(node: Expr) -> Expr:
    match node:
        case Idx(name=name):
            return Ref(name)
        case Size(axis=axis):
            return Ref(f"size of {axis}")
        case _:
            return node
