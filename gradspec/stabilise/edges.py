"""Points at the very edge of what a rule assumes of several inputs together.

``b * b >= 4 * a * c``: beside the edge the root of the difference loses all digits, and no
point that is drawn lies there. Inside points are moved along one input until the next
step would be outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import names
from gradspec.stabilise.model import Machine

_STEPS = 40
_ROWS, _STARTS = 8, 160
_INWARD = (22, 18, 14, 10)
"""How far inside of the edge: as a power of two of the way back."""
_SEVERAL = 2


def at_edges(rule: Rule, inside: list[dict[str, float]]) -> Iterator[dict[str, float]]:
    """Points of the core at the edge of each assumption about several inputs, and a
    little inside of it."""
    random = Random(22)
    kinds = {v.name: v.kind for v in rule.inputs}
    for assume in rule.assumes:
        used = sorted(names(assume.condition))
        floats = [n for n in used if kinds.get(n) in (Kind.FLOAT, Kind.NOGRAD)]
        if assume.indices or len(floats) < _SEVERAL or not inside:
            continue
        starts = [dict(inside[n % len(inside)]) for n in range(_STARTS)]
        for row in starts:
            row |= {n: _ordinary(random) for n in floats}
        for name in floats:
            yield from _moved(assume.condition, starts, name, random)


def _ordinary(random: Random) -> float:
    size = float(np.float32(2.0 ** random.uniform(-3, 5)))
    return size if random.getrandbits(1) else -size


def _moved(
    condition: Any, starts: list[dict[str, float]], name: str, random: Random
) -> Iterator[dict[str, float]]:
    """Rows at which the condition holds, moved along an input towards one at which it
    does not."""
    used = sorted(names(condition))
    columns: dict[str, Any] = {
        n: np.array([row[n] for row in starts], dtype=np.float32) for n in used
    }
    good = columns[name]
    factors = np.array([2.0 ** random.uniform(-8, 8) for _ in starts], dtype=np.float32)
    bad = good * factors
    some = _holds(condition, columns, name, good) & ~_holds(
        condition, columns, name, bad
    )
    for _ in range(_STEPS):
        middle = np.float32(0.5) * (good + bad)
        is_in = _holds(condition, columns, name, middle)
        good, bad = np.where(is_in, middle, good), np.where(is_in, bad, middle)
    first = columns[name]
    for turn, place in enumerate(np.flatnonzero(some)[:_ROWS].tolist()):
        start, edge = float(first[place]), float(good[place])
        inward = edge + (start - edge) * 2.0 ** -_INWARD[turn % len(_INWARD)]
        yield starts[place] | {name: float(np.float32(inward))}


def _holds(condition: Any, columns: dict[str, Any], name: str, values: Any) -> Any:
    return np.asarray(Machine(columns | {name: values}).run(condition), dtype=bool)
