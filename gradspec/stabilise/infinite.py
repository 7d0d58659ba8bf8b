"""At plus and minus infinity a value is its limit, where there is one.

``x * sigmoid(x)`` at -inf is infinity times 0: NaN. Where a part that depends on one input
alone is at fault, and has come to its limit long before (-10000 times sigmoid(-10000) is
-0), the input is bounded there: ``max(x, -10000) * sigmoid(x)``. That is one pass, and no
NaN reaches a second derivative. What depends on several inputs has an infinite operand
made finite (`taming.py`). Else, if the limit is one number whatever the other inputs and
the statics are, infinity is asked for: ``0 if x == -inf else …``, with upstream gradients
before it, so that no product of theirs with a NaN is formed in the branch not taken. What
none of them mends stays as it is.

This comes last: it changes no value and no slope at any finite input, as is measured in
float32 and in float64. In particular no factor is asked whether it is 0: it may be 0 at a
finite input, and then the product has a slope there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Declared, Derived, Kind, Rewrite, Rule
from gradspec.ir.walk import names
from gradspec.stabilise.bounding import (
    BOUNDS,
    INFINITY,
    End,
    Point,
    at_both,
    everywhere,
    factors,
    linear,
    outside,
    product,
)
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.search import replaced
from gradspec.stabilise.taming import Tamer, at_end
from gradspec.symbolic.enclose import program
from gradspec.symbolic.far import far
from gradspec.symbolic.pairs import pair
from gradspec.symbolic.sampling import sample
from gradspec.symbolic.sides import Limit, Trend
from gradspec.symbolic.truth import FORMATS

_SEEN = 24
_Limits: TypeAlias = tuple[float | None, ...]
"""At each point: NaN where it is outside of the assumptions, None where not known."""

_Judge: TypeAlias = Callable[[float, float, float | None], bool]

_TRIED, _SPECIAL = 3, 4
"""Points that are sampled; of these those at which infinity is tried; and special ones."""

_NOTHING = 1e-37
"""A number over the largest one."""

_NUMBERS = (Kind.FLOAT, Kind.NOGRAD)
_FORMATS = (np.float32, np.float64)


def bounded(
    written: Rule, rule: Rule, rewrites: tuple[Rewrite, ...]
) -> tuple[Rule, tuple[Rewrite, ...]]:
    """``rule`` (in the forms chosen) right at infinities; the rewrites tell of it."""
    work = _Work(written, rule)
    forward = []
    for let in rule.forward:
        value = work.value(let.name, let.value)
        forward.append(replace(let, value=value))
    backward = tuple(
        replace(entry, value=work.value(f"d{variable.name}", entry.value))
        if isinstance(entry, Derived | Declared)
        else entry
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    done = replace(rule, forward=tuple(forward), backward=backward)
    return done, _told(rewrites, work.mended)


def bounder(written: Rule, rule: Rule) -> Callable[[str, Expr], Expr]:
    """What makes other closed forms of the results of ``rule`` right at infinities."""
    return _Work(written, rule).value


def _told(
    rewrites: tuple[Rewrite, ...], mended: Mapping[str, list[str]]
) -> tuple[Rewrite, ...]:
    """Ends that were mended stand with what else was done to a value."""
    left = dict(mended)
    found = []
    for rewrite in reversed(rewrites):
        ends = left.pop(rewrite.name, None)
        at = "" if ends is None else f"; at {' and '.join(ends)} the limit"
        found.append(replace(rewrite, reason=rewrite.reason + at))
    alone = (
        Rewrite(name, "", "", f"at {' and '.join(ends)} the limit, where it was NaN")
        for name, ends in left.items()
    )
    return (*reversed(found), *alone)


class _Work:
    def __init__(self, written: Rule, rule: Rule) -> None:
        self._written, self._chosen = Names(written), Names(rule)
        self._rule = rule
        self._assumed = tuple(a.condition for a in written.assumes)
        self._points, self._special = typical(written), special(written)
        self._upstream = frozenset(f"d{o.name}" for o in rule.outputs)
        self._known: dict[tuple[Expr, str, int, bool], _Limits] = {}
        self.mended: dict[str, list[str]] = {}

    def value(self, name: str, form: Expr) -> Expr:
        """A form of the value that is its limit at each end, as far as there is one."""
        if name in self._rule.exacts or not self._points:
            return form
        for end in self._ends(self._chosen.close(form)):
            other = self._mended(name, form, end)
            if other is not None:
                self._chosen.set(name, other)
                at = f"{end.name} = {'' if end.sign > 0 else '-'}inf"
                self.mended.setdefault(name, []).append(at)
                form = other
        return form

    def _ends(self, closed: Expr) -> Iterator[End]:
        """Those at which the model gives a NaN."""
        for end in self._all_ends(closed):
            if _at(closed, end, np.float32) & _at(closed, end, np.float64):
                yield end

    def _all_ends(self, closed: Expr) -> Iterator[End]:
        used = names(closed)
        for variable in self._rule.tensor_inputs:
            if variable.kind in _NUMBERS and variable.name in used:
                for sign in (1, -1):
                    yield End(variable.name, sign, self._points)

    def _mended(self, name: str, form: Expr, end: End) -> Expr | None:
        meaning = self._written.close(Ref(name))
        limits = self._limits(meaning, end)
        if all(limit is None or math.isnan(limit) for limit in limits):
            return None
        there = replace(end, points=self._special)
        special = self._limits(meaning, there)
        for other in self._candidates(form, end, limits):
            if (
                self._is_right(form, other, end, limits, _mends)
                and self._is_right(form, other, there, special, _harms_none)
                and self._keeps_others(form, other, meaning, end)
            ):
                return other
        return None

    def _keeps_others(self, before: Expr, after: Expr, meaning: Expr, end: End) -> bool:
        """Whether no other end is worse: no number changed but to the limit."""
        return all(
            self._is_right(before, after, e, self._limits(meaning, e), _harms_none)
            for e in self._all_ends(self._chosen.close(before))
            if (e.name, e.sign) != (end.name, end.sign)
        )

    def _limits(self, meaning: Expr, end: End) -> _Limits:
        key = (meaning, end.name, end.sign, end.points is self._points)
        if key not in self._known:
            found = (self._limit(meaning, end, point) for point in end.points)
            self._known[key] = tuple(found)
        return self._known[key]

    def _limit(self, meaning: Expr, end: End, point: Point) -> float | None:
        others = {k: v for k, v in point.items() if k != end.name}
        (limit,) = far((meaning,), others, end.name, end.sign, self._assumed)
        match limit.trend:
            case Trend.FINITE | Trend.INFINITE:
                return _number(limit)
            case Trend.OUTSIDE:
                return math.nan
            case _:
                return None

    # --- candidates ----------------------------------------------------------------------

    def _candidates(self, form: Expr, end: End, limits: _Limits) -> Iterator[Expr]:
        """The cheapest first."""
        yield from at_both(form, end)
        straight = linear(form, self._upstream)
        starts = tuple(dict.fromkeys((form, straight)))
        for start in starts:
            for part in self._alone(start, end):
                for other in self._bounded(part, end):
                    yield replaced(start, part, other)
        for start in starts:
            there = at_end(end, np.float32)
            yield from Tamer(self._chosen.close, there, self._upstream).forms(start)
        is_there = Apply("eq", (Ref(end.name), end.number))
        for part in self._alone(straight, end):
            limit = self._constant_limit(part, end)
            if limit is not None:
                yield replaced(straight, part, Select(is_there, limit, part))
        yield from self._asked(straight, end, limits)

    def _asked(self, form: Expr, end: End, limits: _Limits) -> Iterator[Expr]:
        """The limit where the input is infinite, behind the upstream gradients."""
        ahead = [f for f in factors(form) if self._upstream & names(f)]
        rest = [f for f in factors(form) if f not in ahead]
        if ahead and not rest:
            return
        scales = self._values(product(ahead), end) if ahead else [1.0] * len(limits)
        found = {
            None if limit is None else limit / scale if limit else 0.0
            for limit, scale in zip(limits, scales, strict=True)
            if limit is None or not math.isnan(limit)
        }
        limit = found.pop()
        if found or limit is None or not self._is_known(product(rest), limit):
            return
        is_there = Apply("eq", (Ref(end.name), end.number))
        yield product([*ahead, Select(is_there, _constant(limit), product(rest))])

    def _values(self, form: Expr, end: End) -> list[float]:
        closed = self._chosen.close(form)
        return [float(v) for v in at_end(end, np.float64).run(closed)]

    def _constant_limit(self, part: Expr, end: End) -> Expr | None:
        """That of a part that depends on one input alone, if it is a simple number."""
        closed = self._chosen.close(part)
        if names(closed) != {end.name}:
            return None
        (limit,) = far((closed,), {}, end.name, end.sign, ())
        if not limit.is_finite or not _short(_number(limit)):
            return None
        return _constant(_number(limit))

    def _alone(self, form: Expr, end: End) -> Iterator[Expr]:
        """The largest parts that depend on this input (and on statics) alone and are
        NaN at its end."""
        own = {end.name, *(i.name for i in self._rule.static_inputs)}
        todo, seen = [form], set[Expr]()
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            closed = self._chosen.close(node)
            if end.name in names(closed) <= own:
                if _at(closed, end, np.float32):
                    yield node
            else:
                todo += node.below

    def _bounded(self, part: Expr, end: End) -> Iterator[Expr]:
        """With the input bounded where it is a factor, else wherever it stands."""
        closed = self._chosen.close(part)
        statics = tuple(self._variants(names(closed)))
        for size in BOUNDS[len(statics) > 1 :]:
            usual, *others = (_is_settled(closed, s, end, size) for s in statics)
            if usual and all(settled is not False for settled in others):
                for other in (outside(part, end, size), everywhere(part, end, size)):
                    if _stays(closed, self._chosen.close(other), statics[0], end, size):
                        yield other

    def _variants(self, used: frozenset[str]) -> Iterator[dict[str, Fraction]]:
        """Values of statics at which a bound has to hold: the usual ones and others."""
        usual = {n: v for n, v in self._points[0].items() if n in used}
        known = {i.name for i in self._rule.static_inputs if i.name in used}
        yield {name: usual[name] for name in known}
        for name in sorted(known):
            for factor in (Fraction(1, 64), Fraction(64), Fraction(-1)):
                changed = {n: usual[n] * (factor if n == name else 1) for n in known}
                yield changed

    def _is_known(self, form: Expr, limit: float) -> bool:
        """A limit that is told for all values of the statics."""
        free = names(self._chosen.close(form))
        statics = {i.name for i in self._rule.static_inputs}
        return not free & statics and (math.isinf(limit) or _short(limit))

    def _is_right(
        self, before: Expr, after: Expr, end: End, limits: _Limits, judge: _Judge
    ) -> bool:
        """At each point of the end, in float32 and in float64."""
        if not limits:
            return True
        for work in _FORMATS:
            machine = at_end(end, work)
            was, now = (machine.run(self._chosen.close(f)) for f in (before, after))
            for old, new, limit in zip(was, now, limits, strict=True):
                if not judge(float(old), float(new), limit):
                    return False
        return True


def _mends(old: float, new: float, limit: float | None) -> bool:
    """Whether ``new`` is the limit; where none is known nothing may change."""
    if limit is None:
        return _is_near(new, old) or (math.isnan(old) and math.isnan(new))
    return math.isnan(limit) or _is_near(new, limit)


def _harms_none(old: float, new: float, limit: float | None) -> bool:
    """Whether ``new`` is what was there, or the limit."""
    is_same = _is_near(new, old) or (math.isnan(old) and math.isnan(new))
    return is_same or (limit is not None and _mends(old, new, limit))


def typical(rule: Rule) -> tuple[Point, ...]:
    """A few points that are nowhere special: no input is 0 or the equal of another."""
    found = _by_rank(rule)
    if len(rule.tensor_inputs) == 1 and not rule.static_inputs:
        return found[:1]
    return found[:_TRIED]


def special(rule: Rule) -> tuple[Point, ...]:
    """And a few that are, in rules of several inputs."""
    return _by_rank(rule)[_TRIED:][-_SPECIAL:] if len(rule.tensor_inputs) > 1 else ()


def _by_rank(rule: Rule) -> tuple[Point, ...]:
    own = {i.name for i in rule.tensor_inputs}

    def rank(point: Point) -> int:
        values = [v for name, v in point.items() if name in own]
        return sum(v in (0, 1, -1) for v in values) + len(values) - len(set(values))

    return tuple(sorted(sample(rule, _SEEN), key=rank))


def _at(closed: Expr, end: End, work: Any) -> bool:
    """Whether the model gives a NaN at the end."""
    return bool(np.isnan(at_end(end, work).run(closed)).any())


def _value(closed: Expr, point: Mapping[str, Any], work: Any) -> float:
    columns = {name: np.array([float(v)], dtype=work) for name, v in point.items()}
    return float(Machine(columns, work).run(closed)[0])


def _is_settled(closed: Expr, statics: Point, end: End, size: int) -> bool | None:
    """Whether the part is from here on what it is at infinity, in truth and as it is
    computed; None where it is not defined at all, for such statics."""
    (limit,) = far((closed,), statics, end.name, end.sign, ())
    if limit.trend is Trend.UNDEFINED:
        return None
    if not limit.is_finite:
        return False
    wanted = _number(limit)
    point = {**statics, end.name: Fraction(end.sign * size)}
    high, low = pair(program(closed), point, FORMATS["float64"])
    true = high == wanted and abs(low) <= abs(wanted) * 2.0**-53
    computed = (_value(closed, point, work) for work in _FORMATS)
    return true and all(_is_near(value, wanted) for value in computed)


def _stays(before: Expr, after: Expr, statics: Point, end: End, size: int) -> bool:
    """Whether a part with a bound is from there on what it was at the bound: ``(x - 1) /
    min(x, 1e18)`` is not."""
    wanted = _value(
        before, {**statics, end.name: Fraction(end.sign * size)}, np.float64
    )
    beyond = [float(end.sign * size) * 2.0**n for n in _BEYOND] + [end.sign * math.inf]
    return all(
        _is_near(_value(after, {**statics, end.name: far_off}, work), wanted)
        for far_off in beyond
        for work in _FORMATS
    )


_BEYOND = (1, 30, 60)


def _is_near(got: float, wanted: float) -> bool:
    if wanted == 0:
        return abs(got) < _NOTHING
    if math.isinf(wanted):
        return got == wanted
    return abs(got - wanted) <= 1e-6 * abs(wanted)


def _number(limit: Limit) -> float:
    if limit.trend is Trend.INFINITE:
        return limit.value * math.inf if limit.value else math.nan
    return float(limit.value.mid())


def _short(limit: float) -> bool:
    return Fraction(limit).limit_denominator(64) == Fraction(limit)


def _constant(limit: float) -> Expr:
    if math.isinf(limit):
        return INFINITY if limit > 0 else Apply("neg", (INFINITY,))
    return Const(Fraction(limit)) if limit else ZERO
