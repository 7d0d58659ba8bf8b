"""At which points an error is in what was given, and no fault of a form."""

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
"""Times what one unit in the last place of the inputs changes: an error of that size is
in what was given. A sum that nearly cancels would be right to the last digit in float64,
and be no better known; twice the bytes are too much for that."""

_ILL = 3.0
"""ULP that the last places of the inputs change at least where that counts."""


def excused(rule: Rule, columns: Mapping[str, Any], closed: Expr, target: str) -> Any:
    """At which points of the columns an error is in what was given."""
    if any(map(is_slow, nodes(expand(closed)))):
        return np.zeros(len(next(iter(columns.values()))), dtype=bool)
    return given_so(rule, QuickMachine(columns, np.float32, target), closed)


def given_so(rule: Rule, machine: QuickMachine, closed: Expr) -> Any:
    """Where the error is no more than the last places of the inputs change. (A 0 is an
    error as any other: what cancels wholly nearly cancelled.)"""
    value, truth = both(machine, closed)
    felt = _felt(rule, machine, closed)
    with np.errstate(all="ignore"):
        off = np.abs(value - truth) / unit(truth)
        return (felt > _ILL) & (off <= _FORGIVEN * felt)


def _felt(rule: Rule, machine: QuickMachine, closed: Expr) -> Any:
    """What the last places of the floating inputs change, in ULP, all together."""
    truth = both(machine, closed)[1]
    total = np.zeros(len(machine))
    used = names(closed)
    with np.errstate(all="ignore"):
        for variable in rule.inputs:
            if variable.name in used and variable.kind in (Kind.FLOAT, Kind.NOGRAD):
                moved = machine.moved(variable.name).in_double().run(closed)
                total += np.nan_to_num(np.abs(np.float64(moved) - truth) / unit(truth))
    return total
