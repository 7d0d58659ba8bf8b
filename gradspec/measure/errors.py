"""Errors of values against the truth, in tolerances: bad points and the largest error.

The tolerance T of a point is what rounding the result and moving each input by a unit
in the last place can change. In float32 and float64 it is that of
:mod:`gradspec.symbolic.truth`, by balls. In float16 and bfloat16, whose 65,536
numbers may all be asked for, slopes are differences of the expression as computed in
float64. The **error** of a value
is ``|value - truth| / T``. A **bad point** has an error of more than :data:`GOOD`, or
no number: NaN, or an infinity, unless the truth is within GOOD tolerances of the end of
the range. Where the truth is 0 or subnormal every value up to the least normal number
is right; where the truth is beyond the range nothing is judged. The plain error in ULP
of the truth is kept as information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.walk import expand, nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.accuracy_model import GOOD
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points.formats import (
    HALF,
    Array,
    largest,
    least_normal,
    rounded,
    units,
)
from gradspec.symbolic.truth import STEPS, Condition

SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Exact values as pairs of doubles (`symbolic.truth`), NaN where there is none, and
    the tolerance at each point, NaN where nothing is judged."""

    high: Array
    low: Array
    tolerance: Array

    def those(self, keep: Array) -> Truth:
        """The truth at some of the points."""
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
    is not judged; the plain error is 0, too, where there is no number, and where the
    truth is no larger than its tolerance: beside a jump to 0 no digit is determined."""

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
    open_ = np.abs(truth.high) <= tolerance
    ulp = np.where(right | ~is_number | open_, 0.0, ulp)
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


# --- tolerances --------------------------------------------------------------------

Row = Mapping[str, Any]


def tolerances(
    forms: tuple[Expr, ...],
    rows: Sequence[Row],
    value: Array,
    inputs: frozenset[str],
    dtype: str,
) -> Array:
    """T at points where the exact value is ``value``; NaN where it is NaN or beyond the
    largest number, so that nothing is judged. Of ``forms``, equal functions, the first
    that has a value at a point tells the slopes there."""
    judged = np.abs(value) <= largest(dtype)
    if dtype in HALF:
        found = units(rounded(value, dtype), dtype) + _in_double(
            forms, rows, inputs, dtype
        )
        return np.where(judged, found, np.nan)
    found = np.full(len(rows), np.nan)
    for form in forms:
        asked = np.flatnonzero(judged & np.isnan(found))
        some = tuple(rows[place] for place in asked.tolist())
        condition = Condition(form, some, inputs, dtype, value[asked])
        for number, place in enumerate(asked.tolist()):
            found[place] = condition.tolerance(number)
    return found


def _in_double(
    forms: tuple[Expr, ...], rows: Sequence[Row], inputs: frozenset[str], dtype: str
) -> Array:
    """The sum over the inputs of |∂f/∂x| · ulp(x)."""
    total = np.full(len(rows), np.nan)
    if not rows:
        return total
    columns = _columns(rows)
    for form in forms:
        if np.isnan(total).any():
            found = _changes(form, columns, inputs, dtype)
            total = np.where(np.isnan(total), found, total)
    return np.nan_to_num(total)


def _changes(
    form: Expr, columns: dict[str, Array], inputs: frozenset[str], dtype: str
) -> Array:
    """The changes by one form; NaN where float64 has no value of it."""
    here = Machine(columns, np.float64).run(form)
    total = np.where(np.isfinite(here), 0.0, np.nan)
    for name in sorted(inputs & columns.keys()):
        column = columns[name]
        step = np.where(column == 0, 0.0, STEPS * units(column, dtype))
        most = np.zeros(len(column))
        for moved in (column + step, column - step):
            there = Machine({**columns, name: moved}, np.float64).run(form)
            with np.errstate(all="ignore"):
                gap = np.abs(there - here) / STEPS
            most = np.fmax(most, np.where(np.isfinite(gap), gap, 0.0))
        total = total + most
    return total


def at_sign_changes(form: Expr, rows: Sequence[Row]) -> Array:
    """Points at which the argument of a step (``sign``) is 0: the derivative of |x| is
    given the value 0 there, also where the function as a whole has a slope."""
    found = np.zeros(len(rows), dtype=bool)
    arguments = [
        node.args[0]
        for node in nodes(expand(form))
        if isinstance(node, Apply) and _jumps_at_zero(node.op)
    ]
    machine = Machine(_columns(rows), np.float64)
    for argument in arguments if rows else ():
        found |= np.asarray(machine.run(argument) == 0)
    return found


def _jumps_at_zero(op: str) -> bool:
    row = primitive(op)
    return row.is_step and row.kinks[0][0] == "x == 0"


def _columns(rows: Sequence[Row]) -> dict[str, Array]:
    names = rows[0] if rows else ()
    return {n: np.array([float(row[n]) for row in rows]) for n in names}
