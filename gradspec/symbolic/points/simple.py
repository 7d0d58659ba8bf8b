"""Points at which a rule is examined: the same ones for the same rule and seed.

Simple points first (a refutation is then read at a glance), then both sides of every
threshold in the rule and the threshold itself, then magnitudes from 2**-20 to 2**20.
All satisfy the rule's assumptions and are exact in float32 (a static's default stays
the exact number written). Where that leaves too few, generic points follow, which have
as many bits as it takes (`symbolic.points.domain`). Statics keep to the sign and the side of 1
of their default: what holds of a rule for a slope of 0.01 need not hold for one of 2 or
-1, and is not what its author says without an assumption. But the values that a
conditional tells apart (`… if mode == 2 else …`) are all meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from gradspec.ir.expr import Expr
from gradspec.ir.rule import UNBOUNDED, Input, Kind, Rule
from gradspec.ir.walk import inline, memo
from gradspec.symbolic.borders.bounds import Bound, cases, thresholds
from gradspec.symbolic.enclose import enclose, is_defined, program
from gradspec.symbolic.points.domain import (
    Limits,
    Range,
    drawing,
    float32,
    fractions,
    generic,
)

Values = dict[str, Fraction]

SIMPLE = fractions("1 2 0 -1 1/2 3 -1/2 -2 -3 3/2 1/4 -3/4 5")
_WHOLE = fractions("1 2 0 3 5 -1 4")
_UPSTREAM = fractions("1 2 -1 3 1/2 -3 3/2 5 -1/2")

_POINTS = 24
"""Enough to refute every one of 208 wrong mutants in the measurements."""

_TRIES = 12
_FOR_A_CASE = 3
"""Points more for each value of a static that a conditional tells apart."""


@dataclass(frozen=True, slots=True)
class Survey:
    """``points``: where all outputs are finite; ``undefined``: inside the assumptions
    but with an output that is not. Both empty: no point satisfies the assumptions as
    far as we can tell.
    """

    points: tuple[Values, ...]
    undefined: tuple[Values, ...]


def sample(rule: Rule, count: int, seed: int = 0) -> tuple[Values, ...]:
    """Up to ``count`` points: inputs, statics and ``d<output>``, outputs finite.

    A few more where conditionals tell values of statics apart.
    """
    return survey(rule, count, seed).points


def survey(rule: Rule, count: int, seed: int = 0) -> Survey:
    """:func:`sample` with the points at which the rule is not defined.

    The dictionaries are shared between callers: not to be changed.
    """
    return _survey(rule, count, seed)


def usual_count(rule: Rule) -> int:
    """The number of points that a rule's checks ask for, and so share."""
    return _POINTS + 8 * (len(rule.tensor_inputs) - 1) if rule.tensor_inputs else 4


@lru_cache(maxsize=64)
def _survey(rule: Rule, count: int, seed: int) -> Survey:
    """All arguments by place: the cache takes ``f(a)`` and ``f(a, 0)`` for two."""
    if rule.has_axes:
        return Survey((), ())
    outputs = program(*(inline(rule.forward, o) for o in _outputs(rule)))
    points: list[Values] = []
    undefined: list[Values] = []
    most = count + _FOR_A_CASE * len(_cases(rule))
    for point in _candidates(rule, count, seed):
        if all(is_defined(value) for value in outputs.run(point)):
            points.append(point)
        else:
            undefined.append(point)
        if len(points) >= most:
            break
    return Survey(tuple(points), tuple(undefined))


@lru_cache(maxsize=16)
def generic_points(rule: Rule, count: int) -> tuple[Values, ...]:
    """So many generic points (or as many as there are) at which the outputs are finite:
    ``inputs``, ``statics`` and ``d<output>``."""
    outputs = program(*(inline(rule.forward, o) for o in _outputs(rule)))
    found = _generic(_Space(rule, 1), count)
    return tuple(p for p in found if all(map(is_defined, outputs.run(p))))


def _outputs(rule: Rule) -> tuple[Expr, ...]:
    names = {output.name for output in rule.outputs}
    return tuple(let.value for let in rule.forward if let.name in names)


def _candidates(rule: Rule, count: int, seed: int) -> Iterator[Values]:
    """Distinct assignments inside the assumptions, simple ones first."""
    space = _Space(rule, seed)
    seen: set[tuple[Fraction, ...]] = set()
    for index, attempt in enumerate(space.assignments(count)):
        point = attempt | space.upstream(index)
        key = tuple(attempt.values())
        if key not in seen and space.holds(point):
            seen.add(key)
            yield point
    if space.conditions:  # a narrow or curved domain, or few whole numbers
        yield from _generic(space, count)


