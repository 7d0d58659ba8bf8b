"""The points at which candidates are measured: two strata inside the assumptions.

``sampling.sample`` gives simple points and both sides of every threshold; to these come
a ladder of plain magnitudes, up to where a square or an exponential leaves the range, and
points drawn by their bits, so that every power of two has its share: a form that overflows
at 100 or loses all digits near 1e-8 is found out. Several inputs meet nearly equal and
nearly opposite too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from gradspec.ir import closed
from gradspec.ir.rule import Kind, Rule
from gradspec.stabilise.edges import at_edges
from gradspec.stabilise.model import Machine
from gradspec.symbolic.enclose import defined, program
from gradspec.symbolic.sampling import sample, survey

CORE = (2.0**-12, 128.0)
_SIMPLE = 80
_TURNS = 3
"""Drawing goes on, a few more each time, while too few points are inside."""

_BITS = 64
_GAPS = 12
"""How many points at which the rule is not defined take part."""

_FAR = 200
"""Draws of extreme points; half of those inside at most take part."""

_WIDEST = 40
"""Most drawn magnitudes lie in 2**-40 … 2**40, a quarter anywhere in the format."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How a format is sampled: ``every`` so manieth simple point, points ``drawn``, and
    ``rungs`` of magnitudes, the telling ones first. The largest stay below what a factor
    of an upstream gradient drives out of the range.
    """

    work: Any
    digits: int
    least: int
    top: int
    every: int
    drawn: int
    rungs: tuple[float, ...]


_PLAIN = (100.0, 20.0, 1e-6, 50.0, 10.0, 1e-3, 1e-10, 1e3, 0.1, 1e5, 1e10, 1e20)
SINGLE = Grid(
    *(np.float32, 23, -126, 124, 1, 140),
    (
        *(*_PLAIN, 1e30, 6e37, 88.5, 1e-30, 1e25, 1e-20, 1e37, 1e-37, 1e15, 104.0),
        *(11.3, 7.7, 5.3, 57.3),
    ),
)
"""exp leaves float32 at 88.7 and 103.9, squares at 1.8e19, cubes at 7e12. The square of
10 is exact: that exponentials of squares lose digits shows at numbers that are not round.
"""

DOUBLE = Grid(
    *(np.float64, 52, -1022, 1020, 2, 70),
    (
        *(100.0, 1e-6, 1e160, 20.0, 1e-10, 709.0, 1e-3, 1e300, 40.0, 1e3, 1e-160),
        *(1e10, 3e307, 10.0, 1e-300, 1e20, 745.0, 1e-17, 88.5, 1e200, 1e5, 1e-200),
        *(1e104, 1e155, 1e-155, 1e250, 31.3, 11.3, 17.7, 5.3, 257.3),
    ),
)
"""exp leaves float64 at 709.8 and 745.2, squares at 1.3e154, cubes at 5.6e102."""

_LADDER = 96
"""How many of the ladder's points there are for all inputs together."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """``columns`` for the machine, ``rows`` (the same numbers) for the balls, and which
    of the points lie in the core stratum; ``size`` is the largest input's magnitude.
    """

    columns: Mapping[str, Any]
    rows: tuple[Mapping[str, float], ...]
    core: Any
    upstream: frozenset[str]
    size: Any

    def __len__(self) -> int:
        return len(self.rows)


@lru_cache(maxsize=8)
def points(rule: Rule, grid: Grid = SINGLE) -> Points:
    """The points for a rule, the same ones every time."""
    known = survey(rule, _SIMPLE)
    rows = [
        _rounded(row, grid)
        for row in (*known.points[:: grid.every], *known.undefined[:_GAPS])
    ]
    return collected(rule, rows + _drawn(rule, grid), grid)


@lru_cache(maxsize=8)
def extremes(rule: Rule, grid: Grid = SINGLE) -> Points:
    """Points at which all inputs have any exponent of the format, each its own, so that
    ratios are extreme; one is where an exponential leaves the range, or
    they are at the edge of what is assumed."""
    random = Random(21)
    like = [_rounded(row, grid) for row in sample(rule, _SIMPLE)]
    rows = [dict(like[n % len(like)]) for n in range(_FAR if like else 0)]
    kinds = (Kind.FLOAT, Kind.NOGRAD)
    floats = [v.name for v in rule.inputs if v.kind in kinds]
    for number, row in enumerate(rows):
        reach = grid.top if number % 2 else _WIDEST
        for name in floats:
            row[name] = _any(random, grid, reach)
        if floats and number % 4 == 2:
            far = float(random.randrange(80, 110))
            row[random.choice(floats)] = far if random.getrandbits(1) else -far
    if not rows:
        return collected(rule, [], grid)
    found = [*islice(sound(rule, rows, grid), _FAR // 2)]
    edges = [*islice(at_edges(rule, like), _FAR // 4)]
    return collected(rule, [*found, *sound(rule, edges, grid)], grid)


def _any(random: Random, grid: Grid, reach: int) -> float:
    sign = -1.0 if random.getrandbits(1) else 1.0
    mantissa = 1.0 + random.getrandbits(grid.digits) / 2.0**grid.digits
    return sign * mantissa * 2.0 ** random.randrange(-reach, reach)


def collected(rule: Rule, rows: list[dict[str, float]], grid: Grid) -> Points:
    """Rows as points."""
    upstream = frozenset(f"d{output.name}" for output in rule.outputs)
    if not rows:
        return Points({}, (), np.ones(0, dtype=bool), upstream, np.ones(0))
    kinds = {variable.name: variable.kind for variable in rule.inputs}
    names = tuple(rows[0])
    columns = {name: _column(kinds.get(name), rows, name, grid) for name in names}
    floating = [n for n, k in kinds.items() if k in (Kind.FLOAT, Kind.NOGRAD)]
    core = np.ones(len(rows), dtype=bool)
    largest = np.zeros(len(rows), dtype=grid.work)
    for name in floating:
        size = np.abs(columns[name])
        largest = np.maximum(largest, size)
        core &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return Points(columns, tuple(rows), core, upstream, largest)


def _column(
    kind: Kind | None, rows: list[dict[str, float]], name: str, grid: Grid
) -> Any:
    dtype = np.bool_ if kind is Kind.BOOL else grid.work
    return np.array([row[name] for row in rows], dtype=dtype)


def _rounded(row: Mapping[str, Any], grid: Grid) -> dict[str, float]:
    with np.errstate(over="ignore"):
        return {name: float(grid.work(float(value))) for name, value in row.items()}


def _drawn(rule: Rule, grid: Grid) -> list[dict[str, float]]:
    """The ladder and points by their bits; those outside the assumptions are thrown
    away."""
    random = Random(20)
    like = [_rounded(row, grid) for row in sample(rule, _SIMPLE)]
    if not like:
        return []
    found = [*sound(rule, [*_ladder(rule, like, grid)], grid)]
    most = len(found) + grid.drawn
    for turn in range(_TURNS):
        count = grid.drawn * (turn + 1)
        rows = [_draw(rule, random, like, grid) for _ in range(count)]
        found += islice(sound(rule, rows, grid), most - len(found))
        if len(found) == most:
            break
    return found


def sound(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """The rows at which all that is assumed holds and the outputs are defined."""
    outputs = program(*closed.outputs(rule).values())
    inside = _inside(rule, rows, grid) if rows else ()
    return (row for row in inside if all(map(defined, outputs.run(row, _BITS))))


def _inside(
    rule: Rule, rows: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    kinds = {variable.name: variable.kind for variable in rule.inputs}
    columns = {n: _column(kinds.get(n), rows, n, grid) for n in rows[0]}
    machine = Machine(columns, grid.work)
    inside = np.ones(len(rows), dtype=bool)
    for assume in rule.assumes:
        if not assume.indices:
            inside &= np.asarray(machine.run(assume.condition), dtype=bool)
    return (row for row, keep in zip(rows, inside, strict=True) if keep)


def _ladder(
    rule: Rule, like: list[dict[str, float]], grid: Grid
) -> Iterator[dict[str, float]]:
    """Plain magnitudes for one input after the other: what is wrong is then told at
    ``x = 100`` rather than at some odd number.
    """
    floats = sum(v.kind in (Kind.FLOAT, Kind.NOGRAD) for v in rule.inputs)
    for size in grid.rungs[: _LADDER // max(1, 2 * floats)]:
        for position, variable in enumerate(rule.inputs):
            if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
                for turn, sign in enumerate((1.0, -1.0)):
                    base = like[(3 * position + turn) % len(like)]
                    yield base | {variable.name: float(grid.work(sign * size))}


def _draw(
    rule: Rule, random: Random, like: list[dict[str, float]], grid: Grid
) -> dict[str, float]:
    """One point: statics and upstream gradients as sampled, inputs by their bits."""
    row = dict(like[random.randrange(len(like))])
    drawn: list[str] = []
    for variable in rule.inputs:
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            number = _number(random, grid)
            if drawn and random.randrange(4) == 0:
                number = _beside(row[random.choice(drawn)], random, grid)
            row[variable.name] = number
            drawn.append(variable.name)
    return row


def _beside(other: float, random: Random, grid: Grid) -> float:
    """A number that is nearly another one, its opposite or what it lacks to 1."""
    step = 2.0 ** random.randrange(-grid.digits - 2, 0)
    near = other * (1.0 + (step if random.getrandbits(1) else -step))
    number = random.choice((other, near, near, -near, 1.0 - other))
    return float(grid.work(number if abs(number) < 2.0**grid.top else other))


def _number(random: Random, grid: Grid) -> float:
    """A number by its exponent; one in four is beside 1, 0 or another whole number."""
    sign = -1.0 if random.getrandbits(1) else 1.0
    mantissa = 1.0 + random.getrandbits(grid.digits) / 2.0**grid.digits
    kind = random.randrange(8)
    if kind == 0:
        return sign * mantissa * 2.0 ** random.randrange(grid.least, grid.top)
    if kind < 3:
        return sign * mantissa * 2.0 ** random.randrange(-_WIDEST, _WIDEST)
    if kind < 6:
        return sign * mantissa * 2.0 ** random.randrange(-12, 7)
    near = sign * float(random.choice((1, 1, 1, 2, 3)))
    step = mantissa * 2.0 ** random.randrange(-grid.digits, -1)
    return float(grid.work(near + (step if random.getrandbits(1) else -step)))
