"""What a candidate is worth: its errors against the truth, in units of the last place.

Judged by (bad points, largest error, share over 4 ULP), never by a mean: the mean once
chose a gradient with a maximum of 349 ULP over one with 45.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Expr, Select
from gradspec.ir.walk import names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import Points
from gradspec.symbolic.truth import nearest

GOOD = 4.0
"""ULP that an evaluation may be off: what float32 arithmetic can reach (NUMERICS)."""

FAIR = 128.0
"""ULP (seven bits) that may be lost somewhere if there are fewer bad points."""

POOR = 4096.0
"""ULP (twelve bits) that may be lost where nothing was right before."""

SLACK, QUIET = 1.05, 1.1
"""Factors by which the largest error may grow; the second if fewer infinities are met."""

_CAP = 2.0**40


@dataclass(frozen=True, slots=True)
class Stratum:
    """Errors over some of the points. ``worst`` leaves bad points out; ``at`` is the
    bad point nearest to 0 (or that of the largest error), by its place in the sample;
    ``errors`` are infinite at bad points.
    """

    count: int
    bad: int
    worst: float
    share: float
    at: int
    errors: Any = field(compare=False, repr=False)

    @property
    def is_good(self) -> bool:
        return self.bad == 0 and self.worst <= GOOD

    def is_worse_than(self, other: Stratum, slack: float = SLACK) -> bool:
        """Worse in any of the three (rounding luck of a fraction of an ULP is none).

        Where bad points are mended, a few digits elsewhere are a fair price (nothing
        is left of a NaN), but there must be fewer such places than mended ones.
        """
        if self.bad < other.bad:
            return self._spoiled(other) > (other.bad - self.bad) // 4
        return (
            self.bad > other.bad
            or self.worst > max(other.worst * slack, GOOD)
            or self.share > other.share + (slack - SLACK)
        )

    def counts_worse(self, other: Stratum, slack: float) -> bool:
        """Worse in any of the three, whichever points they are."""
        return (
            self.bad > other.bad
            or self.worst > max(other.worst * slack, GOOD)
            or self.share > other.share
        )

    def is_spoiled(self, other: Stratum) -> bool:
        """Whether many more digits are lost anywhere."""
        return self._spoiled(other) > 0

    def _spoiled(self, other: Stratum) -> int:
        """Points at which many more digits are lost than before, or now all."""
        were_bad = np.isinf(other.errors)
        usual = np.where(were_bad, other.worst, other.errors)
        limit = np.maximum(4.0 * usual, np.where(were_bad, POOR, FAIR))
        both = were_bad & np.isinf(self.errors)
        return int(((self.errors > limit) & ~both).sum())


@dataclass(frozen=True, slots=True)
class Score:
    """A candidate on the whole sample and on the core stratum; ``gaps`` counts the
    points inside the assumptions at which the function as written is undefined and the
    candidate is not finite either; ``noisy`` those in the core at which it passes
    through an infinity or a NaN on the way (NumPy warns, second derivatives are lost).
    """

    whole: Stratum
    core: Stratum
    gaps: int
    noisy: int = 0

    @property
    def is_good(self) -> bool:
        return self.whole.is_good and self.core.is_good

    def is_worse_than(self, other: Score, slack: float) -> bool:
        """Worse on a stratum; where bad points beyond the core are mended, a few digits
        may be the price in the core too (exp(b) / (exp(a) + exp(b)), exact to 709), and
        where some in the core are, what is spoiled there counts as it does anywhere. Gaps,
        at which nobody knows what is right, weigh as little."""
        mended = max(0, other.whole.bad - self.whole.bad)
        core = self.core.is_worse_than(other.core, slack)
        if mended and self.core.bad <= other.core.bad:
            same = self.core.bad == other.core.bad
            core = same and self.core.is_spoiled(other.core)
        return (
            self.whole.is_worse_than(other.whole, slack)
            or core
            or self.gaps > other.gaps + mended // 4
        )

    def counts_worse(self, other: Score, slack: float) -> bool:
        """Worse in any count on a stratum: it may be other points that are lost."""
        return (
            self.whole.counts_worse(other.whole, slack)
            or self.core.counts_worse(other.core, slack)
            or self.gaps > other.gaps
        )


class Trial:
    """One function (given by the expression that defines it) and the points to try
    evaluations of it on. The truth is computed once.
    """

    def __init__(self, meaning: Expr, points: Points, machine: Machine) -> None:
        self.points, self.meaning = points, meaning
        self.variables = names(meaning) - points.upstream
        self._machine, self.target = machine, machine.target
        self.dtype = np.dtype(machine.work).name
        self._tiny = float(np.finfo(machine.work).tiny)
        truth = np.array(nearest(meaning, points.rows, self.dtype), dtype=np.float64)
        self._truth = truth
        size = np.abs(truth)
        kinks = self._kinks(meaning)
        self._known = ~np.isnan(truth) & ~kinks
        self._undefined = np.isnan(truth) & ~kinks
        self._normal = np.isfinite(truth) & (size >= self._tiny)
        limited = np.where(np.isfinite(truth), size, 1.0).astype(machine.work)
        least = machine.work(self._tiny)
        with np.errstate(over="ignore"):  # beside the largest number
            self._unit = np.float64(np.spacing(np.maximum(limited, least)))

    def _kinks(self, meaning: Expr) -> Any:
        """Points at which the argument of a ``sign`` is 0: what the derivative of |x|
        is made of says 0 there, also where the function as a whole has a slope."""
        found = np.zeros(len(self.points), dtype=bool)
        for node in nodes(expand(meaning)):
            if isinstance(node, Apply) and node.op == "sign":
                found |= np.asarray(self._machine.run(node.args[0]) == 0)
        return found

    def score(self, candidate: Expr) -> Score:
        """The errors of ``candidate``."""
        value = np.float64(self._machine.run(candidate))
        bad, error = self._errors(value)
        return Score(
            self._stratum(bad, error, self._known),
            self._stratum(bad, error, self._known & self.points.core),
            self._gaps(value),
        )

    def score_at(self, candidate: Expr, chosen: Any) -> Score:
        """The errors of ``candidate`` on some of the points."""
        return self._score(np.float64(self._machine.run(candidate)), chosen)

    def score_in_double(self, candidate: Expr, chosen: Any) -> Score:
        """The same, computed in float64 and rounded once."""
        with np.errstate(all="ignore"):
            value = np.float32(self._machine.in_double().run(candidate))
        return self._score(np.float64(value), chosen)

    def _score(self, value: Any, chosen: Any) -> Score:
        bad, error = self._errors(value)
        known = self._known & chosen
        return Score(
            self._stratum(bad, error, known),
            self._stratum(bad, error, known & self.points.core),
            self._gaps(value),
        )

    def suspicion(self, candidate: Expr) -> Any:
        """How far off each point is; bad points come before all others."""
        bad, error = self._errors(np.float64(self._machine.run(candidate)))
        return np.where(bad, np.inf, error)

    def suspicion_in_double(self, candidate: Expr) -> Any:
        """The same, computed in float64 and rounded once."""
        with np.errstate(all="ignore"):
            value = np.float32(self._machine.in_double().run(candidate))
        bad, error = self._errors(np.float64(value))
        return np.where(bad, np.inf, error)

    def values(self, expr: Expr) -> Any:
        """What the machine makes of an expression at all points."""
        return self._machine.run(expr)

    def values_in_double(self, expr: Expr) -> Any:
        """The same in float64."""
        with np.errstate(all="ignore"):
            return self._machine.in_double().run(expr)

    def sizes(self, expr: Expr) -> Any:
        """The magnitudes of an expression at all points, beyond the range of float32."""
        with np.errstate(all="ignore"):
            return np.abs(np.float64(self._machine.in_double().run(expr)))

    def score_with_noise(self, candidate: Expr) -> Score:
        """:meth:`score`, and how often an infinity is met on the way (slower)."""
        return self.with_noise(self.score(candidate), candidate)

    def with_noise(self, score: Score, candidate: Expr) -> Score:
        """The score of ``candidate``, with how often an infinity is met on the way."""
        return replace(score, noisy=self._noisy(candidate))

    def value(self, candidate: Expr, index: int) -> float:
        """What the machine makes of ``candidate`` at a point."""
        return float(self._machine.run(candidate)[index])

    def true(self, index: int) -> float:
        """The true value at a point."""
        return float(self._truth[index])

    @property
    def is_finite(self) -> Any:
        """Where the truth is a number of the format."""
        return np.isfinite(self._truth)

    def first_gap(self, candidate: Expr) -> int:
        """The first point at which neither the truth nor ``candidate`` is defined."""
        value = np.float64(self._machine.run(candidate))
        return int(np.argmax(self._undefined & ~np.isfinite(value)))

    def _noisy(self, candidate: Expr) -> int:
        asked = np.isfinite(self._truth) & self.points.core
        return int((asked & self._machine.noise(candidate)).sum())

    def _stratum(self, bad: Any, error: Any, chosen: Any) -> Stratum:
        count = int(chosen.sum())
        errors = np.where(chosen, error, 0.0)
        if count == 0:
            return Stratum(0, 0, 0.0, 0.0, -1, errors)
        inside = bad & chosen
        over = int(((errors > GOOD) | inside).sum())
        at = int(np.argmax(errors))
        if inside.any():
            at = int(np.argmin(np.where(inside, self.points.size, np.inf)))
        lost = int(inside.sum())
        worst, every = float(errors.max()), np.where(inside, np.inf, errors)
        return Stratum(count, lost, worst, over / count, at, every)

    def _gaps(self, value: Any) -> int:
        return int((self._undefined & ~np.isfinite(value)).sum())

    def _errors(self, value: Any) -> tuple[Any, Any]:
        """Which points are bad, and the error in ULP at the others.

        Where the truth is 0 or subnormal, what is subnormal too is right (processors
        flush such numbers); where it overflows only a NaN is wrong.
        """
        finite = np.isfinite(value)
        normal_bad = self._normal & (~finite | (value == 0))
        small_bad = ~self._normal & np.isfinite(self._truth) & ~finite
        infinite_bad = np.isinf(self._truth) & np.isnan(value)
        bad = self._known & (normal_bad | small_bad | infinite_bad)
        with np.errstate(all="ignore"):
            off = np.abs(value - self._truth) / self._unit
        flushed = ~self._normal & (np.abs(value) <= self._tiny)
        measured = self._known & ~bad & np.isfinite(self._truth) & ~flushed
        return bad, np.where(measured, np.minimum(off, _CAP), 0.0)


def is_real(expr: Expr) -> bool:
    """Not a condition, and not a whole number: those are exact as they are."""
    match expr:
        case Apply(op=op):
            return primitive(op).result == "real"
        case Select(then=then, other=other):
            return is_real(then) or is_real(other)
        case _:
            return True