def _generic(space: _Space, count: int) -> Iterator[Values]:
    for index, attempt in enumerate(generic(space.rule, count, space.seed)):
        yield attempt | space.upstream(index)


class _Space:
    """The inputs of a rule, what is assumed of them, and where its form changes."""

    def __init__(self, rule: Rule, seed: int) -> None:
        self.rule, self.seed = rule, seed
        self.limits = Limits(rule)
        self.conditions = self.limits.conditions
        self._assumed = program(*self.conditions)
        self.cases, self.borders = _cases(rule), _borders(rule)

    def assignments(self, count: int) -> Iterator[Values]:
        simple = max(8, (2 * count) // 5)
        for index in range(simple):
            yield from self._assign(index, _simple)
        for index, border in enumerate((*self.cases, *self.borders)):
            for base in (index, index + 3):
                yield from self._beside(border, base)
        for index in range(simple, _TRIES * count + 200):
            yield from self._assign(index, _stratum_value)

    def _assign(self, index: int, choose: Chooser) -> Iterator[Values]:
        """One value after another, each within what the earlier ones leave open."""
        point: Values = {}
        for position, variable in enumerate(self.rule.inputs):
            room = self.limits.room(variable.name, point)
            value = choose(variable, room, _Turn(index, position, self.seed))
            if value is None:
                return
            point[variable.name] = value
        yield point

    def _beside(self, border: Bound, base: int) -> Iterator[Values]:
        """A threshold itself, a little to either side of it, and half-way to the next
        one (where two thresholds are close only that point is between them)."""
        for point in self._assign(base, _simple):
            at = self._threshold(border, point)
            if at is None:
                continue
            kind = self._kind(border.variable)
            whole = kind in (Kind.INT, Kind.STATIC_INT)
            step = Fraction(1) if whole else max(abs(at), Fraction(1)) / 256
            for value in (at, at + step, at - step, *self._half_way(border, point, at)):
                exact = _fits(value, kind)
                if exact is not None:
                    yield point | {border.variable: exact}

    def _threshold(self, border: Bound, point: Values) -> Fraction | None:
        """The place of the threshold if the other variables are as in ``point``."""
        if border.variable not in point:
            return None
        try:
            ball = enclose(border.value, point)
        except KeyError:  # a bound that speaks of an upstream gradient
            return None
        if not is_defined(ball) or ball is True or ball is False:
            return None
        return float32(ball)

    def _half_way(
        self, border: Bound, point: Values, at: Fraction
    ) -> tuple[Fraction, ...]:
        others = (
            self._threshold(other, point)
            for other in self.borders
            if other.variable == border.variable and other != border
        )
        above = [other for other in others if other is not None and other > at]
        return ((at + min(above)) / 2,) if above else ()

    def _kind(self, name: str) -> Kind:
        return next(i.kind for i in self.rule.inputs if i.name == name)

    def upstream(self, index: int) -> Values:
        """Not zero, and different for each output."""
        outputs = [o for o in self.rule.outputs if o.takes_gradient]
        size = len(_UPSTREAM)
        return {
            "d" + output.name: _UPSTREAM[
                (index + 2 * position + position // size) % size
            ]
            for position, output in enumerate(outputs)
        }

    def holds(self, point: Values) -> bool:
        return all(held is True for held in self._assumed.run(point))


@memo(64)
def _cases(rule: Rule) -> tuple[Bound, ...]:
    """The values of statics that conditionals of forward or backward tell apart."""
    statics = frozenset(i.name for i in rule.inputs if i.kind.is_static)
    if not statics:
        return ()
    found = (cases(expr, statics) for expr in _expressions(rule))
    return tuple(dict.fromkeys(bound for some in found for bound in some))[:8]


def _borders(rule: Rule) -> tuple[Bound, ...]:
    """The thresholds of forward, surrogates, backward and assumptions."""
    assumed = (a.condition for a in rule.assumes if not a.indices)
    inputs = {i.name for i in rule.tensor_inputs}
    found: dict[Bound, None] = {}
    for expr in (*_expressions(rule), *assumed):
        borders = thresholds(expr)
        found.update((b, None) for b in borders if b.variable in inputs)
    return tuple(found)[:24]


def _expressions(rule: Rule) -> Iterator[Expr]:
    """Outputs, surrogates and cotangents, closed."""
    others = (one.value for one in (*rule.surrogates, *rule.backward))
    lets = (*rule.forward, *rule.backward_locals)
    for expr in (*_outputs(rule), *others):
        yield inline(lets, expr)


# --- choosing one value --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Turn:
    """The how-manieth point, the place of the variable among the inputs, the seed."""

    index: int
    position: int
    seed: int

    def pick(self, pool: tuple[Fraction, ...]) -> Fraction | None:
        """Each variable walks through its pool at its own pace, so that two variables
        meet in many combinations; no two rows of a matrix are alike, whatever their
        length is."""
        if not pool:
            return None
        laps, rounds = self.index // len(pool), self.position // len(pool)
        place = self.index + self.position * (1 + laps) + rounds
        return pool[place % len(pool)]

    def pick_static(self, pool: tuple[Fraction, ...]) -> Fraction | None:
        """The first point has every default; statics part company in later laps."""
        if not pool:
            return None
        laps = self.index // len(pool)
        return pool[(self.index + self.position * laps) % len(pool)]

    def random(self) -> Callable[[int], int]:
        return drawing(self.index, self.position, self.seed)


Chooser = Callable[[Input, Range, _Turn], "Fraction | None"]


def _simple(variable: Input, room: Range, turn: _Turn) -> Fraction | None:
    pool = _pool_in(variable, room)
    return turn.pick_static(pool) if variable.kind.is_static else turn.pick(pool)


@lru_cache(maxsize=1024)
def _pool_in(variable: Input, room: Range) -> tuple[Fraction, ...]:
    """Simple values that the room holds; asked for again at every point."""
    pool = tuple(v for v in _pool(variable) if room.holds(v))
    if len(pool) < 4 and variable.kind is not Kind.BOOL:
        inside = (_fits(v, variable.kind) for v in room.simple_inside())
        extra = [v for v in inside if v is not None and room.holds(v)]
        pool = (*pool, *(v for v in extra if v not in pool))
    return pool


def _pool(variable: Input) -> tuple[Fraction, ...]:
    match variable.kind:
        case Kind.FLOAT | Kind.NOGRAD:
            return SIMPLE
        case Kind.INT:
            return _WHOLE
        case Kind.BOOL:
            return (Fraction(1), Fraction(0))
        case Kind.STATIC:
            return _static(variable.default)
        case Kind.STATIC_INT:
            return _static_int(variable.default)


def _static(default: Fraction | None) -> tuple[Fraction, ...]:
    """The default every other time, else numbers of its kind."""
    if default is None:
        return fractions("1 2 1/2 3 3/2")
    if default == 0:
        return fractions("0 1/2 0 1 0 1/4")
    near = [default * factor for factor in fractions("1/2 3/4 1/4")]
    if abs(default) == UNBOUNDED:
        near = [default / UNBOUNDED * size for size in fractions("2 5 50")]
    elif abs(default) >= 1:
        near = [default * factor for factor in fractions("2 3/2 3")]
    mixed = [value for other in near for value in (default, float32(other))]
    return tuple(mixed)


def _static_int(default: Fraction | None) -> tuple[Fraction, ...]:
    if default is None:
        return tuple(Fraction(n) for n in (1, 2, 3, 4))
    others = [default + 1, default + 2, max(default - 1, min(default, Fraction(1)))]
    return tuple(value for other in others for value in (default, other))


def _stratum_value(variable: Input, room: Range, turn: _Turn) -> Fraction | None:
    """A magnitude, then a few bits: wide enough to reach every regime of a rule."""
    if not variable.kind.is_real:
        return _simple(variable, room, turn)
    draw = turn.random()
    exponent = draw(9) - 5 if draw(4) else draw(41) - 20
    size = Fraction(64 + draw(64), 64) * Fraction(2) ** exponent
    value = room.place(size, draw(2) == 1)
    return value if value is not None and room.holds(value) else None


def _fits(value: Fraction, kind: Kind) -> Fraction | None:
    """The value if a variable of that kind can have it."""
    if kind in (Kind.INT, Kind.STATIC_INT):
        return value if value.denominator == 1 else None
    if kind is Kind.BOOL:
        return value if value in (0, 1) else None
    return float32(value)
