"""Points inside the domain of a rule: ranges of variables, constraints, generic points.

Simple points and float32 numbers (`symbolic.points.simple`) refute in a way that is read at
a glance, but a narrow or curved domain has few of them, and what they have in common
may hide an error. So what agrees has to agree at generic points too: drawn inside the
assumptions, no simple numbers, as many bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx

from gradspec.ir.expr import Apply, Const, Expr, Ref, apply
from gradspec.ir.products import conjuncts
from gradspec.ir.rule import UNBOUNDED, Input, Kind, Rule
from gradspec.ir.walk import memo, names
from gradspec.symbolic.borders.bounds import Bound, bounds, tighten
from gradspec.symbolic.enclose import enclose, is_defined, middle, program, to_ball

_LARGEST = Fraction((1 << 24) - 1) * Fraction(2) ** 104


def fractions(text: str) -> tuple[Fraction, ...]:
    """Exact numbers from their text: ``"1 1/2 -3"``."""
    return tuple(Fraction(part) for part in text.split())


def float32(value: Any) -> Fraction:
    """The float32 nearest to a fraction, or to the middle of a ball."""
    if not isinstance(value, Fraction):
        if abs(value) > 1e60:  # as a fraction, exp(1e30) has 1e30 digits
            return _LARGEST if value > 0 else -_LARGEST
        if abs(value) < 1e-60:
            return Fraction(0)
    exact = value if isinstance(value, Fraction) else middle(value)
    if exact == 0:
        return exact
    top = exact.numerator.bit_length() - exact.denominator.bit_length()
    unit = Fraction(2) ** max(top - 23, -149)
    return max(-_LARGEST, min(_LARGEST, round(exact / unit) * unit))


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high`` (None: no end), each end inside or not."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_inside: bool = False
    high_inside: bool = False

    def within(self, op: str, ball: Any) -> Range:
        """Narrowed by ``op`` and a bound; an infinite or undefined one says nothing."""
        if not hasattr(ball, "is_finite") or not ball.is_finite():
            return self
        value = middle(ball)
        closed = op in ("le", "ge", "eq") and bool(ball.is_exact())
        result = self
        if op in ("gt", "ge", "eq") and (self.low is None or value >= self.low):
            inside = closed and (value != self.low or self.low_inside)
            result = Range(value, result.high, inside, result.high_inside)
        if op in ("lt", "le", "eq") and (self.high is None or value <= self.high):
            inside = closed and (value != self.high or self.high_inside)
            result = Range(result.low, value, result.low_inside, inside)
        return result

    def holds(self, value: Fraction) -> bool:
        if self.low is not None and not _beyond(value, self.low, self.low_inside):
            return False
        if self.high is None:
            return True
        return _beyond(-value, -self.high, self.high_inside)

    def simple_inside(self) -> tuple[Fraction, ...]:
        """A few plain numbers: by quarters between two ends, by ones from one end."""
        match (self.low, self.high):
            case (None, None):
                return ()
            case (Fraction() as low, None):
                return tuple(low + step for step in fractions("1 2 1/2 3 0 1/4"))
            case (None, Fraction() as high):
                return tuple(high - step for step in fractions("1 2 1/2 3 0 1/4"))
            case (Fraction() as low, Fraction() as high):
                parts = fractions("1/2 1/4 3/4 0 1 1/8 7/8 3/8")
                return tuple(low + (high - low) * part for part in parts)
            case _:
                return ()

    def place(self, size: Fraction, mirrored: bool) -> Fraction | None:
        """A number at the distance ``size`` from an end (from zero without ends);
        between two ends the distance is folded into the interval."""
        match (self.low, self.high):
            case (None, None):
                return float32(-size if mirrored else size)
            case (Fraction() as low, None):
                return float32(low + size)
            case (None, Fraction() as high):
                return float32(high - size)
            case (Fraction() as low, Fraction() as high):
                part = (high - low) * size / (1 + size) / (1 if size > 1 else 2)
                return float32(high - part if mirrored else low + part)
            case _:
                return None


def _beyond(value: Fraction, end: Fraction, inside: bool) -> bool:
    return value > end or (inside and value == end)


Signs = Mapping[str, bool]
"""Names that are never negative; True for those above 0."""


def signs(rule: Rule) -> Signs:
    """The signs that a rule assumes."""
    found: dict[str, bool] = {}
    for part in (p for assume in rule.assumes for p in conjuncts(assume.condition)):
        match part:
            case (
                Apply(op="gt" | "ge" as op, args=(Ref() as of, Const(value=least)))
                | Apply(op="lt" | "le" as op, args=(Const(value=least), Ref() as of))
            ) if least >= 0 and len(of.indices) == len(of.free):
                found[of.name] = least > 0 or op in ("gt", "lt")
    return found


# --- points brought inside assumptions -----------------------------------------------
# Each equation, and each inequality that does not hold where a point is, is an equation
# for Newton's method with the shortest step (Gauss and Newton): an inequality is given a
# place inside to aim at. So `a**2 + b**2 == 1` has points all around the circle, and
# `abs(a * b - 1) < 1e-9` some on either side.


DEPTH = 8704
"""Bits to which an equation holds: more than any comparison looks at (compare, 8192),
so that what is equal where it holds is not told apart by what is left of it."""

_MET = 8192
_NOTHING = arb(2) ** -1024
_TINY = arb(2) ** -40
_INSIDE = 640
_FIRST = 128
_STEPS = 60
_ROUNDS = 4
"""An inequality may be violated only after another one holds."""

Point: TypeAlias = "dict[str, Fraction]"
Draw: TypeAlias = Callable[[int], int]
"""A whole number below a limit."""


class Constraints:
    """Conditions that all have to hold, and the inputs that may be moved to that end:
    the tensors; ``fixed`` ones (statics) where an equation has nothing else."""

    def __init__(
        self, conditions: Iterable[Expr], movable: frozenset[str], fixed: frozenset[str]
    ) -> None:
        self._parts = tuple(part for c in conditions for part in conjuncts(c))
        self._movable, self._fixed = movable, fixed
        sides = [_sides(part) for part in self._parts]
        self._gaps = {
            k: _gap(k, *found) for k, found in enumerate(sides) if found is not None
        }
        self._equations = tuple(k for k in self._gaps if _is_equation(self._parts[k]))

    def holds(self, point: Mapping[str, Any]) -> bool:
        return not any(self._fails(k, point) for k in range(len(self._parts)))

    def _fails(self, number: int, point: Mapping[str, Any]) -> bool:
        """True if a part does not hold, or may not; an equation holds if its sides are
        the same to very many digits."""
        part = self._parts[number]
        if enclose(part, point) is True:
            return False
        if number in self._equations:
            assert isinstance(part, Apply)
            gap = enclose(apply("sub", *part.args), point, _MET)
            return not (is_defined(gap) and gap.contains(0) and abs(gap) < _NOTHING)
        return enclose(part, point, _INSIDE) is not True

    def settle(self, point: Point, draw: Draw) -> Point | None:
        """A point near this one at which all conditions hold; None if none was
        found."""
        aims: dict[int, Point] = {k: _aim(k, 1, 0) for k in self._equations}
        is_scaled = draw(2) == 1
        for round_ in range(_ROUNDS):
            failing = [k for k in range(len(self._parts)) if self._fails(k, point)]
            if not failing:
                return point
            if any(k not in self._gaps for k in failing):
                return None
            fresh = [k for k in failing if k not in aims]
            if round_ and not fresh:
                return None
            aims |= {k: self._inside(k, point, draw) for k in fresh}
            moved = self._solve(point, aims, is_scaled)
            if moved is None:
                return None
            point = moved
        return point if self.holds(point) else None

    def _inside(self, number: int, point: Point, draw: Draw) -> Point:
        """``l < r`` is met at ``l = part * r`` (by the signs, with a part below 1 or
        above) or at ``l = r - step``."""
        sides = _sides(self._parts[number])
        assert sides is not None
        part = Fraction(1 + draw(65535), 65536)
        left, right = (enclose(side, point) for side in sides)
        if draw(2) and is_defined(left) and is_defined(right):
            if left > 0 or right > 0:
                return _aim(number, part, 0)
            if right < 0:
                return _aim(number, 1 / part, 0)
        return _aim(number, 1, (1 + part) * Fraction(2) ** (10 - draw(90)))

    def _solve(
        self, point: Point, aims: Mapping[int, Point], is_scaled: bool
    ) -> Point | None:
        """Newton's method; ``is_scaled``: with steps in proportion to the numbers,
        which keep their signs (shares of a whole stay positive)."""
        gaps = tuple(self._gaps[k] for k in aims)
        free = sorted(self._movable & frozenset[str]().union(*map(names, gaps)))
        if any(self._movable.isdisjoint(names(gap)) for gap in gaps):
            known = self._movable | self._fixed
            free = sorted(known & frozenset[str]().union(*map(names, gaps)))
        if not free:  # a gap of constants alone
            return None
        depth = DEPTH if self._equations else 2 * _FIRST
        extra = {n: v for aim in aims.values() for n, v in aim.items()}
        with ctx.workprec(2 * depth):  # what is not moved is kept exactly
            at: dict[str, Any] = {n: to_ball(v) for n, v in (point | extra).items()}
        bits = _FIRST
        for _ in range(_STEPS):
            with ctx.workprec(bits):
                step = _step(gaps, at, free, bits, is_scaled)
                if step is None:
                    return None
                close = arb(2) ** (8 - bits // 2)
                is_close = all(abs(step[n]) < close * _size(at[n]) for n in free)
                at |= {n: _move(at[n], step[n], is_scaled) for n in free}
            if is_close:
                if bits == depth:
                    return point | {n: middle(at[n]) for n in free}
                bits = min(2 * bits, depth)
        return None


@memo(64)
def constraints(
    conditions: tuple[Expr, ...], movable: frozenset[str], fixed: frozenset[str]
) -> Constraints:
    return Constraints(conditions, movable, fixed)


def _is_equation(part: Expr) -> bool:
    return isinstance(part, Apply) and part.op == "eq"


def _sides(part: Expr) -> tuple[Expr, Expr] | None:
    """The smaller and the larger side of a relation."""
    match part:
        case Apply(op="lt" | "le" | "eq", args=(left, right)):
            return left, right
        case Apply(op="gt" | "ge", args=(left, right)):
            return right, left
        case _:
            return None


def _aim(number: int, part: Fraction | int, step: Fraction | int) -> Point:
    """Parameters of a gap; no variable has a name with a space."""
    return {f"part {number}": Fraction(part), f"step {number}": Fraction(step)}


def _gap(number: int, left: Expr, right: Expr) -> Expr:
    """``l - part * r + step``."""
    aimed = apply("mul", Ref(f"part {number}"), right)
    return apply("add", apply("sub", left, aimed), Ref(f"step {number}"))


def _step(
    gaps: tuple[Expr, ...],
    at: Mapping[str, Any],
    free: list[str],
    bits: int,
    is_scaled: bool,
) -> dict[str, Any] | None:
    """The shortest step to where the linear parts of all gaps vanish."""
    compiled = program(*gaps)
    here = _run(compiled.run(at, bits))
    if here is None:
        return None
    columns = []
    for name in free:
        beside = (at[name] + _size(at[name]) * arb(2) ** -(bits // 2)).mid()
        there = _run(compiled.run({**at, name: beside}, bits))
        if there is None:
            return None
        width = beside - at[name]
        columns.append([(b - a) / width for a, b in zip(here, there, strict=True)])
    weights = [at[n] ** 2 if is_scaled else arb(1) for n in free]
    slopes = arb_mat([list(row) for row in zip(*columns, strict=True)]).mid()
    turned = arb_mat(
        [[w * s for s in column] for w, column in zip(weights, columns, strict=True)]
    ).mid()
    try:
        solved = (slopes * turned).mid().solve(arb_mat([[-a] for a in here]))
    except ZeroDivisionError:
        return None
    steps = [row[0].mid() for row in (turned * solved.mid()).tolist()]
    if not all(step.is_finite() for step in steps):
        return None
    return dict(zip(free, steps, strict=True))


def _run(values: tuple[Any, ...]) -> list[Any] | None:
    """The midpoints of balls, if all are defined."""
    return [v.mid() for v in values] if all(map(is_defined, values)) else None


def _move(value: Any, step: Any, is_scaled: bool) -> Any:
    """The point after a step; scaled, a number is at most halved or multiplied by
    four."""
    if is_scaled and value != 0 and abs(step) > abs(value) / 2:
        most = abs(value) / 2 if step * value < 0 else 3 * abs(value)
        step = step if abs(step) < most else (most if step > 0 else -most)
    return (value + step).mid()


def _size(value: Any) -> Any:
    return abs(value) if abs(value) > _TINY else _TINY


# --- generic points ------------------------------------------------------------------


Values = dict[str, Fraction]

_TRIES = 8
_BITS = 640
_WIDTH = 200
EDGE = 2048
"""Bits of difference above which two points are not one point found twice."""


def drawing(*seeds: int) -> Callable[[int], int]:
    """Whole numbers below a limit; a small generator, so that nothing depends on the
    version of Python's own (constants: Knuth, MMIX)."""
    factors = (7919, 104729, 1299709)
    state = sum(f * s for f, s in zip(factors, seeds, strict=True)) + 1

    def draw(limit: int) -> int:
        nonlocal state
        for _ in range(2):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (state >> 33) % limit

    return draw


