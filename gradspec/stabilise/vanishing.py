"""Products that are NaN at finite inputs, because one factor has overflowed where another
has vanished: ``(x / l)**k * exp(-(x / l)**k)``.

What mends them at infinities (`taming.py`) does so here: the product gives way to a factor
that is 0. (An overflow is not made finite, as infinity is: the difference of two such
would be a number, and a wrong one.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr
from gradspec.primitives.table_bounds import VANISHING
from gradspec.stabilise.bounding import linear
from gradspec.stabilise.measure import Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.taming import Tamer

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


class _Vanishing(Tamer):
    """The forms with products that give way alone."""

    def _variants(self, node: Expr, row: int) -> Iterator[Expr]:
        match node:
            case Apply(op="mul", args=(one, other)):
                for big, small in ((one, other), (other, one)):
                    if self._is_infinite(big, row) and self._is_tame(small):
                        yield Apply(VANISHING, (big, small))

    def _cores(self, guilty: Expr, row: int) -> Iterator[Expr]:
        return iter(())
