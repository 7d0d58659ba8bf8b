"""At which of many points (`dense.py`) float64 does not do either."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes
from gradspec.stabilise.dense import columns
from gradspec.stabilise.hard import chosen_of
from gradspec.stabilise.points import Points
from gradspec.stabilise.quick import QuickMachine, is_slow

_EACH = 16
"""How many points there are of each kind."""


def undone(rule: Rule, closed: Expr, target: str) -> Points | None:
    """Points at which ``closed`` is no number in float64 either, or 0 or infinite: what
    it should be is not known here."""
    if any(map(is_slow, nodes(expand(closed)))):
        return None
    drawn, core = columns(rule)
    with np.errstate(all="ignore"):
        machine = QuickMachine(drawn, np.float32, target).in_double()
        value = np.float64(machine.run(closed))
    far = np.isinf(value) | (value == 0)
    chosen = [*_spread(np.isnan(value)), *_spread(far)]
    return chosen_of(rule, drawn, core, sorted(chosen)) if chosen else None


def _spread(where: Any) -> list[int]:
    """Some of the places, of all regions."""
    places = np.flatnonzero(where)
    few = np.linspace(0, len(places) - 1, min(_EACH, len(places))).astype(int)
    return [int(n) for n in places[few]]
