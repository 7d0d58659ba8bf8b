"""Exact values of a function at floating-point inputs, and its conditioning.

A function f of floating inputs x_1 … x_n has, in a format, the tolerance

    T(x) = ulp(f(x)) + Σ_i |∂f/∂x_i| · ulp(x_i)

the change of the exact result that rounding the result and moving each input by a unit
in the last place can make. An evaluation whose error is a small multiple of T
everywhere is stable in the mixed forward–backward sense (Higham, Accuracy and Stability
of Numerical Algorithms, 2002, section 1.5): it is nearly the exact result for nearly
the given inputs.

Slopes are differences of exact values over a few units, so that a jump nearby (a sign,
a branch) counts as a slope: the side on which a rounded input falls is not decidable.
Balls give values and slopes; slopes are computed only where an error exceeds a few
units of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.ir.walk import expand
from gradspec.symbolic.enclose import ball_around, program
from gradspec.symbolic.truth import FORMATS, nearest_of

STEPS = 4
"""Units in the last place over which slopes are taken."""

_PRECISIONS = (128, 256, 512, 1024)
"""Precisions of the balls in bits, raised until the slope is known to one part in
eight.
"""


class Condition:
    """The exact values of ``form`` at ``points`` in a format, and tolerances there.

    ``points`` bind every name to a number of the format ("float32" or "float64");
    ``inputs`` names the floating inputs, whose roundings count. ``value`` is an array
    of float64: the exact values rounded to the format, NaN where the function is
    undefined. Those that are not NaN in ``known`` are taken from there. Raises
    NotImplementedError for indices and reductions.
    """

    def __init__(
        self,
        form: Expr,
        points: tuple[Mapping[str, Any], ...],
        inputs: frozenset[str],
        dtype: str,
        known: Any = None,
    ) -> None:
        self._points, self._format = points, FORMATS[dtype]
        self._program = program(expand(form))
        self._moving = sorted(inputs & self._program.names.keys())
        self.value = np.full(len(points), np.nan) if known is None else known
        for row in np.flatnonzero(np.isnan(self.value)).tolist():
            self.value[row] = nearest_of(self._program, points[row], self._format)
        self.unit = units(self.value, dtype)
        self._least, self._most = self.unit.copy(), np.full(len(points), math.inf)
        self._done: dict[int, int] = {}  # inputs whose changes are in the lower bounds
        self._widths: dict[int, float] = {}
        self._here: dict[int, Any] = {}  # the balls at the point that is asked for

    def tolerances(self, rows: Any, enough: Any) -> Any:
        """:meth:`tolerance` at several points, each with its own ``enough``."""
        least, most = self._least[rows], self._most[rows]
        found = np.where(least > enough, least, most)
        for place in np.flatnonzero((least <= enough) & (most >= enough)).tolist():
            found[place] = self.tolerance(int(rows[place]), float(enough[place]))
        return found

    def tolerance(self, row: int, enough: float = math.inf) -> float:
        """T at a point; a lower bound if that reaches ``enough``, an upper bound if
        that does not.
        """
        total, done = float(self._least[row]), self._done.get(row, 0)
        left = len(self._moving) - done
        if left and enough < math.inf:
            bound = total + left * self._width(row) / STEPS
            if bound < enough:
                self._most[row] = bound
                return bound
        self._here.clear()
        while done < len(self._moving) and total <= enough:
            total += max(self._changes(row, self._moving[done]), default=0.0)
            done += 1
        self._least[row], self._done[row] = total, done
        if done == len(self._moving):
            self._most[row] = total
        return total

    def _width(self, row: int) -> float:
        """The range of the values over all inputs within their steps: a bound on the
        change from any one input.
        """
        if row not in self._widths:
            here = self._points[row]
            box = {n: ball_around(here[n], self._step(here[n])) for n in self._moving}
            ball = self._program.run({**here, **box})[0]
            is_known = hasattr(ball, "is_finite") and ball.is_finite()
            self._widths[row] = 2 * float(ball.rad()) if is_known else math.inf
        return self._widths[row]

    def _step(self, at: float) -> float:
        """:data:`STEPS` units of ``at``; 0 if ``at`` is 0."""
        exponent = math.frexp(at)[1] - self._format.bits
        return math.ldexp(STEPS, max(exponent, self._format.least)) if at else 0.0

    def _changes(self, row: int, name: str) -> Iterator[float]:
        """|∂f/∂x| · ulp(x), from above and from below, where f is defined there."""
        here = self._points[row]
        at = here[name]
        step = self._step(at)
        size = abs(float(self.value[row]))
        for moved in (at + step, at - step) if step else ():
            found = self._change(here, {**here, name: moved}, size)
            if found is not None:
                yield found / STEPS

    def _change(
        self, here: Mapping[str, Any], there: Mapping[str, Any], size: float
    ) -> float | None:
        """The distance between two exact values; None if there is none."""
        least = size * 2.0 ** -(self._format.bits + 5)
        for bits in _PRECISIONS:
            if bits not in self._here:
                self._here[bits] = self._program.run(here, bits)[0]
            one, other = self._here[bits], self._program.run(there, bits)[0]
            if one is None or other is None:
                return None
            gap = abs(one - other)
            if gap.is_finite():
                distance = float(gap.mid())
                if float(gap.rad()) <= max(least, distance / 8):
                    return distance
        return None


def units(value: Any, dtype: Any) -> Any:
    """The spacing of the format at a number: at least that at its least normal number,
    at most that at its largest.
    """
    work = np.dtype(dtype).type
    limits = np.finfo(work)
    size = np.nan_to_num(np.abs(value), nan=0.0, posinf=limits.max)
    below = np.nextafter(limits.max, work(0))  # beyond the largest number is no unit
    return np.float64(np.spacing(work(np.clip(size, limits.tiny, below))))