class Limits:
    """The bounds that assumptions set to each input, given those before it."""

    def __init__(self, rule: Rule) -> None:
        plain = tuple(a.condition for a in rule.assumes if not a.indices)
        self.conditions = tighten(plain)
        self._bounds: dict[str, list[Bound]] = {i.name: [] for i in rule.inputs}
        for part in (p for c in self.conditions for p in conjuncts(c)):
            found = bounds(part)
            for bound in found:
                if bound.op != "eq" or _is_only(bound, found):
                    self._bounds.setdefault(bound.variable, []).append(bound)

    def room(self, name: str, point: Mapping[str, Fraction]) -> Range:
        """The range that earlier values leave; equations without an exact solution are
        left to `Constraints`."""
        room = Range()
        for bound in self._bounds[name]:
            try:
                value = enclose(bound.value, point, _BITS)
            except KeyError:  # speaks of a variable that has no value yet
                continue
            if bound.op != "eq" or not is_defined(value) or value.is_exact():
                room = room.within(bound.op, value)
        return room

    def pinned_inputs(self) -> frozenset[str]:
        """The inputs that have one value, by equations with numbers and other such."""
        found: frozenset[str] = frozenset()
        while True:
            more = {
                bound.variable
                for some in self._bounds.values()
                for bound in some
                if bound.op == "eq" and names(bound.value) <= found
            }
            if more <= found:
                return found
            found |= more


