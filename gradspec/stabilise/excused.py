"""At which points an error is in what was given, and no fault of a form.

A gradient of one input is ill-conditioned beside its zeros: a few points, which float64
would give to the last digit, and which are no better known then; twice the bytes are too
much for that. A gradient of several inputs is so along whole surfaces, and at equal inputs
or small whole numbers it is 0 where the truth is not: nothing of that is excused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import names, nodes
from gradspec.stabilise.apart import both, unit
from gradspec.stabilise.quick import QuickMachine, is_slow

_FORGIVEN = 4.0
"""Times what one unit in the last place of the input changes: an error of that size is
in what was given."""

_ILL = 3.0
"""ULP that the last place of the input changes at least where that counts."""


def excused(rule: Rule, columns: Mapping[str, Any], closed: Expr, target: str) -> Any:
    """At which points of the columns an error is in what was given."""
    if any(map(is_slow, nodes(expand(closed)))):
        return np.zeros(len(next(iter(columns.values()))), dtype=bool)
    return given_so(rule, QuickMachine(columns, np.float32, target), closed)


def given_so(rule: Rule, machine: QuickMachine, closed: Expr) -> Any:
    """Where the error is no more than the last place of the one input changes. (A 0 is an
    error as any other: what cancels wholly nearly cancelled.)"""
    varied = _varied(rule, closed)
    if len(varied) != 1:
        return np.zeros(len(machine), dtype=bool)
    value, truth = both(machine, closed)
    felt = _felt(machine, closed, varied[0])
    with np.errstate(all="ignore"):
        off = np.abs(value - truth) / unit(truth)
        return (felt > _ILL) & (off <= _FORGIVEN * felt)


def _varied(rule: Rule, closed: Expr) -> tuple[str, ...]:
    """The floating inputs that it depends on (statics are what they are)."""
    used = names(closed)
    floating = (v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD))
    return tuple(name for name in floating if name in used)


def _felt(machine: QuickMachine, closed: Expr, varied: str) -> Any:
    """What the last place of the input changes, in ULP."""
    truth = both(machine, closed)[1]
    moved = machine.moved(varied).in_double().run(closed)
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(np.float64(moved) - truth) / unit(truth))
