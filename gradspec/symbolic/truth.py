"""Values of expressions to the digits that a format has, or more, and the conditioning
of a function there: the accuracy that a perfect target gives.

Precision is raised until both ends of the ball round to the same value of the format.
Fixed precision, or "raise it until two runs agree", accuse right code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import nan
from typing import Any

from flint import arb, ctx

from gradspec.ir.expr import Expr
from gradspec.ir.walk import expand
from gradspec.symbolic.enclose import (
    Point,
    Program,
    ball_around,
    is_defined,
    program,
    to_ball,
)

CAP = 4096
"""Bits at which we stop. A ball that is defined but still holds the middle between two
neighbours is then a true tie (to about 1200 digits) and goes to the even one; one that
is still undefined or wide (a jump at a point that is not exact) is nan."""

_ENDS = 128
"""Bits that the ends of a ball are told with. (They are rounded outwards: with the 53
of flint's context they would never round to one float64.)"""

_TIE = 2000  # bits of relative accuracy that a ball must have to be called a tie


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format: bits of the significand, exponents of the least
    subnormal's unit and of the overflow threshold (values are below 2**top)."""

    bits: int
    least: int
    top: int


FORMATS = {
    "float16": Format(11, -24, 16),
    "bfloat16": Format(8, -133, 128),
    "float32": Format(24, -149, 128),
    "float64": Format(53, -1074, 1024),
}


def nearest(expr: Expr, points: Sequence[Point], dtype: str = "float32") -> list[float]:
    """The value of ``expr`` at each point, rounded once to ``dtype``.

    Correct rounding, subnormal results and overflow to inf included; a limit at ±inf is
    a value like another; nan where the expression is undefined (see :data:`CAP`).
    """
    compiled, form = program(expr), FORMATS[dtype]
    return [nearest_of(compiled, point, form) for point in points]


def nearest_of(compiled: Program, point: Point, form: Format) -> float:
    """:func:`nearest` for one point of a compiled expression."""
    precision = 64 if form.bits <= 24 else 96
    while True:
        ball = compiled.run(point, precision)[0]
        value = _round(ball, form)
        if value is not None:
            return value
        if precision >= CAP:
            return _tie(ball, form)
        precision *= 2


def _round(ball: Any, form: Format) -> float | None:
    """The one value to which all of the ball rounds; None when there are several."""
    if ball is None or ball is True or ball is False:
        return None if ball is None else float(ball)
    if not ball.is_finite():
        return _infinite(ball)
    if ball.is_exact():
        return round_exact(ball, form)
    if form.bits <= 24 and ball.rel_accuracy_bits() > 52:
        value = _narrow(float(ball), form)
        if value is not None:
            return value
    before, ctx.prec = ctx.prec, _ENDS  # a million times in a compile: no `with`
    low, high = ball.lower(), ball.upper()
    ctx.prec = before
    low, high = round_exact(low, form), round_exact(high, form)
    # A ball about zero has ends -0.0 and 0.0: equal, and the truth is then 0.0.
    return low + 0.0 if low == high else None


def _infinite(ball: Any) -> float | None:
    """Exact infinities are limits; everything else that is not finite is undecided."""
    if ball.is_nan() or not ball.is_exact():
        return None
    return math.inf if ball > 0 else -math.inf


def _tie(ball: Any, form: Format) -> float:
    if ball is None or not ball.is_finite() or ball.rel_accuracy_bits() < _TIE:
        return math.nan
    return round_exact(ball.mid(), form)


def round_exact(value: Any, form: Format) -> float:
    """An exact ball rounded to a format, half to even (the result as a double)."""
    near = _narrow(float(value), form)
    return _by_integers(value, form) if near is None else near


def _narrow(double: float, form: Format) -> float | None:
    """A number rounded to a double, half to even, rounded to ``form``: the same as
    rounded once, except about the middle between two of its numbers (None), where the
    double doesn't say on which side the number was."""
    if form.bits == 53 or double == 0 or math.isinf(double):
        return double
    unit = max(math.frexp(double)[1] - form.bits, form.least)
    units = math.ldexp(double, -unit)
    kept = round(units)
    if abs(units - kept) > 0.5 - 2.0**-20:  # a double has 28 bits more, or is as exact
        return None
    if kept.bit_length() + unit > form.top:
        return math.copysign(math.inf, double)
    return math.copysign(math.ldexp(kept, unit), double)


def _by_integers(value: Any, form: Format) -> float:
    man, exp = value.man_exp()
    mantissa, exponent = int(man), int(exp)
    magnitude = abs(mantissa)
    sign = -1 if mantissa < 0 else 1  # the mantissa itself may be beyond a double
    if magnitude == 0:
        return 0.0
    top = magnitude.bit_length() + exponent
    if top > form.top:
        return math.copysign(math.inf, sign)
    unit = max(top - form.bits, form.least)
    shift = unit - exponent
    if shift > magnitude.bit_length() + 1:
        return math.copysign(0.0, sign)
    kept = _shift_even(magnitude, shift)
    if kept.bit_length() + unit > form.top:
        return math.copysign(math.inf, sign)
    return math.copysign(math.ldexp(kept, unit), sign)


def _shift_even(magnitude: int, shift: int) -> int:
    """``magnitude / 2**shift`` to the nearest integer, half to even."""
    if shift <= 0:
        return magnitude << -shift
    kept, rest = magnitude >> shift, magnitude & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return kept + (rest > half or (rest == half and kept & 1 == 1))


# --- more digits than a format has, as two doubles -----------------------------------
# An error is measured against the exact value and not against its rounding, so a double
# nearest to it (``high``) and what is then left (``low``) are kept: together at least
# eleven bits beyond the format's last.


_EXTRA = 14
_ROOM = 40
"""Bits with which the first attempt is made, beyond those of the format."""

_SIDES = 100
"""Bits more where a value may be a power of two."""

UNKNOWN = (math.nan, 0.0)


def pairs(expr: Expr, points: Iterable[Point], dtype: str) -> list[tuple[float, float]]:
    """``(high, low)`` of ``expr`` at each point: nan where it is undefined or cannot be
    told, inf where it is infinite or beyond the range of doubles, 0 where all that can
    be told is that it rounds to 0.
    """
    compiled, form = program(expr), FORMATS[dtype]
    return [pair(compiled, point, form) for point in points]


def pair(compiled: Program, point: Point, form: Format) -> tuple[float, float]:
    """:func:`pairs` for one point of a compiled expression."""
    precision = form.bits + _ROOM
    while True:
        ball = compiled.run(point, precision)[0]
        found = _split(ball, form)
        if found is not None:
            return found
        if precision >= CAP or _is_hopeless(compiled, ball, point):
            return (0.0, 0.0) if _is_nothing(ball, form) else UNKNOWN
        precision *= 2


def _is_nothing(ball: Any, form: Format) -> bool:
    """True if all of a ball rounds to 0 in the format: ``log(1 + exp(x)) - x`` at
    1e10."""
    if not isinstance(ball, arb) or not ball.is_finite():
        return False
    return bool(abs(ball) < arb(2) ** (form.least - 1))


def _split(ball: Any, form: Format) -> tuple[float, float] | None:
    """A ball that is narrow enough as two doubles; None if it is not."""
    if ball is None or ball is True or ball is False:
        return None if ball is None else (float(ball), 0.0)
    if not ball.is_finite():
        exact = not ball.is_nan() and ball.is_exact()
        return (math.copysign(math.inf, 1 if ball > 0 else -1), 0.0) if exact else None
    if not ball.is_exact() and ball.rel_accuracy_bits() < form.bits + _EXTRA:
        return None
    middle = ball.mid()
    high = float(middle)
    if math.isinf(high) or high == 0.0:
        return high, 0.0
    if not ball.is_exact() and _is_open(high, ball, form):
        return None
    return high, float(middle - arb(high))


def _is_open(high: float, ball: Any, form: Format) -> bool:
    """True if it is not known on which side of a power of two the value lies, where a
    unit in the last place is another; what is as near to one as `_SIDES` is equal to
    it.
    """
    mantissa = abs(math.frexp(high)[0])
    distance = min(mantissa - 0.5, 1.0 - mantissa)
    if distance > 2.0 ** (1 - form.bits - _EXTRA):
        return False
    return bool(ball.rel_accuracy_bits() < form.bits + _EXTRA + _SIDES)


def _is_hopeless(compiled: Program, ball: Any, point: Point) -> bool:
    """True if undefined for a reason that more precision does not remove."""
    return ball is not None and not ball.is_finite() and compiled.is_singular(point)


# --- agreement with a number as it was written ---------------------------------------


_SINGLE = Fraction(1, 2**22)
"""Relative error that a float32 computation of a few steps may leave in a number."""


class Agreement(Enum):
    YES = "yes"
    SINGLE = "to the precision of float32 only"
    NO = "no"
    UNKNOWN = "not to be decided"


def agreement(ball: Any, expected: Fraction | float, unit: Fraction) -> Agreement:
    """Rounded to the last digit written, or cut off there."""
    if isinstance(expected, float):
        return _special(ball, expected)
    if not is_defined(ball):
        return Agreement.NO if _is_infinite(ball) else Agreement.UNKNOWN
    with ctx.workprec(256):
        exact = to_ball(expected)
        off = abs(_number(ball) - exact)
        last = to_ball(unit)
        if not off > last / 2:
            return Agreement.YES
        if (
            not off >= last
            and abs(_number(ball)) > abs(exact)
            and _is_long(exact, last)
        ):
            return Agreement.YES
        rough = abs(exact) * to_ball(_SINGLE)
        return Agreement.NO if off > rough else Agreement.SINGLE


def _special(ball: Any, expected: float) -> Agreement:
    if math.isinf(expected) and _is_infinite(ball):
        same = (ball > 0) == (expected > 0)
        return Agreement.YES if same else Agreement.NO
    if is_defined(ball):
        return Agreement.NO
    return Agreement.UNKNOWN


def _is_infinite(ball: Any) -> bool:
    if ball is None or ball is True or ball is False:
        return False
    return bool(ball.is_exact() and not ball.is_finite() and not ball.is_nan())


def _is_long(exact: Any, last: Any) -> bool:
    """True for four digits or more: 3.1415 is truncated, 3 is rounded."""
    return bool(abs(exact) >= 1000 * last)


def _number(ball: Any) -> Any:
    return arb(int(ball)) if ball is True or ball is False else ball


# --- many expressions at one point as float64 ----------------------------------------


PRECISION = 256
"""Bits: moderate points of sums of a few terms lose few of them."""

ACCURACY = 1e-30
"""The largest radius of a ball: moderate points give no smaller numbers of interest."""


def floats(compiled: Program, point: Mapping[str, Any]) -> list[float | None]:
    """The middles of the balls, however large or small; None where there is no
    value."""
    balls = compiled.run(point, 2 * PRECISION)
    with ctx.workprec(2 * PRECISION):
        return [
            float(ball.mid())
            if is_defined(ball) and not isinstance(ball, bool)
            else None
            for ball in balls
        ]


def values(program: Program, point: Mapping[str, Fraction]) -> list[float]:
    """One number for each root of the program; nan where it is undefined or not
    narrow."""
    balls = program.run(point, PRECISION)
    with ctx.workprec(PRECISION):
        return [_middle(ball) for ball in balls]


def _middle(ball: Any) -> float:
    if ball is None or isinstance(ball, bool):
        return nan if ball is None else float(ball)
    return float(ball.mid()) if ball.is_finite() and ball.rad() < ACCURACY else nan


# --- the conditioning of a function ----------------------------------------------------
# A function f of floating inputs x_1 … x_n has, in a format, the tolerance
#
#     T(x) = ulp(f(x)) + Σ_i |∂f/∂x_i| · ulp(x_i)
#
# the change of the exact result that rounding the result and moving each input by a unit
# in the last place can make. An evaluation whose error is a small multiple of T
# everywhere is stable in the mixed forward–backward sense (Higham, Accuracy and Stability
# of Numerical Algorithms, 2002, section 1.5): it is nearly the exact result for nearly
# the given inputs.
#
# Slopes are differences of exact values over a few units, so that a jump nearby (a sign,
# a branch) counts as a slope: the side on which a rounded input falls is not decidable.
# Balls give values and slopes; slopes are computed only where an error exceeds a few
# units of the result.


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
        import numpy as np

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
        import numpy as np

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
    import numpy as np

    work = np.dtype(dtype).type
    limits = np.finfo(work)
    size = np.nan_to_num(np.abs(value), nan=0.0, posinf=limits.max)
    below = np.nextafter(limits.max, work(0))  # beyond the largest number is no unit
    size = np.asarray(np.clip(size, limits.tiny, below), work)
    return np.asarray(np.spacing(size), np.float64)