def _is_only(bound: Bound, found: tuple[Bound, ...]) -> bool:
    """True if it is the variable's only bound; `abs(x) == 2` gives two."""
    return sum(other.variable == bound.variable for other in found) == 1


def constraints_of(
    rule: Rule, conditions: tuple[Expr, ...], fixed: frozenset[str] = frozenset()
) -> Constraints:
    """The assumptions of a rule without axes; ``fixed`` inputs stay where they are."""
    tensors = frozenset(rule.real_inputs)
    statics = frozenset(i.name for i in rule.inputs if i.kind is Kind.STATIC)
    return constraints(conditions, tensors - fixed, statics - fixed)


def generic(rule: Rule, count: int, seed: int = 0) -> Iterator[Values]:
    """Up to so many different points (inputs and statics) of a rule without axes."""
    limits = Limits(rule)
    inside = constraints_of(rule, limits.conditions)
    seen: set[tuple[int, ...]] = set()
    for index in range(_TRIES * count):
        start = _start(rule, limits, index, seed)
        point = (
            None if start is None else inside.settle(start, drawing(index, 97, seed))
        )
        if point is not None and _key(point) not in seen:
            seen.add(_key(point))
            yield point
        if len(seen) == count:
            return


def _key(point: Values) -> tuple[int, ...]:
    return tuple(round(value * 2**EDGE) for value in point.values())


