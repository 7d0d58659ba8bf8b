"""Where a part of a value that depends on one input becomes a subnormal number.

``sigmoid(1.702 * x)`` does at -51, the normal distribution function at -12.95: points that
a list of plain magnitudes does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.rule import Declared, Derived, Rule
from gradspec.ir.walk import names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names

_DEPTHS = (0.5, 1.5)
"""Beyond the least normal number, in powers of e."""

_MOST = 6  # parts of one rule that are looked at
_POWERS = 2.0 ** np.arange(-8.0, 14.01, 0.25)
_STEPS = 32


def depths(
    rule: Rule, floats: tuple[str, ...], fixed: Mapping[str, float], work: Any
) -> Iterator[tuple[str, float]]:
    """Inputs, and numbers at which a part of the rule's values is subnormal; ``fixed``
    has the static parameters."""
    seen: dict[tuple[str, float], None] = {}
    for name, leaf in _leaves(rule, floats, fixed):
        for depth in _DEPTHS:
            try:
                for x in _crossings(leaf, name, fixed, work, depth):
                    seen[name, float(work(x))] = None
            except NotImplementedError:  # a part that neither balls nor the model know
                continue
    yield from seen


def _leaves(
    rule: Rule, floats: tuple[str, ...], fixed: Mapping[str, float]
) -> Iterator[tuple[str, Expr]]:
    """Exponentials and their like, of one input."""
    found: dict[Expr, str] = {}
    for form in _forms(rule):
        for node in nodes(form):
            if isinstance(node, Apply) and primitive(node.op).is_fading:
                used = names(node) - set(fixed)
                if len(used) == 1 and used <= set(floats):
                    found.setdefault(node, next(iter(used)))
    yield from [(name, leaf) for leaf, name in found.items()][:_MOST]


def _forms(rule: Rule) -> Iterator[Expr]:
    whole = Names(rule)
    yield from (whole.close(let.value) for let in rule.forward)
    for entry in rule.backward:
        if isinstance(entry, Derived | Declared):
            yield whole.close(entry.value)


def _crossings(
    leaf: Expr, name: str, fixed: Mapping[str, float], work: Any, depth: float
) -> Any:
    """Where ``leaf`` passes so much below the least normal number, by bisection."""
    least = float(np.finfo(work).tiny) * float(np.exp(-depth))

    def is_below(x: Any) -> Any:
        columns = {k: np.full(len(x), v) for k, v in fixed.items()} | {name: x}
        value = Machine(columns, np.float64).run(leaf)
        return np.abs(np.float64(value)) < least

    grid = np.concatenate([-_POWERS[::-1], _POWERS])
    below = is_below(grid)
    places = np.flatnonzero(below[1:] != below[:-1])
    low, high, left = grid[places], grid[places + 1], below[places]
    for _ in range(_STEPS if len(places) else 0):
        middle = 0.5 * (low + high)
        same = is_below(middle) == left
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.where(left, low, high)
