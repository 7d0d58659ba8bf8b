"""Points at which a value is a normal number though parts of it are subnormal, and what
of a value is lost there on targets that take subnormal numbers for 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Kind, Rule
from gradspec.stabilise.depths import depths
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import (
    DOUBLE,
    SINGLE,
    Grid,
    Points,
    collected,
    points,
    sound,
)
from gradspec.symbolic.truth import nearest

NEAR = 16.0
"""ULP between a value and what counts as the same."""

_LIKE = 24
_DEPTHS = (0.5, 1.5, 4.0, 7.0, 12.0)
"""How far beyond the last normal exponential an argument is."""
_DEPTHS_OF_A_DOUBLE = (0.3, 0.9)
"""The same where it is a double: ``4 * sigmoid(2 * x) * sigmoid(-2 * x)``."""

_SEVERAL = 2
_TOWARDS = 10  # powers of two between a tiny input and the least normal number

_ROOTS = (1.1, 1.5, 1.9)
"""What a number is in roots of the least normal number."""

_SAME = 1e-3
"""How near to another point one tells nothing new."""

_BEGIN = (80.5, 84.0)
_SMALL = 2.0**-61
"""Where exponentials, and inputs, begin to be taken larger (`scaled.py`)."""


def brinks(rule: Rule) -> tuple[Points, ...]:
    """Where the parts of a value may be subnormal, in float32 and in float64."""
    return tuple(_brink(rule, grid) for grid in (SINGLE, DOUBLE))


@lru_cache(maxsize=8)
def _brink(rule: Rule, grid: Grid) -> Points:
    sample = points(rule, grid)
    rows = [dict(row) for row in sample.rows[:: max(1, len(sample.rows) // _LIKE)]]
    for row in rows:
        row |= {f"d{output.name}": 1.0 for output in rule.outputs}
    statics = {s.name: float(s.default) for s in rule.static_inputs if s.default}
    rows = [row | statics for row in rows]
    kinds = (_far, _tiny, _squared, _apart) if rows else ()
    made = [row for kind in kinds for row in kind(rule, rows, grid)]
    made += _deep(rule, rows, made, statics, grid)
    return collected(rule, [*islice(sound(rule, made, grid), len(made))], grid)


def _floats(rule: Rule) -> list[str]:
    return [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]


def _deep(
    rule: Rule,
    rows: list[dict[str, float]],
    made: list[dict[str, float]],
    statics: dict[str, float],
    grid: Grid,
) -> list[dict[str, float]]:
    """One input where a part of the values is subnormal, if it is at no point yet."""
    if not rows:
        return []
    found = [
        (name, x)
        for name, x in depths(rule, tuple(_floats(rule)), statics, grid.work)
        if not any(math.isclose(row[name], x, rel_tol=_SAME) for row in made)
    ]
    return [rows[n % len(rows)] | {name: x} for n, (name, x) in enumerate(found)]


def _far(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """One input where its exponential, or that of its double or its square, leaves the
    normal numbers, at either end."""
    end = -float(np.log(np.finfo(grid.work).tiny))
    squares = (k * (end + depth) for k in (1, 2) for depth in _DEPTHS[:2])
    halves = ((end + depth) / 2 for depth in _DEPTHS_OF_A_DOUBLE)
    sizes = (*(end + depth for depth in _DEPTHS), *_BEGIN, *map(math.sqrt, squares))
    sizes += tuple(halves)
    for position, name in enumerate(_floats(rule)):
        for number, size in enumerate(sizes):
            for sign in (-1.0, 1.0):
                like = rows[(3 * number + position) % len(rows)]
                yield like | {name: float(grid.work(sign * size))}


def _tiny(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """All inputs tiny, and so near to each other that differences are subnormal."""
    random, least = Random(23), float(np.finfo(grid.work).tiny)
    for number, like in enumerate(rows):
        powers = ((0.5, _TOWARDS), (0.05, 0.5))[number % 3 % 2]
        size = _SMALL if number % 3 == 2 else least * 2.0 ** random.uniform(*powers)
        step = 1.0 + 2.0 ** -random.randrange(1, _TOWARDS)
        sign = -1.0 if number % 2 else 1.0
        sizes = (sign * size * step**place for place in range(len(rows)))
        yield like | {
            name: float(grid.work(s))
            for name, s in zip(_floats(rule), sizes, strict=False)
        }


def _squared(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """The only input where its square is hardly a normal number: `2 * sin(x / 2)**2`."""
    floats = _floats(rule)
    if len(floats) == 1:
        for number, factor in enumerate(_ROOTS):
            size = factor * math.sqrt(float(np.finfo(grid.work).tiny))
            sign = -1.0 if number % 2 else 1.0
            yield rows[number % len(rows)] | {floats[0]: float(grid.work(sign * size))}


def _apart(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """One input tiny and the others as they are; and products of two in exponentials."""
    names = _floats(rule)
    if not rows or len(names) < _SEVERAL:
        return
    random, least = Random(29), float(np.finfo(grid.work).tiny)
    for number, like in enumerate(rows):
        name = names[number % len(names)]
        power = random.uniform(*((0, 1) if number % 4 < len(names) else (1, _TOWARDS)))
        yield like | {name: float(grid.work(least * 2.0**power))}
    for number, depth in enumerate(_DEPTHS):
        size = depth - float(np.log(least))
        for power in (3, 20, 80):
            first = float(grid.work(2.0**power * random.uniform(1, 2)))
            one, other = (names[(number + place) % len(names)] for place in (0, 1))
            for sign in (-1.0, 1.0):
                like = rows[number % len(rows)]
                second = float(grid.work(sign * size / first))
                yield like | {one: first, other: second}


@dataclass(frozen=True, slots=True)
class Brink:
    """A format's points, and machines that keep subnormal numbers and that do not."""

    points: Points
    keeping: Machine
    flushing: Machine

    @classmethod
    def of(cls, points: Points, work: Any, target: str) -> Brink:
        return cls(
            points, Machine(points.columns, work), Machine(points.columns, work, target)
        )

    @property
    def dtype(self) -> str:
        return str(np.dtype(self.keeping.work).name)

    def differing(self, closed: Expr) -> Any:
        """Points at which it matters to the value, a normal number, that some are not
        kept."""
        kept = np.float64(self.keeping.run(closed))
        got = np.float64(self.flushing.run(closed))
        tiny = float(np.finfo(self.keeping.work).tiny)
        with np.errstate(all="ignore"):
            is_normal = np.isfinite(kept) & (np.abs(kept) >= tiny)
        return is_normal & ~self.is_near(got, kept)

    def is_near(self, got: Any, wanted: Any) -> Any:
        """Within a few ULP, or the same."""
        with np.errstate(all="ignore"):
            unit = np.spacing(np.abs(wanted).astype(self.keeping.work))
            near = np.abs(got - wanted) <= NEAR * np.float64(unit)
        return near | (got == wanted) | (np.isnan(got) & np.isnan(wanted))

    def truths(self, meaning: Expr, chosen: Any) -> Any:
        """The true values at some of the points."""
        rows = [self.points.rows[n] for n in np.flatnonzero(chosen).tolist()]
        return np.array(nearest(meaning, rows, self.dtype))