def _start(rule: Rule, limits: Limits, index: int, seed: int) -> Values | None:
    """One value after another, each within the range that the earlier ones leave
    open."""
    point: Values = {}
    for position, variable in enumerate(rule.inputs):
        room = limits.room(variable.name, point)
        value = _value(variable, room, drawing(index, position + 11, seed))
        if value is None:
            return None
        point[variable.name] = value
    return point


def _value(variable: Input, room: Range, draw: Callable[[int], int]) -> Fraction | None:
    if room.low is not None and room.low == room.high:
        return room.low if room.holds(room.low) else None
    match variable.kind:
        case Kind.BOOL:
            return Fraction(draw(2))
        case Kind.INT | Kind.STATIC_INT:
            return _whole(room, variable.default, draw)
        case _:
            return _real(room, variable, draw)


def _whole(
    room: Range, default: Fraction | None, draw: Callable[[int], int]
) -> Fraction | None:
    low, high = whole_range(room, default)
    return Fraction(low + draw(high - low + 1)) if low <= high else None


def whole_range(room: Range, default: Fraction | None) -> tuple[int, int]:
    """The smallest and the largest whole number that is drawn; statics stay near their
    default, and keep its sign."""
    low, high = _whole_ends(room)
    if default is not None:
        if default > 0:
            low = max(low or 1, 1)
        most = floor(default) + 4
        high = most if high is None else min(high, most)
    if low is None:
        low = -8 if high is None else high - _WIDTH
    return low, low + _WIDTH if high is None else high


