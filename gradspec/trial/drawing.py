"""The inputs of a call of a function over named axes, drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from gradspec.ir.elements import element, extent, places
from gradspec.ir.rule import Input, Kind, Output, Rule
from gradspec.ir.unroll import index_inputs
from gradspec.trial.shapes import Place, place_in

Cells = dict[Place, Fraction]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The inputs, upstream gradients and probes of a call, and one point for each
    element of its batch, with where in each input that element lies.
    """

    shapes: Mapping[str, Place]
    cells: Mapping[str, Cells]
    points: tuple[tuple[Place, dict[str, Fraction]], ...]


def attempt(
    rule: Rule,
    sizes: Mapping[str, int],
    batches: Mapping[str, Place],
    rng: random.Random,
) -> Drawn:
    """One draw; whether the rule allows it is another question."""
    common = rng.choice(STYLES)
    pointed = index_inputs(rule)
    shapes, cells = dict(batches), {}
    for variable in rule.inputs:
        if variable.name in sizes:
            continue
        style = common if rng.random() < 0.5 else rng.choice(STYLES)
        spots = _spots(variable, sizes, shapes)
        top = extent(pointed[variable.name], sizes) if variable.name in pointed else 3
        cells[variable.name] = _numbers(variable, spots, style, top, rng)
        if variable.takes_gradient:
            probes = _distinct(rng, len(spots), -64, 64, 32)
            cells[f"probe {variable.name}"] = dict(zip(spots, probes, strict=True))
    for output in rule.outputs:
        if output.takes_gradient:
            spots = _spots(output, sizes, {output.name: shapes[f"d{output.name}"]})
            numbers = _distinct(rng, len(spots), -96, 96, 32)
            cells[f"d{output.name}"] = dict(zip(spots, numbers, strict=True))
    return Drawn(shapes, cells, tuple(_points(rule, sizes, shapes, cells)))


def _spots(
    variable: Input | Output, sizes: Mapping[str, int], shapes: Mapping[str, Place]
) -> list[Place]:
    batch = product(*map(range, shapes[variable.name]))
    core = list(places(variable.shape.axes, sizes))
    return [(*place, *index) for place in batch for index in core]


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
) -> Iterator[tuple[Place, dict[str, Fraction]]]:
    """The scalars that one element of the batch sees."""
    whole = shapes[f"d{rule.outputs[0].name}"]
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = {v.name: v.shape.axes for v in variables}
    axes |= {f"d{o.name}": o.shape.axes for o in rule.outputs}
    for place in product(*map(range, whole)):
        point = {}
        for name, array in cells.items():
            bare = name.removeprefix("probe ")
            prefix = "probe " if bare != name else ""
            here = place_in(place, shapes[bare])
            for index in places(axes[bare], sizes):
                point[prefix + element(bare, index)] = array[(*here, *index)]
        yield place, point
