"""The signs of an expression along one variable: a point for each, exact zeros, and
whether any float is left out.

Intervals on which ball arithmetic decides the sign are done; the others are halved until
no float lies between their ends, nearest to 0 first. Both ends of what is left are
points on the two sides of a root, as near to it as floats come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import ceil, floor, frexp, inf, ldexp, nextafter
from typing import Any

from flint import arb, ctx

from gradspec.symbolic.enclose import Program, is_defined
from gradspec.symbolic.points.domain import Range

TESTS = 1200
"""Intervals that are looked at along one line."""

_MOST = 6  # roots
_LARGEST = 2.0**127
_LEAST = 2.0**-150
"""Floats of single precision lie between 2**-149 and 2**128."""

_NARROW = 2.0**-20
_BITS, _MORE_BITS = 64, 320
_INTEGERS = 2.0**31 - 1

_Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Signs:
    """Values of the variable: roots, their neighbours and numbers between them;
    ``is_whole``: an expression of this variable alone has no other sign at any
    float."""

    points: tuple[Fraction, ...]
    is_whole: bool


def signs(
    gap: Program,
    variable: str,
    base: Mapping[str, Fraction],
    room: Range,
    is_integer: bool,
) -> Signs:
    """The signs of ``gap`` for values of the variable in ``room``."""
    line = _Line(gap, variable, base, is_integer)
    waiting = line.start(room)
    ends = {end for pair in waiting for end in pair}
    found: list[Fraction] = []
    queue = [(_distance(pair), pair) for pair in waiting]
    heapify(queue)
    roots = 0
    for _ in range(TESTS):
        if not queue or roots == _MOST:
            break
        _, (low, high) = heappop(queue)
        if line.sign(low, high) is not None:
            continue
        centre = line.between(low, high)
        if centre is None:
            ends |= {low, high}
            found += line.roots(low, high)
            roots += 1
            continue
        for part in ((low, centre), (centre, high)):
            heappush(queue, (_distance(part), part))
    between = (line.between(low, high) for low, high in pairwise(sorted(ends)))
    ends |= {centre for centre in between if centre is not None}
    return Signs((*found, *map(Fraction, sorted(ends))), not queue)


def _distance(interval: _Interval) -> _Interval:
    """From 0; of two that are alike the positive one first."""
    low, high = interval
    return (0.0 if low < 0 < high else min(abs(low), abs(high))), -high


@dataclass(frozen=True, slots=True)
class _Line:
    """An expression as a function of one variable."""

    gap: Program
    variable: str
    base: Mapping[str, Fraction]
    is_integer: bool

    def start(self, room: Range) -> list[_Interval]:
        """The room in a few intervals, each of one sign and order of magnitude."""
        largest = _INTEGERS if self.is_integer else _LARGEST
        low = -largest if room.low is None else float(room.low)
        high = largest if room.high is None else float(room.high)
        if self.is_integer:
            low, high = float(ceil(low)), float(floor(high))
        else:
            if room.low is not None and (not room.low_inside or low < room.low):
                low = max(nextafter(low, inf), low + _LEAST)
            if room.high is not None and (not room.high_inside or high > room.high):
                high = min(nextafter(high, -inf), high - _LEAST)
        inner = (v for v in (-1.0, -_LEAST, _LEAST, 1.0) if low < v < high)
        wanted = (v for v in inner if not self.is_integer or abs(v) == 1)
        ends = (low, *wanted, high)
        return list(pairwise(ends)) if low < high else [(low, high)] * (low == high)

    def between(self, low: float, high: float) -> float | None:
        """A number inside, in the middle of the exponents if they differ; None if
        there is no float."""
        if self.is_integer:
            centre = float(floor((low + high) / 2))
            return centre if low < centre else None
        small, large = sorted((abs(low), abs(high)))
        if high - low <= 2 * _LEAST:
            return None
        if low < 0 < high or large < 4 * small:
            centre = (low + high) / 2
        else:
            least, most = frexp(small)[1] if small else -149, frexp(large)[1]
            size = ldexp(1.0, (least + most) // 2 - 1)
            size = size if small < size < large else (small + large) / 2
            centre = size if low >= 0 else -size
        return centre if low < centre < high else None

    def sign(self, low: float, high: float) -> int | None:
        """The sign on an interval; None if balls do not decide it."""
        is_narrow = high - low < _NARROW * max(abs(low), abs(high))
        bits = _MORE_BITS if is_narrow else _BITS
        with ctx.workprec(bits):
            ball = arb(low).union(arb(high))
        return sign_of(self.gap.run({**self.base, self.variable: ball}, bits)[0])

    def roots(self, low: float, high: float) -> list[Fraction]:
        """The simplest number in the interval, if it is a root."""
        ends = Fraction(low), Fraction(high)
        value = ends[0] if self.is_integer else _simplest(*ends)
        there = self.gap.run({**self.base, self.variable: value}, _MORE_BITS)[0]
        return [value] if is_defined(there) and there.contains(0) else []


def sign_of(ball: Any) -> int | None:
    """The sign of all of a ball: -1, 0 or 1; None if it is not one, or not defined."""
    if not isinstance(ball, arb) or not ball.is_finite():
        return None
    if ball.is_zero():
        return 0
    return 1 if ball > 0 else -1 if ball < 0 else None


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the least denominator in an interval (by the tree of Stern and
    Brocot)."""
    if low <= 0 <= high:
        return Fraction(0)
    if high < 0:
        return -_simplest(-high, -low)
    whole = floor(low)
    if whole == low:
        return low
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))
