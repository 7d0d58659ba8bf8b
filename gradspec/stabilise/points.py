"""The points at which candidates are measured: two strata inside the assumptions.

``sampling.sample`` gives simple points and both sides of every threshold; to these come
points drawn by their bits, so that every power of two of float32 has its share: a form
that overflows at 100 or loses all digits near 1e-8 is found out.
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
from gradspec.ir.rule import Input, Kind, Rule
from gradspec.stabilise.model import Machine
from gradspec.symbolic.enclose import defined, program
from gradspec.symbolic.sampling import sample, survey

CORE = (2.0**-12, 128.0)
_SIMPLE, _DRAWN = 80, 140
_TURNS = 3
"""Drawing goes on, a few more each time, while too few points are inside."""

_RUNGS = (100.0, 20.0, 1e-6, 50.0, 10.0, 1e-3, 1e-10, 1e3, 0.1, 1e5, 1e10, 1e20)
_BITS = 64
_GAPS = 12
"""How many points at which the rule is not defined take part."""

_WIDEST = 40
"""Most drawn magnitudes lie in 2**-40 … 2**40, a quarter anywhere in float32."""


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
def points(rule: Rule) -> Points:
    """The points for a rule, the same ones every time."""
    known = survey(rule, _SIMPLE)
    rows = [_float32(row) for row in (*known.points, *known.undefined[:_GAPS])]
    rows += _drawn(rule)
    upstream = frozenset(f"d{output.name}" for output in rule.outputs)
    if not rows:
        return Points({}, (), np.ones(0, dtype=bool), upstream, np.ones(0))
    kinds = {variable.name: variable.kind for variable in rule.inputs}
    names = tuple(rows[0])
    columns = {name: _column(kinds.get(name), rows, name) for name in names}
    floating = [n for n, k in kinds.items() if k in (Kind.FLOAT, Kind.NOGRAD)]
    core = np.ones(len(rows), dtype=bool)
    largest = np.zeros(len(rows), dtype=np.float32)
    for name in floating:
        size = np.abs(columns[name])
        largest = np.maximum(largest, size)
        core &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return Points(columns, tuple(rows), core, upstream, largest)


def _column(kind: Kind | None, rows: list[dict[str, float]], name: str) -> Any:
    dtype = np.bool_ if kind is Kind.BOOL else np.float32
    return np.array([row[name] for row in rows], dtype=dtype)


def _float32(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(np.float32(float(value))) for name, value in row.items()}


def _drawn(rule: Rule) -> list[dict[str, float]]:
    """Points by their bits; those outside the assumptions are thrown away."""
    random = Random(20)
    like = [_float32(row) for row in sample(rule, _SIMPLE)]
    if not like:
        return []
    outputs = program(*closed.outputs(rule).values())
    found: list[dict[str, float]] = []
    rows = [*_ladder(rule, like)]
    for turn in range(_TURNS):
        rows += [_draw(rule, random, like) for _ in range(_DRAWN * (turn + 1))]
        sound = (
            row
            for row in _inside(rule, rows)
            if all(map(defined, outputs.run(row, _BITS)))
        )
        found += islice(sound, _DRAWN - len(found))
        if len(found) == _DRAWN:
            break
        rows = []
    return found


def _inside(rule: Rule, rows: list[dict[str, float]]) -> Iterator[dict[str, float]]:
    """The rows at which all that is assumed holds."""
    kinds = {variable.name: variable.kind for variable in rule.inputs}
    machine = Machine({n: _column(kinds.get(n), rows, n) for n in rows[0]})
    inside = np.ones(len(rows), dtype=bool)
    for assume in rule.assumes:
        if not assume.indices:
            inside &= np.asarray(machine.run(assume.condition), dtype=bool)
    return (row for row, keep in zip(rows, inside, strict=True) if keep)


def _ladder(rule: Rule, like: list[dict[str, float]]) -> Iterator[dict[str, float]]:
    """Plain magnitudes for one input after the other: what is wrong is then told at
    ``x = 100`` rather than at some odd number.
    """
    for size in _RUNGS:
        for position, variable in enumerate(rule.inputs):
            if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
                for turn, sign in enumerate((1.0, -1.0)):
                    base = like[(3 * position + turn) % len(like)]
                    yield base | {variable.name: float(np.float32(sign * size))}


def _draw(rule: Rule, random: Random, like: list[dict[str, float]]) -> dict[str, float]:
    """One point: statics and upstream gradients as sampled, inputs by their bits."""
    row = dict(like[random.randrange(len(like))])
    for variable in rule.inputs:
        if variable.kind in (Kind.FLOAT, Kind.NOGRAD):
            row[variable.name] = _number(variable, random)
    return row


def _number(variable: Input, random: Random) -> float:
    """A float32 by its exponent; one in four is beside 1, 0 or another whole number."""
    sign = -1.0 if random.getrandbits(1) else 1.0
    mantissa = 1.0 + random.getrandbits(23) / 2.0**23
    kind = random.randrange(8)
    if kind == 0:
        return sign * mantissa * 2.0 ** random.randrange(-126, 127)
    if kind < 3:
        return sign * mantissa * 2.0 ** random.randrange(-_WIDEST, _WIDEST)
    if kind < 6:
        return sign * mantissa * 2.0 ** random.randrange(-12, 7)
    near = sign * float(random.choice((1, 1, 1, 2, 3)))
    step = mantissa * 2.0 ** random.randrange(-23, -1)
    return float(np.float32(near + (step if random.getrandbits(1) else -step)))
