"""Errors of values against the truth, in tolerances: bad points and the largest error.

The tolerance T of a point (:mod:`gradspec.audit.tolerance`) is what rounding the result
and moving each input by a unit in the last place can change. The **error** of a value
is ``|value - truth| / T``. A **bad point** has an error of more than :data:`GOOD`, or
no number: NaN, or an infinity, unless the truth is within GOOD tolerances of the end of
the range. Where the truth is 0 or subnormal every value up to the least normal number
is right; where the truth is beyond the range nothing is judged. The plain error in ULP
of the truth is kept as information.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradspec.audit.formats import Array, largest, least_normal
from gradspec.audit.tolerance import units
from gradspec.stabilise.accuracy_model import GOOD

SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Exact values as pairs of doubles (`symbolic.truth`), NaN where there is none, and
    the tolerance at each point, NaN where nothing is judged."""

    high: Array
    low: Array
    tolerance: Array

    def those(self, keep: Array) -> Truth:
        """The same at some of the points."""
        return Truth(self.high[keep], self.low[keep], self.tolerance[keep])


@dataclass(frozen=True, slots=True)
class Spot:
    """One point: the inputs, the value and the truth."""

    inputs: tuple[tuple[str, float], ...]
    got: float
    truth: float


@dataclass(frozen=True, slots=True)
class Measure:
    """The errors on some of the points. ``count``: points judged; ``bad``: bad points,
    some of them the ``examples``; ``worst``: the largest error in tolerances, at
    ``at``, infinite where a point has no number; ``ulp``: the largest plain error of
    the values that are numbers, in ULP, as information.
    """

    count: int
    bad: int
    worst: float
    ulp: float
    at: Spot | None
    examples: tuple[Spot, ...]

    @property
    def share(self) -> float:
        """The share of the points that are bad."""
        return self.bad / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """For each point: whether it is judged; the error in tolerances, infinite where
    there is no number; the plain error in ULP. Both are 0 where the value is right or
    is not judged, and the plain error is 0 where there is no number."""

    judged: Array
    error: Array
    ulp: Array

    @property
    def bad(self) -> Array:
        return self.error > GOOD


def errors(values: Array, truth: Truth, dtype: str) -> Errors:
    """The errors of ``values`` of a format."""
    size, tolerance = np.abs(truth.high), truth.tolerance
    judged = (size <= largest(dtype)) & ~np.isnan(tolerance)
    tiny = least_normal(dtype)
    right = ~judged | ((size < tiny) & (np.abs(values) <= tiny))
    right |= _is_overflow(values, truth, dtype)
    unit = units(truth.high, dtype)
    with np.errstate(all="ignore"):  # by powers of two, which round nothing
        ulp = np.abs((values / unit - truth.high / unit) - truth.low / unit)
        error = ulp * (unit / tolerance)
    is_number = np.isfinite(values)
    ulp = np.where(right | ~is_number, 0.0, ulp)
    return Errors(judged, np.where(right, 0.0, np.where(is_number, error, np.inf)), ulp)


def _is_overflow(values: Array, truth: Truth, dtype: str) -> Array:
    """True for infinities of the truth's sign, where it is near the end of the
    range."""
    with np.errstate(all="ignore"):
        near = np.abs(truth.high) + GOOD * truth.tolerance > largest(dtype)
        return near & np.isinf(values) & (np.sign(values) == np.sign(truth.high))


def worse(first: Array, second: Array, truth: Truth, dtype: str) -> Array:
    """At each point the less accurate value; if equal, the first."""
    one, other = (errors(v, truth, dtype).error for v in (first, second))
    return np.where(other > one, second, first)


def measure(
    found: Errors, chosen: Array, columns: dict[str, Array], values: Array, truth: Truth
) -> Measure:
    """The errors on the ``chosen`` points."""
    inside, bad = found.judged & chosen, found.bad & chosen
    error = np.where(inside, found.error, 0.0)

    def spot(index: int) -> Spot:
        inputs = tuple((n, float(c[index])) for n, c in columns.items())
        return Spot(inputs, float(values[index]), float(truth.high[index]))

    count = int(inside.sum())
    at = int(np.argmax(error)) if count else -1
    worst = float(error[at]) if count else 0.0
    return Measure(
        count,
        int(bad.sum()),
        worst,
        float(np.max(found.ulp, where=inside, initial=0.0)),
        spot(at) if worst > 0 else None,
        tuple(spot(int(i)) for i in _simplest(bad, columns)),
    )


def _simplest(bad: Array, columns: dict[str, Array]) -> Array:
    """A few bad points, spread over their magnitudes, moderate ones first."""
    places = np.flatnonzero(bad)
    if not len(places):
        return places
    with np.errstate(all="ignore"):
        logs = [np.abs(np.log2(np.abs(c[places]) + 1e-300)) for c in columns.values()]
    order = places[np.argsort(np.max(logs, axis=0), kind="stable")]
    steps = np.linspace(0, len(order) - 1, min(SHOWN, len(order)))
    return order[np.round(steps).astype(int)]
