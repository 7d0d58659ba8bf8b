"""Roots of two expressions' difference along one variable: exact, or tight; exact
values.

First by solving for the variable, then by trying simple numbers, at last by isolation:
intervals on which ball arithmetic excludes a root are dropped, the others halved. What
is left is a root if it is one exactly, or if the sign changes across it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import ZERO, Apply, Const, Expr, show
from gradspec.ir.tidy import decide, fold, tidy
from gradspec.ir.walk import names, nodes
from gradspec.primitives.balls import truth
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.borders.bounds import solutions
from gradspec.symbolic.borders.surfaces import Surface
from gradspec.symbolic.enclose import (
    UNDEFINED,
    Program,
    is_defined,
    middle,
    operation,
    program,
    to_ball,
)
from gradspec.symbolic.points.domain import fractions

SIMPLE = fractions("0 1 -1 2 -2 1/2 -1/2 3 -3 4 -4")
LATTICE = fractions("0 1 -1")
"""Whole numbers at which a lattice is looked at."""

_ENDS = tuple(Fraction(2) ** k for k in (10, 7, 5, 4, 3, 2, 1, 0, -2, -6))
_GRID = (*(-end for end in _ENDS), Fraction(0), *reversed(_ENDS))
_MOST_TESTS = 600
_NARROW = Fraction(1, 2**16)
_BITS = 420
"""Halvings of an interval with a change of sign: narrower than any step taken there."""

_ASIDE = Fraction(1, 2**40)
_SMALL = 2.0**-100
_MOST = 3
"""Roots of one surface that are looked at, those nearest to 0."""


@dataclass(frozen=True, slots=True)
class Root:
    """``value`` of the variable; within 2**-400 if it is not ``exact``. ``text`` is
    what a reader is told that it is; ``more``: it stands for several.
    """

    value: Fraction
    text: str
    exact: bool = True
    more: bool = False


def solve(
    surface: Surface, variable: str, base: Mapping[str, Fraction]
) -> tuple[Root, ...]:
    """The roots that are found without searching; ``base`` binds all names."""
    if surface.is_lattice:
        return tuple(_lattice(surface, variable, base))
    gap = program(Apply("sub", (surface.left, surface.right)))
    found = tuple(_by_solving(surface, gap, variable, base))
    return found or tuple(_by_trying(surface, gap, variable, base))


def is_solvable(surface: Surface, variable: str) -> bool:
    """True if solving gives all roots: of a lattice, or for what is on one side
    alone."""
    left, right = surface.left, surface.right
    return surface.is_lattice or bool(solutions(left, right, variable))


def _by_solving(
    surface: Surface, gap: Program, variable: str, base: Mapping[str, Fraction]
) -> Iterator[Root]:
    for expr in map(tidy, solutions(surface.left, surface.right, variable)):
        value = exactly(expr, base)
        if isinstance(value, Fraction):
            if is_root(surface, {**base, variable: value}):
                yield Root(value, _text(expr))
            continue
        ball = program(expr).run(base, 2 * _BITS)[0]
        if not is_defined(ball) or abs(ball) > 1e300:  # no float is there
            continue
        if gap.run({**base, variable: ball}, 2 * _BITS)[0].contains(0):
            yield Root(middle(ball), _text(expr), exact=False)


def _by_trying(
    surface: Surface, gap: Program, variable: str, base: Mapping[str, Fraction]
) -> Iterator[Root]:
    """Simple numbers. Where the sides are equal all around there is no border."""
    for value in SIMPLE:
        is_met = is_root(surface, {**base, variable: value})
        if is_met and not _is_flat(gap, variable, base, value):
            yield Root(value, show(Const(value)))


def _is_flat(
    gap: Program, variable: str, base: Mapping[str, Fraction], value: Fraction
) -> bool:
    return all(
        _is_zero(gap.run({**base, variable: value + step}, 256)[0])
        for step in (_ASIDE, -_ASIDE)
    )


def _is_zero(ball: Any) -> bool:
    return bool(is_defined(ball) and ball.is_zero())


def is_root(surface: Surface, point: Mapping[str, Fraction]) -> bool:
    """True if both sides are exactly equal; balls exclude most points quickly."""
    ball = program(Apply("sub", (surface.left, surface.right))).run(point, 64)[0]
    if not is_defined(ball) or not ball.contains(0):
        return False
    return bool(exactly(surface.left, point) == exactly(surface.right, point))


def _text(expr: Expr) -> str:
    """The solution as one writes it: 0 divided by anything is 0."""
    if isinstance(expr, Apply) and expr.op in ("div", "mul") and expr.args[0] == ZERO:
        return "0"
    return show(expr)


def isolate(
    surface: Surface, variable: str, base: Mapping[str, Fraction]
) -> tuple[Root, ...]:
    """The roots in -1024 … 1024 that a search finds, those nearest to 0."""
    gap = program(Apply("sub", (surface.left, surface.right)))
    found: list[Root] = []
    for low, high in sorted(_suspects(gap, variable, base), key=_distance):
        found += _roots(gap, variable, base, low, high)
        if len(found) > _MOST:
            return tuple(replace(root, more=True) for root in found[:_MOST])
    return tuple(found)


def _distance(interval: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """From 0; of two that are alike the positive one first."""
    low, high = interval
    return min(abs(low), abs(high)), -high


def _lattice(
    surface: Surface, variable: str, base: Mapping[str, Fraction]
) -> Iterator[Root]:
    """Points where the left side is a whole number, as it is at many others."""
    for whole in LATTICE:
        for expr in map(tidy, solutions(surface.left, Const(whole), variable)):
            value = exactly(expr, base)
            if not isinstance(value, Fraction):
                continue
            if exactly(surface.left, {**base, variable: value}) == whole:
                yield Root(value, _text(expr), more=True)


# --- isolation -----------------------------------------------------------------------


def _suspects(
    gap: Program, variable: str, base: Mapping[str, Fraction]
) -> tuple[tuple[Fraction, Fraction], ...]:
    """Narrow intervals on which the gap is not certainly different from 0, neighbours
    joined. Those near 0 are looked at first: a function with many roots uses up the
    tests.
    """
    waiting = [(_distance(pair), pair) for pair in pairwise(_GRID)]
    heapify(waiting)
    kept: list[tuple[Fraction, Fraction]] = []
    for _ in range(_MOST_TESTS):
        if not waiting:
            break
        _, (low, high) = heappop(waiting)
        if _excludes(gap, variable, base, low, high):
            continue
        if high - low > _NARROW * max(Fraction(1), abs(low)):
            centre = (low + high) / 2
            for part in ((low, centre), (centre, high)):
                heappush(waiting, (_distance(part), part))
        else:
            kept.append((low, high))
    return _join(kept)


def _join(
    intervals: list[tuple[Fraction, Fraction]],
) -> tuple[tuple[Fraction, Fraction], ...]:
    joined: list[tuple[Fraction, Fraction]] = []
    for low, high in sorted(intervals):
        if joined and joined[-1][1] == low:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return tuple(joined)


def _excludes(
    gap: Program,
    variable: str,
    base: Mapping[str, Fraction],
    low: Fraction,
    high: Fraction,
) -> bool:
    with ctx.workprec(64):
        ball = arb(_exact((low + high) / 2), _exact((high - low) / 2))
    value = gap.run({**base, variable: ball}, 64)[0]
    return is_defined(value) and value is not True and not value.contains(0)


def _exact(value: Fraction) -> Any:
    return fmpq(value.numerator, value.denominator)


def _roots(
    gap: Program,
    variable: str,
    base: Mapping[str, Fraction],
    low: Fraction,
    high: Fraction,
) -> tuple[Root, ...]:
    """The root in a narrow interval: a simple fraction, or where the sign changes.
    Where all of the interval is a root, its two ends."""
    at = _Along(gap, variable, base)
    width = high - low
    centre = (low + high) / 2
    for candidate in (centre.limit_denominator(d) for d in (1, 16, 1000)):
        if low <= candidate <= high and _is_zero(at.value(candidate)):
            if not _is_flat(gap, variable, base, candidate):
                return (Root(candidate, show(Const(candidate))),)
            ends = (at.end(candidate, side) for side in (low - width, high + width))
            return tuple(_inexact(end) for end in ends if end is not None)
    root = at.crossing(low - width, high + width)
    return () if root is None else (_inexact(root),)


def _inexact(value: Fraction) -> Root:
    return Root(value, f"{float(value):.6g}…", exact=False)


@dataclass(frozen=True, slots=True)
class _Along:
    """The gap as a function of one variable."""

    gap: Program
    variable: str
    base: Mapping[str, Fraction]

    def value(self, value: Fraction) -> Any:
        return self.gap.run({**self.base, self.variable: value}, 2 * _BITS)[0]

    def crossing(self, low: Fraction, high: Fraction) -> Fraction | None:
        """The point of a change of sign through 0, not through a pole."""
        sign = _sign(self.value(low))
        if sign is None or sign == _sign(self.value(high)):
            return None
        for _ in range(_BITS):
            centre = (low + high) / 2
            seen = _sign(self.value(centre))
            if seen is None:
                return None
            low, high = (centre, high) if seen == sign else (low, centre)
        return low if abs(self.value(low)) < _SMALL else None

    def end(self, inside: Fraction, outside: Fraction) -> Fraction | None:
        """The end of the interval on which the gap is 0."""
        if _is_zero(self.value(outside)):
            return None
        for _ in range(_BITS):
            centre = (inside + outside) / 2
            is_inside = _is_zero(self.value(centre))
            inside, outside = (centre, outside) if is_inside else (inside, centre)
        return inside


def _sign(ball: Any) -> int | None:
    if not is_defined(ball) or ball.contains(0):
        return None
    return 1 if ball > 0 else -1


# --- values at one point, exact wherever they are rational ---------------------------
# At a breakpoint everything depends on which side of a comparison holds. ``x > 0.7`` at
# ``x = 0.7`` cannot be decided by balls, for 0.7 has no exact ball; here numbers stay
# fractions as long as they are rational, and become balls where they are not.


_PRECISION = 256
_LONGEST = 2048
"""Bits of a numerator beyond which an exact ball stays a ball."""


def exactly(expr: Expr, point: Mapping[str, Fraction]) -> Any:
    """A `Fraction`, a ball that is no known fraction (perhaps undefined), or a truth
    value; None for a condition that is not decided.
    """
    return evaluate(expr, _Exact(point), {})


def as_fraction(ball: Any) -> Any:
    """The fraction that an exact ball is, else the ball."""
    if not isinstance(ball, arb) or not ball.is_finite() or not ball.is_exact():
        return ball
    man, exp = ball.man_exp()
    if int(man).bit_length() + abs(int(exp)) > _LONGEST:
        return ball
    return middle(ball)


class _Exact:
    """Fractions, and balls where there is none."""

    def __init__(self, point: Mapping[str, Fraction]) -> None:
        self._point = point

    def constant(self, value: Fraction) -> Any:
        return value

    def variable(self, name: str) -> Any:
        return Fraction(self._point[name])

    def operation(self, op: str) -> Callable[..., Any]:
        return partial(_apply, op)

    def truth_of(self, condition: Any) -> bool | None:
        if isinstance(condition, Fraction):
            return condition != 0
        known = truth(condition)
        return known if known is True or known is False else None

    def select(self, condition: Any, then: Any, other: Any) -> Any:
        same = isinstance(then, Fraction) and isinstance(other, Fraction)
        return then if same and then == other else UNDEFINED


def _apply(op: str, *values: Any) -> Any:
    if all(isinstance(value, Fraction) for value in values):
        node = Apply(op, tuple(Const(value) for value in values))
        folded = fold(node)
        if isinstance(folded, Const):
            return folded.value
        decided = decide(node)
        if decided is not None:
            return decided
        meant = _by_meaning(op, values)
        if isinstance(meant, Fraction):
            return meant
    if any(value is None for value in values):
        return None
    if op == "sub" and _are_one(*values):
        return Fraction(0)
    with ctx.workprec(_PRECISION):
        try:
            return as_fraction(operation(op)(*map(to_ball, values)))
        except (ArithmeticError, ValueError):
            return UNDEFINED


def _are_one(left: Any, right: Any) -> bool:
    """True for the same ball, radius included: the same function of the same fraction."""
    is_ball = isinstance(left, arb) and isinstance(right, arb) and left.is_finite()
    return is_ball and left.mid() == right.mid() and left.rad() == right.rad()


def _by_meaning(op: str, values: tuple[Any, ...]) -> Any:
    """Of a function that is made of others: ``clip`` of numbers that have no ball."""
    row = primitive(op)
    if row.meaning is None:
        return None
    return exactly(formula(row.meaning), dict(zip(row.params, values, strict=True)))


# --- points at which several things coincide -----------------------------------------
# Inputs that vanish together, differences that are 0 all at once, inputs that are equal
# in pairs (two points of a plane given by their coordinates, two boxes by their corners).


def coincidences(
    point: Mapping[str, Fraction], movable: tuple[str, ...], met: Iterable[Surface]
) -> Iterator[dict[str, Fraction]]:
    """The point with inputs moved: equal in two groups, in pairs, in three groups, all;
    then of each surface all 0, and to where its differences are 0."""
    count = len(movable)
    groups = (
        [(k, k + step) for k in range(0, count - step, jump)][:most]
        for step, jump, most in (
            (count // 2, 1, count // 2),
            (1, 2, count),
            (count // 3, 1, count // 3),
        )
    )
    for equal in (*groups, [(0, k) for k in range(1, count)]):
        if equal:
            yield {**point, **{movable[b]: point[movable[a]] for a, b in equal}}
    for surface in met:
        used = surface.names
        own = tuple(name for name in movable if name in used)
        yield {**point, **dict.fromkeys(own, Fraction(0))}
        yield _level(point, own, surface)


def _level(
    point: Mapping[str, Fraction], movable: tuple[str, ...], surface: Surface
) -> dict[str, Fraction]:
    """The point with each difference in the surface 0 for which an input is left that no
    earlier one uses."""
    made, fixed = dict(point), set[str]()
    for node in (n for side in (surface.left, surface.right) for n in nodes(side)):
        match node:
            case Apply(op="sub", args=(left, right)):
                pass
            case _:
                continue
        free = [n for n in movable if n in names(node) and n not in fixed]
        for name in reversed(free):
            values = (exactly(one, made) for one in solutions(left, right, name))
            exact = [value for value in values if isinstance(value, Fraction)]
            if exact:
                made[name] = exact[0]
                break
        fixed |= names(node)
    return made
