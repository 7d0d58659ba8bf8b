"""A polynomial where a function of one input cancels: about its zeros and removable points.

A gradient such as that of silu has a zero at which every elementary form loses all its
digits, and ``expm1(x) / x`` has no value at 0. There the function is a short polynomial in
the distance ``u`` from the point, which is computed exactly; elsewhere it stays as it is.

* Where the point is no number of the format, it is a sum of three: the first is exact in
  float32, the first two together in float64. ``x`` less those is exact too, so ``u`` is
  right to its last place at every number.
* The window is the smallest outside of which the form at hand is good, by measurement in
  both precisions.
* That the polynomial is the function there, to 2**-60, is proved: `symbolic/taylor.py`
  bounds what a Taylor series leaves out, `symbolic/economise.py` shortens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.table_polynomials import LONGEST, name_of
from gradspec.stabilise.around import WIDTHS, Around, Profile
from gradspec.stabilise.distance import distance
from gradspec.stabilise.exponential import through_exponential
from gradspec.stabilise.measure import GOOD

_SMALLEST, _LARGEST = 3, 110
"""Nodes of an expression that is looked at."""

_MOST = 4
"""Zeros: a function with more of them is periodic, and has any number."""

_ORDERS = (40, 72)
_FAIR = 10.0
"""ULP that an exact form may be off: what a polynomial would cost more to gain."""

_HALVINGS = 6

_GAIN = 4.0
"""How many times smaller the largest error must become."""


@dataclass(frozen=True, slots=True)
class Mended:
    """``old`` to be replaced by ``new``, and why; ``closed`` is ``new`` in the inputs."""

    old: Expr
    new: Expr
    closed: Expr
    why: str


@dataclass(frozen=True, slots=True)
class Point:
    """Where to expand; ``is_zero`` if the function is 0 there for certain."""

    centre: Any = field(compare=False)
    near: Fraction
    is_zero: bool


def with_series(part: Expr, closed: Expr, name: str, is_factor: bool) -> Mended | None:
    """``part`` with a series about each point at which it is poor; ``closed`` is the same
    in its one input. None if it is good, or nothing is gained. Zeros count only if it
    ``is_factor``."""
    return series_beside(part, closed, closed, name, is_factor)


def with_series_at_zero(
    part: Expr, closed: Expr, name: str, is_factor: bool
) -> Mended | None:
    """The same about 0 alone: of a root, whose square is exact where it is not."""
    return series_beside(part, closed, closed, name, is_factor, _is_at_zero)


def series_beside(
    part: Expr,
    closed: Expr,
    meaning: Expr,
    name: str,
    is_factor: bool,
    is_meant: Callable[[Point], bool] = lambda _: True,
) -> Mended | None:
    """The same where the series are those of ``meaning``, which is equal to ``part``
    but may be easier to expand. (About a removable point what cancels is large, also in
    a sum.) ``is_meant`` says about which points."""
    found: Mended | None = None
    for point in filter(is_meant, points_of(meaning, name)):
        around = Around(meaning, name, point.near)
        if not is_factor and around.is_zero() and not around.is_hole():
            continue
        before = (part, closed) if found is None else (found.new, found.closed)
        more = _about(before, meaning, name, point)
        if more is not None:
            why = more.why if found is None else f"{found.why}; {more.why}"
            found = Mended(part, more.new, more.closed, why)
    return found


def with_exponential(
    part: Expr, closed: Expr, name: str, is_factor: bool
) -> Mended | None:
    """``part`` through ``exp(-|x|)``, if it is poor somewhere and that is good there."""
    if not is_factor:
        return None
    arounds = [Around(closed, name, point.near) for point in points_of(closed, name)]
    poor = [around for around in arounds if around.is_poor(closed)]
    form = through_exponential(closed, name) if poor else None
    if form is None:
        return None
    before = max((around.profile(closed) for around in poor), key=_worst)
    after = max((around.profile(form) for around in arounds), key=_worst)
    if after.worst > _FAIR or not after.worst < before.worst / _GAIN:
        return None
    why = f"through exp(-|{name}|), exact about {name} = {before.at:.8g}, where other forms"
    return Mended(part, form, form, f"{why} {_gain(before, after)}")


def _is_at_zero(point: Point) -> bool:
    return point.near == 0


def _worst(profile: Profile) -> float:
    return profile.worst


def is_poor(closed: Expr, name: str) -> bool:
    """Whether digits are lost about a zero or a removable point."""
    near = (point.near for point in points_of(closed, name))
    return any(Around(closed, name, number).is_poor(closed) for number in near)


def is_fit(closed: Expr) -> bool:
    """Neither too short nor too long to be looked at."""
    return _SMALLEST <= sum(1 for _ in nodes(closed)) <= _LARGEST


@lru_cache(maxsize=256)
def points_of(closed: Expr, name: str) -> tuple[Point, ...]:
    """The zeros of a function of one input, 0, and where it divides by 0."""
    from gradspec.symbolic.isolated import zeros

    found = {Fraction(0): Point(Fraction(0), Fraction(0), False)}
    for node in nodes(closed):
        match node:
            case Apply(op="div", args=(_, below)) if not isinstance(below, Ref | Const):
                poles = zeros(below, name, _MOST)
                few = poles if len(poles) <= _MOST else ()
                exact = (z.near for z in few if isinstance(z.centre, Fraction))
                found |= {near: Point(near, near, False) for near in exact}
    roots = zeros(closed, name, _MOST)
    if len(roots) <= _MOST:
        found |= {z.near: Point(z.centre, z.near, True) for z in roots}
    return tuple(found[near] for near in sorted(found))


def _about(
    before: tuple[Expr, Expr], meaning: Expr, name: str, point: Point
) -> Mended | None:
    """A form with a polynomial about a point, if it is poor there."""
    part, closed = before
    around = Around(meaning, name, point.near)
    is_hole = around.is_hole()
    if not is_hole and not around.is_poor(closed):
        return None
    was = around.profile(closed)
    widths = was.windows if was.worst > GOOD else WIDTHS[:1]
    found = (series_about(meaning, name, point, width) for width in _narrowing(widths))
    known = next((one for one in found if one is not None), None)
    if known is None:
        return None
    condition, series = known
    better = Select(condition, series, closed)
    now = around.profile(better)
    if not is_hole and not now.worst < was.worst / _GAIN:
        return None
    why = told(name, point, was, now)
    return Mended(part, Select(condition, series, part), better, why)


def _narrowing(widths: tuple[Fraction, ...]) -> Iterator[Fraction]:
    """The windows wished for, then ever narrower ones: where a function of slow
    convergence is poor all about, a series in a part of that mends what is worst."""
    yield from widths
    for width in widths[-1:]:
        halves = (width / 2**n for n in range(1, _HALVINGS))
        yield from (half for half in halves if half >= WIDTHS[0])


def told(name: str, point: Point, was: Profile, now: Profile) -> str:
    place = f"{name} = {float(point.near):.8g}"
    what = f"its zero {place}" if point.is_zero else place
    if was.worst <= GOOD:
        return f"a series about {what}, where other forms have no value"
    return f"a series about {what}, where other forms {_gain(was, now)}"


def _gain(was: Profile, now: Profile) -> str:
    lost = "all" if was.worst >= 2.0**50 else f"{was.worst:.1e} ULP"
    return f"lose digits ({was.dtype}: {lost}); now at most {now.worst + 0.5:.1f} ULP"


# --- the series ------------------------------------------------------------------------


@lru_cache(maxsize=256)
def series_about(
    closed: Expr, name: str, point: Point, window: Fraction
) -> tuple[Expr, Expr] | None:
    """The condition of the window and the polynomial in it."""
    from gradspec.symbolic.economise import shortened
    from gradspec.symbolic.jets import NoSeries
    from gradspec.symbolic.taylor import about

    for order in _ORDERS:
        try:
            found = about(closed, name, (point.centre, point.is_zero), window, order)
            short = shortened(found)
        except NoSeries:
            continue
        if len(short.coefficients) > LONGEST:
            return None
        first, whole = _distance(name, point, window)
        inside = Apply("lt", (Apply("abs", (first,)), Const(window)))
        return inside, polynomial(whole, short.power, short.coefficients, short.is_even)
    return None


def _distance(name: str, point: Point, window: Fraction) -> tuple[Expr, Expr]:
    """``x`` less the first part of the point, and less all of it; beyond the window ``x``
    stays near, so that no power of it overflows where it is not used."""
    near = Fraction(float(np.float32(float(point.near))))
    ends = _short_below(near - window), -_short_below(-near - window)
    return distance(Apply("clip", (Ref(name), *map(Const, ends))), point.near)


def _short_below(end: Fraction) -> Fraction:
    """A number of few digits that is not larger."""
    return Fraction(floor(64 * end), 64)


def polynomial(
    u: Expr, power: int, coefficients: tuple[Fraction, ...], is_even: bool
) -> Expr:
    """``u**power * (c0 + c1 * t + …)``, ``t`` being the square of ``u`` or ``u``."""
    numbers = tuple(Const(c) for c in coefficients)
    t = Apply("mul", (u, u)) if is_even else u
    factor: Expr = numbers[0]
    if len(numbers) > 1:
        factor = Apply(name_of(len(numbers)), (t, *numbers))
    for _ in range(power):
        factor = Apply("mul", (u, factor))
    return factor