def _whole_ends(room: Range) -> tuple[int | None, int | None]:
    """The smallest and the largest whole number inside."""
    low = None if room.low is None else ceil(room.low)
    high = None if room.high is None else floor(room.high)
    if low is not None and not room.holds(Fraction(low)) and low == room.low:
        low += 1
    if high is not None and not room.holds(Fraction(high)) and high == room.high:
        high -= 1
    return low, high


def _real(room: Range, variable: Input, draw: Callable[[int], int]) -> Fraction | None:
    """A part of the way between two ends, or a magnitude. Statics keep the sign and the
    side of 1 of their default."""
    part = Fraction(1 + 2 * draw(2**24), 2**25)
    size = (1 + part) * Fraction(2) ** (draw(9) - 5 if draw(4) else draw(25) - 12)
    mirrored = draw(2) == 1
    default = variable.default
    if variable.kind is Kind.STATIC and (room.low is None or room.high is None):
        if default is None:
            value = size
        elif abs(default) == UNBOUNDED:
            value = default if mirrored else default / UNBOUNDED * size
        elif abs(default) >= 1:
            value = default * (1 + 2 * part)
        else:
            value = default * (1 + 3 * part) / 4 if default else part
        return value if room.holds(value) else None
    match (room.low, room.high):
        case (None, None):
            return -size if mirrored else size
        case (Fraction() as low, None):
            return low + size
        case (None, Fraction() as high):
            return high - size
        case (Fraction() as low, Fraction() as high) if low < high:
            return low + (high - low) * part
        case _:
            return None
