"""Points at which an angle is nearly a whole number of quarter turns.

There sines and cosines vanish, and sums with them: ``1 + cos(v)`` is 8e-16 at the number of
float32 next to ``3 * pi``. Hardly any point that is drawn is as near to one.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import nodes
from gradspec.stabilise.dense import core_of, inside, pointed
from gradspec.stabilise.product import product

_ANGLED = {"sin": 1.0, "cos": 1.0, "tan": 1.0, "sinpi": pi, "cospi": pi}
"""Functions of angles, and what their argument is multiplied by."""

_SEED, _MOST, _KEPT = 24, 13, 0.25
"""How many quarter turns there are at most, and the share of the rows in which another
angle stays as it was."""


def with_quarters(rule: Rule, closed: Expr) -> tuple[dict[str, Any], Any]:
    """Many points (`dense.pointed`), and as many with such angles if there are any."""
    drawn, core = pointed(rule)
    floats = [v.name for v in rule.inputs if v.kind in (Kind.FLOAT, Kind.NOGRAD)]
    rates = {n: rate for n, rate in _rates(closed).items() if n in floats}
    if not rates:
        return drawn, core
    random = np.random.Generator(np.random.PCG64(_SEED))
    found = dict(drawn)
    for name, rate in rates.items():
        turns = random.integers(-_MOST, _MOST + 1, len(core)) * (pi / 2)
        is_kept = random.random(len(core)) < (_KEPT if len(rates) > 1 else 0.0)
        found[name] = np.where(is_kept, drawn[name], np.float32(turns / rate))
    where = inside(rule, found)
    every = {n: np.concatenate([drawn[n], c[where]]) for n, c in found.items()}
    return every, core_of(rule, every)


def _rates(closed: Expr) -> dict[str, float]:
    """By inputs: how fast the first angle that is a multiple of it turns."""
    rates: dict[str, float] = {}
    for node in nodes(closed):
        if isinstance(node, Apply) and node.op in _ANGLED:
            angle = product(node.args[0])
            whole = [f for f in angle.above if not _is_pi(f)]
            if len(whole) == 1 and isinstance(whole[0], Ref) and not angle.below:
                count = len(angle.above) - 1
                rate = float(angle.number) * pi**count * _ANGLED[node.op]
                rates.setdefault(whole[0].name, rate)
    return rates


def _is_pi(expr: Expr) -> bool:
    return isinstance(expr, Apply) and expr.op == "pi"
