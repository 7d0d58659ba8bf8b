"""Arguments of calls: sizes, batch axes and arrays of distinct numbers of a few styles, of
which the assumptions of a rule may or may not allow a draw.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from gradspec.ir.elements import element, extent, places
from gradspec.ir.rule import Input, Kind, Output, Rule
from gradspec.ir.unroll import axis_names, count, index_inputs

Place = tuple[int, ...]
Cells = dict[Place, Fraction]
Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The inputs, cotangents and probes of a call, by place, and one point for each
    element of the whole batch. ``shapes`` are the batch axes of each input and
    cotangent.
    """

    shapes: Mapping[str, Place]
    cells: Mapping[str, Cells]
    points: tuple[tuple[Place, Point], ...]

    def within(self, shape: Place) -> Iterator[tuple[Place, Point]]:
        """One point of the whole batch for each element of ``shape``."""
        seen = set()
        for place, point in self.points:
            here = place_in(place, shape)
            if here not in seen:
                seen.add(here)
                yield place, point


def place_in(place: Place, shape: Place) -> Place:
    """The index into an array of batch shape ``shape`` for the element at ``place`` of
    the whole batch.
    """
    last = place[len(place) - len(shape) :]
    return tuple(0 if n == 1 else k for k, n in zip(last, shape, strict=True))


SIZES = ((2, 3), (1, 2, 3), (1,), (1, 2))
"""From what the sizes of a call's axes are drawn, call by call."""

BATCHES: tuple[Place, ...] = ((), (2, 3), (2,), (0,))
"""The batches of the calls, the last one empty."""

LARGEST = 60
"""Elements of inputs and outputs of one element of a batch: scalars have their
price."""

TRIES = 60


def batch_shapes(rule: Rule, rng: random.Random) -> Iterator[Mapping[str, Place]]:
    """For each call the batch axes of every input, and of every output's cotangent."""
    batched = [i for i in rule.tensor_inputs if i.shape.batch]
    whole_outputs = all(output.shape.batch for output in rule.outputs)
    for batch in BATCHES:
        here = batch if batched and whole_outputs else ()
        shapes: dict[str, Place] = {i.name: () for i in rule.inputs}
        keeper = rng.choice(batched) if batched else None
        for variable in batched:
            shapes[variable.name] = _part(here, variable, keeper, rng)
        yield shapes | {output.cotangent: here for output in rule.outputs}


def _part(
    batch: Place, variable: Input, keeper: Input | None, rng: random.Random
) -> Place:
    """The whole batch for one input; of the others some lack axes or have size 1."""
    if variable is keeper or rng.random() < 0.3:
        return batch
    fewer = batch[rng.randrange(len(batch) + 1) :]
    return tuple(1 if rng.random() < 0.4 else size for size in fewer)


def size_choices(
    rule: Rule, number: int, rng: random.Random
) -> Iterator[dict[str, int]]:
    """Sizes to try in this order, until one makes sense for the rule."""
    names = axis_names(rule)
    choices = SIZES[number % len(SIZES)]
    for attempt in range(TRIES):
        pool = choices if attempt < TRIES // 2 else (1, 2, 3, 4)
        sizes = {name: rng.choice(pool) for name in names}
        if count(rule, sizes) <= LARGEST:
            yield sizes


def broadcast(shapes: Iterable[Place]) -> Place:
    """The joint shape of arrays that broadcast."""
    listed = list(shapes)
    rank = max(map(len, listed), default=0)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in listed]
    return tuple(
        0 if 0 in sizes else max(sizes) for sizes in zip(*aligned, strict=True)
    )


# --- arguments ----------------------------------------------------------------------


