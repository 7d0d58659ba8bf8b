"""A rule in one format: the points, and the truth of every quantity there.

To the points drawn come the places where accuracy is lost first: zeros of the function
and of its derivatives (found by bisection to neighbouring numbers of the format) and
the ends of the domain, each with numbers at growing distances on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradspec.ir.rule import Rule
from gradspec.measure.errors import Truth, at_sign_changes, tolerances
from gradspec.measure.quantities import Quantity
from gradspec.symbolic.enclose import Program, program
from gradspec.symbolic.points.formats import HALF, Array, largest, numbers, ordinals
from gradspec.symbolic.points.strata import Sample, as_sample, beside, is_inside, points
from gradspec.symbolic.truth import FORMATS, pair, pairs

_ZEROS = 12
"""Zeros of one quantity along one line that are used."""

_LINES = 12
_GRID = 72
"""Lines through points of a rule of several inputs, and points on each."""

_ELEMENTS = 8000
_FEWEST = 24
"""Points of a rule over axes, times the square of its elements, in each stratum; the
least."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """``truths`` by the quantity's key."""

    sample: Sample
    quantities: tuple[Quantity, ...]
    truths: Mapping[str, Truth]


def question(
    rule: Rule,
    asked: tuple[Quantity, ...],
    dtype: str,
    count: int,
    is_whole: bool = True,
) -> Question:
    """The points of a complete elementwise rule, and the true values there.

    The elements of a rule over axes (``is_whole`` is false) are many quantities by many
    inputs: there are fewer points, and no search for places.
    """
    if is_whole:
        drawn = points(rule, dtype, count)
    else:
        count = min(count, max(_FEWEST, _ELEMENTS // len(asked) ** 2))
        drawn = points(rule, dtype, count, max(4, count // len(rule.inputs)))
    if is_whole and (dtype not in HALF or len(drawn.columns) > 1):
        drawn = _with_places(rule, dtype, drawn, asked)
    truths = {q.key: _truth(q, drawn, dtype) for q in asked}
    keep = _defined(asked, truths, len(drawn))
    drawn = _those(drawn, keep)
    inputs = frozenset(rule.real_inputs)
    kept = {
        q.key: _judged(q, truths[q.key].those(keep), drawn, dtype, inputs)
        for q in asked
    }
    return Question(drawn, asked, kept)


def _truth(quantity: Quantity, sample: Sample, dtype: str) -> Truth:
    """The exact values; no tolerances yet."""
    high, low = np.full(len(sample), np.nan), np.zeros(len(sample))
    for form in quantity.forms:
        unknown = np.isnan(high)
        rows = (row for row, open_ in zip(sample.rows(), unknown, strict=True) if open_)
        found = np.array(pairs(form, rows, dtype)).reshape(-1, 2)
        high[unknown], low[unknown] = found.T
    return Truth(high, low, np.full(len(sample), np.nan))


def _judged(
    quantity: Quantity,
    truth: Truth,
    sample: Sample,
    dtype: str,
    inputs: frozenset[str],
) -> Truth:
    """With tolerances; a derivative is not judged where a ``sign`` has its jump."""
    rows = list(sample.rows())
    found = tolerances(quantity.forms, rows, truth.high, inputs, dtype)
    if quantity.order:
        found[at_sign_changes(quantity.forms[0], rows)] = np.nan
    return Truth(truth.high, truth.low, found)


def _defined(
    asked: tuple[Quantity, ...], truths: Mapping[str, Truth], count: int
) -> Array:
    """The points at which every output has a value."""
    keep = np.ones(count, dtype=bool)
    for quantity in asked:
        if quantity.order == 0:
            keep &= ~np.isnan(truths[quantity.key].high)
    return keep


def _those(sample: Sample, keep: Array) -> Sample:
    columns = {name: column[keep] for name, column in sample.columns.items()}
    return Sample(columns, sample.statics, sample.core[keep])


# --- zeros and ends ------------------------------------------------------------------


def _with_places(
    rule: Rule, dtype: str, sample: Sample, asked: tuple[Quantity, ...]
) -> Sample:
    """The sample with neighbours of zeros and ends."""
    rows = [row for line in _lines(rule, dtype, sample) for row in line.places(asked)]
    if not rows:
        return sample
    columns = {
        name: np.concatenate([column, np.array([float(row[name]) for row in rows])])
        for name, column in sample.columns.items()
    }
    return as_sample(rule, columns, sample.statics)


def _lines(rule: Rule, dtype: str, sample: Sample) -> Iterator[_Line]:
    """One line for a rule of one input; else a few through points of the sample."""
    holds = is_inside(rule, sample.statics)
    core = np.flatnonzero(sample.core)
    bases = (
        core[:: max(1, len(core) // _LINES)][:_LINES]
        if len(sample.columns) > 1
        else core[:1]
    )
    for name in rule.real_inputs:
        grid = np.unique(sample.columns[name])
        grid = grid[:: max(1, len(grid) // (_GRID * (20 if len(bases) == 1 else 1)))]
        for base in bases:
            point = {n: float(c[base]) for n, c in sample.columns.items()}
            yield _Line(name, {**sample.statics, **point}, grid, dtype, holds)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """Points that differ in one input."""

    name: str
    base: Mapping[str, Any]
    grid: Array
    dtype: str
    holds: Callable[[Mapping[str, Any]], bool]

    def places(self, asked: tuple[Quantity, ...]) -> Iterator[dict[str, Any]]:
        """Rows beside zeros and ends, inside the assumptions."""
        inside = [v for v in self.grid.tolist() if self.holds(self._point_at(v))]
        if not inside:
            return
        ordinal = {int(n) for q in asked for n in self._zeros(q, inside)}
        ordinal |= set(self._ends(inside))
        for place in sorted(ordinal):
            for value in beside(place, self.dtype).tolist():
                if self.holds(self._point_at(value)):
                    yield self._point_at(value)

    def _point_at(self, value: float) -> dict[str, Any]:
        return {**self.base, self.name: value}

    def _zeros(self, quantity: Quantity, inside: list[float]) -> Iterator[int]:
        """Zeros between neighbours of opposite sign, by bisection over the format."""
        compiled = program(quantity.forms[0])
        signs = [self._sign(compiled, value) for value in inside]
        changes = [k for k in range(1, len(inside)) if signs[k] * signs[k - 1] < 0]
        for k in changes[:: max(1, len(changes) // _ZEROS)][:_ZEROS]:
            low, high = (int(n) for n in ordinals(inside[k - 1 : k + 1], self.dtype))
            while high - low > 1:
                middle = (low + high) // 2
                sign = self._sign(compiled, float(numbers(middle, self.dtype)))
                low, high = (middle, high) if sign == signs[k - 1] else (low, middle)
            yield low

    def _sign(self, compiled: Program, value: float) -> int:
        high, _ = pair(compiled, self._point_at(value), FORMATS[self.dtype])
        return 0 if np.isnan(high) else int(np.sign(high))

    def _ends(self, inside: list[float]) -> Iterator[int]:
        """Domain ends between the outermost point inside and the largest number."""
        top = largest(self.dtype)
        for last, far in ((inside[-1], top), (inside[0], -top)):
            if self.holds(self._point_at(far)):
                continue
            good, bad = (int(n) for n in ordinals([last, far], self.dtype))
            while abs(good - bad) > 1:
                middle = (good + bad) // 2
                if self.holds(self._point_at(float(numbers(middle, self.dtype)))):
                    good = middle
                else:
                    bad = middle
            yield good
