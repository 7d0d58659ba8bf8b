"""Generic points: drawn inside the assumptions, no simple numbers, as many bits as it takes.

Simple points and float32 numbers (`symbolic.sampling`) refute in a way that is read at a
glance, but a narrow or curved domain has few of them, and what they have in common may
hide an error. So what agrees has to agree here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil, floor

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Input, Kind, Rule
from gradspec.ir.walk import names
from gradspec.symbolic.constraints import Constraints, constraints
from gradspec.symbolic.enclose import defined, enclose
from gradspec.symbolic.isolate import Bound, bounds, conjuncts
from gradspec.symbolic.ranges import Range

Values = dict[str, Fraction]

_TRIES = 8
_BITS = 640
_WIDTH = 200
EDGE = 2048
"""Bits by which two points differ at least, that are not one point found twice."""

_REAL = (Kind.FLOAT, Kind.NOGRAD)


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
        self.conditions = tuple(a.condition for a in rule.assumes if not a.indices)
        self._bounds: dict[str, list[Bound]] = {i.name: [] for i in rule.inputs}
        for part in (p for c in self.conditions for p in conjuncts(c)):
            found = bounds(part)
            for bound in found:
                if bound.op != "eq" or _is_only(bound, found):
                    self._bounds.setdefault(bound.variable, []).append(bound)

    def room(self, name: str, point: Mapping[str, Fraction]) -> Range:
        """An equation that has no exact solution is left to `symbolic.constraints`."""
        room = Range()
        for bound in self._bounds[name]:
            try:
                value = enclose(bound.value, point, _BITS)
            except KeyError:  # speaks of a variable that has no value yet
                continue
            if bound.op != "eq" or not defined(value) or value.is_exact():
                room = room.within(bound.op, value)
        return room

    def pinned(self) -> frozenset[str]:
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
    """`abs(x) == 2` is one of two."""
    return sum(other.variable == bound.variable for other in found) == 1


def restrained(rule: Rule, conditions: tuple[Expr, ...]) -> Constraints:
    """What is assumed, for a rule without axes."""
    tensors = frozenset(i.name for i in rule.inputs if i.kind in _REAL)
    statics = frozenset(i.name for i in rule.inputs if i.kind is Kind.STATIC)
    return constraints(conditions, tensors, statics)


def generic(rule: Rule, count: int, seed: int = 0) -> Iterator[Values]:
    """Up to so many different points (inputs and statics) of a rule without axes."""
    limits = Limits(rule)
    inside = restrained(rule, limits.conditions)
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
    """One value after another, each within what the earlier ones leave open."""
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