def attempt(
    rule: Rule,
    sizes: Mapping[str, int],
    batches: Mapping[str, Place],
    rng: random.Random,
) -> Drawn:
    """One draw, which the rule's assumptions may or may not allow."""
    common = rng.choice(STYLES)
    pointed = index_inputs(rule)
    cells: dict[str, Cells] = {}
    for variable in rule.inputs:
        if variable.name in sizes:
            continue
        style = common if rng.random() < 0.5 else rng.choice(STYLES)
        spots = _spots(variable, sizes, batches[variable.name])
        top = extent(pointed[variable.name], sizes) if variable.name in pointed else 3
        cells[variable.name] = _numbers(variable, spots, style, top, rng)
        if variable.takes_gradient:
            probes = _distinct(rng, len(spots), -64, 64, 32)
            cells[f"probe {variable.name}"] = dict(zip(spots, probes, strict=True))
    for output in rule.outputs:
        if output.takes_gradient:
            spots = _spots(output, sizes, batches[output.cotangent])
            numbers = _distinct(rng, len(spots), -96, 96, 32)
            cells[output.cotangent] = dict(zip(spots, numbers, strict=True))
    return Drawn(batches, cells, tuple(_points(rule, sizes, batches, cells)))


def drawn_at(rule: Rule, points: Sequence[Mapping[str, Fraction]]) -> Drawn:
    """A call of an elementwise rule at points with equal statics: a vector of them, or
    one of them where an input has no batch axes.
    """
    rng = random.Random(rule.name)
    is_batched = all(i.shape.batch for i in rule.tensor_inputs)
    batch: Place = (len(points),) if is_batched else ()
    shapes = {i.name: () if i.kind.is_static else batch for i in rule.inputs}
    shapes |= {output.cotangent: batch for output in rule.outputs}
    cells: dict[str, Cells] = {}
    for name in (name for name in points[0] if name in shapes):
        spots = list(product(*map(range, shapes[name])))
        cells[name] = {s: points[s[0] if s else 0][name] for s in spots}
    for variable in rule.inputs:
        if variable.takes_gradient:
            spots = [*cells[variable.name]]
            probes = _distinct(rng, len(spots), -64, 64, 32)
            cells[f"probe {variable.name}"] = dict(zip(spots, probes, strict=True))
    return Drawn(shapes, cells, tuple(_points(rule, {}, shapes, cells)))


def _spots(
    variable: Input | Output, sizes: Mapping[str, int], batch: Place
) -> list[Place]:
    core = list(places(variable.shape.axes, sizes))
    return [(*place, *index) for place in product(*map(range, batch)) for index in core]


STYLES = ((-1536, 1536, 1024), (64, 1536, 1024), (32, 960, 1024), (16, 1024, 8192))
"""Numbers of both signs, positive ones, ones below 1, and small shares of a whole."""


def _numbers(
    variable: Input,
    spots: list[Place],
    style: tuple[int, int, int],
    top: int,
    rng: random.Random,
) -> Cells:
    """Distinct numbers of the style (no ties), or what the kind asks for. Half of the
    masks keep the first of each row: of nothing there may be no largest, and the others
    keep nothing of some rows if the rule says what it is then.
    """
    if variable.kind.is_static and variable.default is not None:
        return {(): variable.default}
    match variable.kind:
        case Kind.INT:
            return {spot: Fraction(rng.randrange(top)) for spot in spots}
        case Kind.BOOL:
            least = rng.choice(((0,), (-1,)))
            return {s: Fraction(rng.random() < 0.6 or s[-1:] == least) for s in spots}
        case Kind.STATIC_INT:
            return {(): Fraction(rng.randrange(1, 4))}
        case _:
            numbers = _distinct(rng, len(spots), *style)
            return dict(zip(spots, numbers, strict=True))


def _distinct(
    rng: random.Random, count: int, low: int, high: int, unit: int
) -> list[Fraction]:
    wide = max(1, 2 * count // (high - low))
    return [
        Fraction(k, unit) for k in rng.sample(range(low * wide, high * wide), count)
    ]


def _points(
    rule: Rule,
    sizes: Mapping[str, int],
    shapes: Mapping[str, Place],
    cells: Mapping[str, Cells],
) -> Iterator[tuple[Place, Point]]:
    """The scalars that one element of the whole batch sees."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = {v.name: v.shape.axes for v in variables}
    axes |= {o.cotangent: o.shape.axes for o in rule.outputs}
    for place in product(*map(range, broadcast(shapes.values()))):
        point = {}
        for name, array in cells.items():
            bare = name.removeprefix("probe ")
            prefix = "probe " if bare != name else ""
            here = place_in(place, shapes[bare])
            for index in places(axes[bare], sizes):
                point[prefix + element(bare, index)] = array[(*here, *index)]
        yield place, point
