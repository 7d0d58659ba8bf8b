"""Whether two evaluations in float64 agree at nearly all of many points."""

from __future__ import annotations

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes
from gradspec.stabilise.apart import ulp
from gradspec.stabilise.dense import RARE, pointed
from gradspec.stabilise.quick import QuickMachine, is_slow

_AGREEING = 2.0
"""ULP of float32 by which two evaluations in float64 may differ."""

_STEP = 20
"""Of so many points one is asked for what balls alone know."""


def agree(rule: Rule, short: Expr, usual: Expr) -> bool:
    """Whether ``short`` in float64, rounded once, is in nearly all points what ``usual`` is
    there: where the sample is thin, much may be lost unseen. Inputs are simple numbers at
    half of the points: the gradient ``sigmoid(x) - z`` cancels at the label 1, nowhere
    else."""
    drawn, core = pointed(rule)
    if any(is_slow(n) for form in (short, usual) for n in nodes(expand(form))):
        drawn = {name: column[::_STEP] for name, column in drawn.items()}
        core = core[::_STEP]
    machine = QuickMachine(drawn, np.float32).in_double()
    with np.errstate(all="ignore"):
        value = np.float64(np.float32(machine.run(short)))
    off = ulp(value, np.float64(machine.run(usual))) > _AGREEING
    return all(off[part].mean() <= RARE for part in (core, ~core) if part.any())
