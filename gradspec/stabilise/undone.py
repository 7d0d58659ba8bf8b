"""At which of many points (`dense.py`) float64 does not do either: it gives no number, or
another one than another form of the same function does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes
from gradspec.stabilise.hard import chosen_of
from gradspec.stabilise.points import Points
from gradspec.stabilise.quarters import with_quarters
from gradspec.stabilise.quick import QuickMachine, is_slow

_EACH = 16
"""How many points there are of each kind."""

_FORMS = 12
_SAME = 2.0**-20
"""What two forms in float64 may differ by."""


def undone(
    rule: Rule, closed: Expr, others: Iterable[Expr], target: str
) -> Points | None:
    """Points at which ``closed`` is no number in float64 either, or 0 or infinite, or is
    not what ``others`` are: what it should be is not known here."""
    if any(map(is_slow, nodes(expand(closed)))):
        return None
    drawn, core = with_quarters(rule, closed)
    with np.errstate(all="ignore"):
        machine = QuickMachine(drawn, np.float32, target).in_double()
        value: Any = np.float64(machine.run(closed))
    far = np.isinf(value) | (value == 0)
    chosen = {*_spread(np.isnan(value)), *_spread(far)}
    doubtful: Any = np.zeros(len(core), dtype=bool)
    for form in islice(others, _FORMS):
        if not any(map(is_slow, nodes(expand(form)))):
            doubtful |= _differ(value, machine.run(form))
    chosen |= {*_spread(doubtful & core), *_spread(doubtful & ~core)}
    return chosen_of(rule, drawn, core, sorted(chosen)) if chosen else None


def _differ(one: Any, other: Any) -> Any:
    """Where two forms differ, and one of them is a normal number of float32."""
    limits = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        sizes = np.abs(one), np.abs(np.float64(other))
        apart = ~(np.abs(one - other) <= _SAME * np.maximum(*sizes))
    return apart & np.logical_or(
        *((size >= limits.tiny) & (size <= limits.max) for size in sizes)
    )


def _spread(where: Any) -> list[int]:
    """Some of the places, of all regions."""
    places = np.flatnonzero(where)
    few = np.linspace(0, len(places) - 1, min(_EACH, len(places))).astype(int)
    return [int(n) for n in places[few]]
