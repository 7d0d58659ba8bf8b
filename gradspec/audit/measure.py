"""How far values are from the truth: bad points, the largest error, shares.

A **bad point** is NaN, ±inf or 0 where the truth is a finite normal number. At the other
points where the truth is such a number the **error** is ``|value - truth| / ulp(truth)``.
Where the truth is 0, subnormal or beyond the range nothing is measured, but a NaN (or an
infinity in place of a small number) is counted as **lost**.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradspec.audit.formats import Array, largest, least_normal, unit

SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Exact values as pairs of doubles (`symbolic.pairs`), nan where there is none."""

    high: Array
    low: Array


@dataclass(frozen=True, slots=True)
class Spot:
    """One point: the inputs, what came out, what should have."""

    inputs: tuple[tuple[str, float], ...]
    got: float
    truth: float


@dataclass(frozen=True, slots=True)
class Measure:
    """What was found on some of the points. ``count``: points measured; ``worst``: the
    largest error, bad points aside, at ``at``; shares are of the points measured, bad
    points included.
    """

    count: int
    bad: int
    lost: int
    worst: float
    over1: float
    over4: float
    at: Spot | None
    examples: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """For each point: whether it is measured, bad, lost, and the error in ULP."""

    measured: Array
    bad: Array
    lost: Array
    ulp: Array


def errors(values: Array, truth: Truth, dtype: str) -> Errors:
    """The errors of ``values`` of a format."""
    size = np.abs(truth.high)
    normal = (size >= least_normal(dtype)) & (size <= largest(dtype))
    finite = np.isfinite(values)
    bad = normal & (~finite | (values == 0))
    small = size < least_normal(dtype)
    lost = (small & ~finite) | ((size > largest(dtype)) & np.isnan(values))
    scale = unit(truth.high, truth.low, dtype)
    with np.errstate(all="ignore"):
        off = np.abs((values / scale - truth.high / scale) - truth.low / scale)
    return Errors(normal, bad, lost, np.where(normal & ~bad, off, 0.0))


def worse(first: Array, second: Array, truth: Truth, dtype: str) -> Array:
    """At each point the value that is farther off; of equals the first."""
    one, other = (_rank(errors(v, truth, dtype)) for v in (first, second))
    return np.where(other > one, second, first)


def _rank(found: Errors) -> Array:
    return np.where(found.bad | found.lost, np.inf, found.ulp)


def measure(
    found: Errors, chosen: Array, columns: dict[str, Array], values: Array, truth: Truth
) -> Measure:
    """The errors on the ``chosen`` points."""
    inside = found.measured & chosen
    count, bad = int(inside.sum()), found.bad & chosen
    ulp = np.where(inside, found.ulp, 0.0)

    def spot(index: int) -> Spot:
        inputs = tuple((n, float(c[index])) for n, c in columns.items())
        return Spot(inputs, float(values[index]), float(truth.high[index]))

    at = int(np.argmax(ulp)) if count else -1
    worst = float(ulp[at]) if count else 0.0
    return Measure(
        count,
        int(bad.sum()),
        int((found.lost & chosen).sum()),
        worst,
        _share(((ulp > 1.0) | bad) & inside, count),
        _share(((ulp > 4.0) | bad) & inside, count),
        spot(at) if worst > 0 else None,
        tuple(spot(int(i)) for i in _simplest(bad, columns)),
    )


def _share(mask: Array, count: int) -> float:
    return float(mask.sum()) / count if count else 0.0


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
