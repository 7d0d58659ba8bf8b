"""One form for moderate inputs and another for large or tiny ones.

A fraction over one denominator loses no digits where its terms nearly cancel, but its
denominator overflows far out, where the terms as written are good. If the largest input
tells the points that a form mends from those that it spoils, both forms are kept with a
threshold between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import reduce
from math import frexp
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import names
from gradspec.stabilise.accuracy_model import GOOD, Quantity
from gradspec.stabilise.choice import Candidate

_BEST = 4
"""Candidates that are looked at, those with the fewest bad points of the core first."""


def by_size(
    quantity: Quantity, held: Candidate, measured: Iterable[Candidate]
) -> Iterator[Expr]:
    """Conditionals between ``held`` and the candidates that are better in a regime."""
    inputs = sorted(
        names(quantity.close(held.form)) & quantity.trials[0].points.floating
    )
    others = sorted((c for c in measured if c is not held), key=lambda c: c.faults)
    for other in others[:_BEST] if inputs else ():
        mended, spoiled = _sizes(quantity, held, other)
        if not len(mended) or not len(spoiled):
            continue
        sizes: list[Expr] = [Apply("abs", (Ref(name),)) for name in inputs]
        largest = reduce(_larger, sizes)
        if mended.max() < spoiled.min():
            inside = Apply("lt", (largest, _between(mended.max(), spoiled.min())))
            yield Select(inside, other.form, held.form)
        elif mended.min() > spoiled.max():
            outside = Apply("gt", (largest, _between(spoiled.max(), mended.min())))
            yield Select(outside, other.form, held.form)


def _sizes(quantity: Quantity, held: Candidate, other: Candidate) -> tuple[Any, Any]:
    """The largest inputs where ``other`` is good and ``held`` is not, and the reverse."""
    mended, spoiled = [], []
    for trial, before, after in zip(
        quantity.trials, held.scores, other.scores, strict=True
    ):
        was_bad, is_bad = before.errors > GOOD, after.errors > GOOD
        mended.append(np.float64(trial.points.size[was_bad & ~is_bad]))
        spoiled.append(np.float64(trial.points.size[is_bad & ~was_bad]))
    return np.concatenate(mended), np.concatenate(spoiled)


def _between(low: float, high: float) -> Const:
    """A power of two between two sizes."""
    below = frexp(max(low, np.finfo(np.float64).tiny))[1]
    above = frexp(high)[1] - 1
    return Const(Fraction(2) ** max(below, (below + above) // 2))


def _larger(one: Expr, other: Expr) -> Expr:
    return Apply("max", (one, other))
