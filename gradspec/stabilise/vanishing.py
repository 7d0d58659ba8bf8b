"""Products that are NaN at finite inputs, because one factor has overflowed where another
has vanished: ``(x / l)**k * exp(-(x / l)**k)``. They give way to a factor that is 0.

An overflow is not made finite: the difference of two such would be a number, and a wrong
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr, Select
from gradspec.ir.walk import children, names, nodes
from gradspec.primitives.table_bounds import VANISHING
from gradspec.stabilise.bounding import linear
from gradspec.stabilise.choose import cost
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.search import replaced

_TRIED = 24
"""Forms that are looked at in one trial."""

_MOST, _EACH = 2, 32.0
"""How many products give way in one of them, and for how much cost once more."""

_ROWS, _FORMS = 6, 3
"""Points that take part, and forms of each trial."""


def tamed(
    form: Expr, close: Callable[[Expr], Expr], pairs: tuple[tuple[Trial, bool], ...]
) -> Iterator[Expr]:
    """``form`` without the NaN that it is at points of each trial (with whether it is
    computed in float64 there and rounded)."""
    for trial, is_wide in pairs:
        lost = _nan(trial, close(form), is_wide)
        if len(lost):
            work = np.float64 if is_wide else np.dtype(trial.dtype).type
            columns = {
                n: c[lost] if c.dtype == np.bool_ else work(c[lost])
                for n, c in trial.points.columns.items()
            }
            upstream = trial.points.upstream
            tamer = _Vanishing(close, Machine(columns, work), upstream)
            yield from islice(tamer.forms(linear(form, upstream)), _FORMS)


def _nan(trial: Trial, closed: Expr, is_wide: bool) -> Any:
    """Some points at which the form is NaN and should not be."""
    off = (trial.suspicion_in_double if is_wide else trial.suspicion)(closed)
    value = trial.values_in_double(closed) if is_wide else trial.values(closed)
    return np.flatnonzero(np.isinf(off) & np.isnan(value))[:_ROWS]


class _Vanishing:
    """Forms of a value that are no NaN at the points of a machine. ``upstream`` are the
    names in which a gradient is linear: nothing is asked of them."""

    def __init__(
        self,
        close: Callable[[Expr], Expr],
        machine: Machine,
        upstream: frozenset[str],
    ) -> None:
        self._close, self._machine, self._upstream = close, machine, upstream

    def forms(self, form: Expr) -> Iterator[Expr]:
        """Those with fewest changes first."""
        todo, seen = [form], {form}
        most = _MOST + cost(self._close(form)) // _EACH
        for number in range(_TRIED):
            if number == len(todo):
                return
            current = todo[number]
            bad = np.flatnonzero(np.isnan(self._value(current)))
            if not bad.size:
                yield current
                continue
            if len(todo) < _TRIED:  # what comes after those is not looked at
                for other in self._changed(current, int(bad[0])):
                    if other not in seen and _count(other) <= most:
                        seen.add(other)
                        todo.append(other)
                        if len(todo) == _TRIED:
                            break

    def _value(self, expr: Expr) -> Any:
        return self._machine.run(self._close(expr))

    def _changed(self, form: Expr, row: int) -> Iterator[Expr]:
        guilty = self._guilty(form, row)
        match guilty:
            case Apply(op="mul", args=(one, other)):
                for big, small in ((one, other), (other, one)):
                    if self._is_infinite(big, row) and self._is_tame(small):
                        yield replaced(form, guilty, Apply(VANISHING, (big, small)))

    def _guilty(self, form: Expr, row: int) -> Expr:
        """The innermost NaN on the way to the value."""
        node = form
        while True:
            below = (part for part in self._used(node, row) if self._is_nan(part, row))
            inner = next(below, None)
            if inner is None:
                return node
            node = inner

    def _used(self, node: Expr, row: int) -> tuple[Expr, ...]:
        match node:
            case Select(condition=condition, then=then, other=other):
                return (then if self._value(condition)[row] else other,)
            case _:
                return tuple(children(node))

    def _is_nan(self, node: Expr, row: int) -> bool:
        return bool(np.isnan(self._value(node)[row]))

    def _is_infinite(self, node: Expr, row: int) -> bool:
        return bool(np.isinf(self._value(node)[row])) and self._is_tame(node)

    def _is_tame(self, node: Expr) -> bool:
        """Nothing to be left alone: no upstream gradient, no number as it stands."""
        used = names(self._close(node))
        return bool(used) and not used & self._upstream


def _count(form: Expr) -> int:
    return sum(isinstance(n, Apply) and n.op == VANISHING for n in nodes(form))
