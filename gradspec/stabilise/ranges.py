"""Products that are NaN at finite inputs: one factor overflows where another vanishes.

``(4 * x) * 0`` at 1e38 is infinity times 0, and ``4 * (x * 0)`` is 0: factors change their
order. ``x**2 * exp(-x**2)`` at 1e20 has only one order: there a factor that is 0 wins
(`vanishing`). An overflow is not made finite, since the difference of two such would be a
number, and a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from gradspec.ir.expr import ONE, Apply, Expr, Select
from gradspec.ir.walk import children, names
from gradspec.primitives.table_bounds import VANISHING
from gradspec.stabilise.accuracy_model import Quantity, Trial
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.choice import Candidate
from gradspec.stabilise.matching import replaced

_ROWS, _TRIED, _MOST = 8, 16, 3
"""Points that take part, forms looked at, and products replaced in one form."""


def with_vanishing_products(quantity: Quantity, start: Candidate) -> Iterator[Expr]:
    """A form with products replaced until it is no NaN at the points where it was."""
    form = start.form
    for trial in quantity.trials:
        closed = quantity.close(form)
        lost = np.isnan(trial.values(closed)) & np.isfinite(trial.condition.value)
        if lost.any():
            yield from _tamed(form, quantity, trial, lost)


def _tamed(form: Expr, quantity: Quantity, trial: Trial, lost: Any) -> Iterator[Expr]:
    every = np.flatnonzero(lost)
    rows = every[:: max(1, len(every) // _ROWS)]
    columns = {name: column[rows] for name, column in trial.points.columns.items()}
    machine = Machine(columns, trial.machine.work)

    def value(expr: Expr) -> Any:
        return machine.run(quantity.close(expr))

    todo, number = [(form, 0)], 0
    while number < min(len(todo), _TRIED):
        current, changes = todo[number]
        number += 1
        bad = np.flatnonzero(np.isnan(value(current)))
        if not bad.size:
            yield current
        elif changes < _MOST:
            found = _replacements(current, value, int(bad[0]), trial.points.upstream)
            todo += [(new, changes + 1) for new in found]


def _replacements(
    form: Expr, value: Callable[[Expr], Any], row: int, upstream: frozenset[str]
) -> Iterator[Expr]:
    """The product at which the NaN arises, with its largest factor multiplied by what
    vanishes first; and with a factor of 0 winning. (Upstream gradients stand outside: a
    cotangent stays linear in them.)"""
    node = _origin(form, value, row)
    match node:
        case Apply(op="mul", args=(one, other)):
            for large, small in ((one, other), (other, one)):
                if not np.isinf(value(large)[row]):
                    continue
                parts = factors(large)
                sizes = [abs(float(value(part)[row])) for part in parts]
                if max(sizes) < np.inf:
                    largest = parts.pop(int(np.argmax(sizes)))
                    turned = product([Apply("mul", (largest, small)), *parts])
                    yield replaced(form, node, turned)
                ahead = [part for part in factors(large) if names(part) & upstream]
                rest = [part for part in factors(large) if part not in ahead]
                if rest and names(small) and not names(small) & upstream:
                    vanishing = Apply(VANISHING, (product(rest), small))
                    yield replaced(form, node, product([*ahead, vanishing]))


def factors(expr: Expr) -> list[Expr]:
    """The factors of a product, left to right."""
    match expr:
        case Apply(op="mul", args=(one, other)):
            return [*factors(one), *factors(other)]
        case Apply(op="div", args=(one, below)) if not names(below):
            return [*factors(one), Apply("div", (ONE, below))]
        case _:
            return [expr]


def product(parts: list[Expr]) -> Expr:
    return reduce(lambda one, other: Apply("mul", (one, other)), parts)


def _origin(form: Expr, value: Callable[[Expr], Any], row: int) -> Expr:
    """The innermost NaN on the way to the value."""
    node = form
    while True:
        below = (part for part in _used(node, value, row) if np.isnan(value(part)[row]))
        inner = next(below, None)
        if inner is None:
            return node
        node = inner


def _used(node: Expr, value: Callable[[Expr], Any], row: int) -> tuple[Expr, ...]:
    match node:
        case Select(condition=condition, then=then, other=other):
            return (then if value(condition)[row] else other,)
        case _:
            return children(node)
