"""The accuracy of a candidate: its error in units of the tolerance, point by point.

An error of at most :data:`GOOD` tolerances (see :mod:`gradspec.symbolic.truth`) is
good. The constant is not delicate: 3, 4, 8 and 16 separate the same candidates. A point
is **bad** where the error is larger, where the value is NaN or infinite though the
exact one is a number of the format, or where it is 0 and that is no good approximation.
Where the exact value is 0 or subnormal, any value up to the least normal number is
accepted, because processors may flush such numbers to 0. Values beyond the range are
not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr, Select
from gradspec.ir.walk import expand, nodes
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.points.measured import Points
from gradspec.symbolic.truth import Condition

GOOD = 4.0
"""The largest error, in tolerances, that counts as good."""

_NO_NUMBER = 4  # times that a point without a number counts


@dataclass(frozen=True, slots=True)
class Score:
    """``bad``: points with an error beyond :data:`GOOD`, ``core`` those of moderate
    inputs (`formats.CORE`); ``gaps``: points inside the assumptions at which the
    function is undefined as written and the candidate is not finite either;
    ``infinities``: points of the core at which an intermediate value is not finite
    (NumPy warns there, and second derivatives may be NaN). ``worst``: the largest
    finite error, in tolerances, for information. ``loses``: True if the candidate has
    clearly fewer digits than the formula as written at a point that is alike.
    ``errors``: the error at each point, 0 where it is not judged, infinite where the
    value is not a number.
    """

    bad: int
    core: int
    gaps: int
    infinities: int
    worst: float
    loses: bool
    errors: Any = field(compare=False, repr=False)

    @property
    def is_good(self) -> bool:
        return not (self.bad or self.gaps or self.infinities)

    @property
    def faults(self) -> tuple[int, int, int, int]:
        """Counts of faults, gravest first."""
        return self.core, self.bad, self.gaps, self.infinities

    def spoils(self, other: Score) -> int:
        """Points that are bad here and not in ``other``; those without a number count
        several times, because an infinity retains no information.
        """
        new = (self.errors > GOOD) & (other.errors <= GOOD)
        lost = np.isinf(self.errors) & ~np.isinf(other.errors)
        return int(new.sum()) + (_NO_NUMBER - 1) * int(lost.sum())


class Trial:
    """The points, in one format, at which candidates for one function are evaluated.
    ``close`` substitutes values for names (and numbers for indices) in a candidate.
    """

    def __init__(
        self,
        meaning: Expr,
        points: Points,
        machine: Machine,
        close: Callable[[Expr], Expr] = lambda form: form,
    ) -> None:
        self.meaning, self.points, self.machine = meaning, points, machine
        self.close = close
        dtype = np.dtype(machine.work).name
        self.condition = Condition(meaning, points.rows, points.floating, dtype)
        value = self.condition.value
        limits = np.finfo(machine.work)
        size = np.abs(value)
        kinks = self._at_sign_changes(meaning)
        self.undefined = np.isnan(value)
        self._judged = (size <= limits.max) & ~kinks
        self._tiny, self._largest = float(limits.tiny), float(limits.max)
        self._is_small = size < limits.tiny
        self._plain = np.zeros(len(size))
        if points.alike.any():
            self._plain = self._units(np.float64(machine.run(meaning)))

    def _at_sign_changes(self, meaning: Expr) -> Any:
        """Points at which the argument of a ``sign`` is 0: the derivative of |x| is
        defined as 0 there, even where the function as a whole has a slope.
        """
        found = np.zeros(len(self.points), dtype=bool)
        for node in nodes(expand(meaning)):
            if isinstance(node, Apply) and node.op == "sign":
                found |= np.asarray(self.machine.run(node.args[0]) == 0)
        return found

    def score(self, candidate: Expr) -> Score:
        """The errors of ``candidate`` computed in the format."""
        closed = self.close(candidate)
        return self._score(self.machine.run(closed).astype(np.float64), closed)

    def score_in_double(self, candidate: Expr) -> Score:
        """The errors of ``candidate`` computed in float64 and rounded once."""
        closed = self.close(candidate)
        with np.errstate(all="ignore"):
            value = self.machine.in_double().run(closed).astype(self.machine.work)
        return self._score(value.astype(np.float64), closed)

    def _score(self, value: Any, candidate: Expr) -> Score:
        units = self._units(value)
        errors = self._errors(value, units)
        bad = errors > GOOD
        core = self.points.core
        is_judged = self._judged & core
        infinities = 0
        if (is_judged & ~bad).any():
            infinities = int(self.machine.meets_infinity(candidate, is_judged).sum())
        return Score(
            int(bad.sum()),
            int((bad & core).sum()),
            int((self.undefined & ~np.isfinite(value)).sum()),
            infinities,
            float(np.max(errors, where=np.isfinite(errors), initial=0.0)),
            bool((units > GOOD * (self._plain + GOOD))[self.points.alike].any()),
            errors,
        )

    def _units(self, value: Any) -> Any:
        """Errors in units of the last place of the result."""
        with np.errstate(all="ignore"):
            ulp = np.abs(value - self.condition.value) / self.condition.unit
        ulp = np.where(np.isfinite(value), ulp, np.inf)
        flushed = self._is_small & (np.abs(value) <= self._tiny)
        return np.where(self._judged & ~flushed, ulp, 0.0)

    def _errors(self, value: Any, ulp: Any) -> Any:
        """Errors in tolerances. A tolerance is computed only where an error exceeds a
        few units of the result.
        """
        exact = self.condition.value
        errors = ulp.copy()
        rows = np.flatnonzero((ulp > GOOD) & np.isfinite(value))
        error = ulp[rows] * self.condition.unit[rows]
        tolerances = self.condition.tolerances(rows, error / GOOD)
        is_finite = np.isfinite(tolerances)  # any number is within an infinite one
        errors[rows] = np.divide(
            error, tolerances, out=np.zeros(len(rows)), where=is_finite
        )
        # an infinity is right beside the largest number
        rows = np.flatnonzero(np.isinf(ulp) & (value == np.copysign(np.inf, exact)))
        short = (self._largest - np.abs(exact[rows])) / GOOD
        beyond = self.condition.tolerances(rows, short) > short
        errors[rows] = np.where(beyond, 0.0, np.inf)
        return errors

    def values(self, expr: Expr) -> Any:
        """The values of an expression at all points, as computed in the format."""
        return self.machine.run(self.close(expr))

    def worst_row(self, score: Score) -> int:
        """A point to report: the bad one of most moderate inputs, else the worst."""
        bad = score.errors > GOOD
        if bad.any():
            shown = bad & self.points.core if (bad & self.points.core).any() else bad
            return int(np.argmin(np.where(shown, self.points.size, np.inf)))
        return int(np.argmax(score.errors))


def is_real(expr: Expr) -> bool:
    """False for conditions and integers, which are exact already."""
    match expr:
        case Apply(op=op):
            return primitive(op).result == "real"
        case Select(then=then, other=other):
            return is_real(then) or is_real(other)
        case _:
            return True
