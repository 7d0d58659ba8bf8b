"""At which of many points a form loses most: is a gradient that is derived good?

Float32 and float64 are compared at some thousand points (`dense.py`); those at which the
two differ most are the hard ones, and only of those the truth is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr, Select
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import names, nodes
from gradspec.stabilise.apart import apart
from gradspec.stabilise.dense import RARE, columns
from gradspec.stabilise.measure import GOOD
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import Points
from gradspec.stabilise.quick import QuickMachine, is_slow

_HARD = 16
"""How many hard points of each stratum are looked at."""

_OFF = GOOD
"""ULP beyond which a point of the core is hard, of several inputs."""

_ALONE, _OFTEN = 2 * GOOD, 0.01
"""The same of one input, unless it is so at one point in a hundred: the sample is dense
there, and a little more once in a thousand points is no reason to make an activation twice
as slow."""


def hard(rule: Rule, closed: Expr, target: str) -> Points | None:
    """The points at which ``closed`` loses most; None if there are none, or if a part of
    it is known to balls alone."""
    if any(map(is_slow, nodes(expand(closed)))):
        return None
    drawn, core = columns(rule)
    machine = QuickMachine(drawn, np.float32, target)
    off = np.where(_turns(machine, closed), 0.0, apart(machine, closed))
    is_alone = len(names(closed) & {i.name for i in rule.inputs}) == 1
    is_seldom = (core & (off > _OFF)).sum() <= _OFTEN * core.sum()
    least = _ALONE if is_alone and is_seldom else _OFF
    chosen = [*_worst(np.where(core, off, 0.0), least)]
    lost = np.isinf(off) & ~core
    if lost.sum() > RARE * len(lost):
        chosen += _worst(np.where(lost, off, 0.0), least)
    return chosen_of(rule, drawn, core, sorted(chosen)) if chosen else None


def _turns(machine: Machine, closed: Expr) -> Any:
    """Where float64 takes another branch: there the function has a step or a seam, and
    which side of it a rounded operand is on is no error of the form."""
    found = np.zeros(len(machine), dtype=bool)
    for node in nodes(expand(closed)):
        if isinstance(node, Select):
            narrow, wide = machine.run(node.condition), machine.in_double()
            found |= np.asarray(narrow) != np.asarray(wide.run(node.condition))
    return found


def _worst(off: Any, least: float) -> list[int]:
    order = np.argsort(-off, kind="stable")[:_HARD]
    return [int(n) for n in order if off[n] > least]


def chosen_of(
    rule: Rule, drawn: dict[str, Any], core: Any, chosen: list[int]
) -> Points:
    """The chosen rows. Where the function is not defined the truth will say so."""
    taken = {n: c[chosen] for n, c in drawn.items()}
    rows = tuple({n: float(c[k]) for n, c in drawn.items()} for k in chosen)
    upstream = frozenset(f"d{output.name}" for output in rule.outputs)
    floats = [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]
    size = np.max([np.abs(taken[n]) for n in floats], axis=0)
    return Points(taken, rows, core[chosen], upstream, size)
