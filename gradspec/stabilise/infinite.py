"""At plus and minus infinity a value is its limit, where there is one.

``x * sigmoid(x)`` at -inf is infinity times 0: NaN. Where a part that depends on one input
alone is at fault, and has come to its limit long before (-10000 times sigmoid(-10000) is
-0), the input is bounded there: ``max(x, -10000) * sigmoid(x)``. That is one pass, and no
NaN reaches a second derivative. Else, if the limit is one number whatever the statics are,
infinity is asked for: ``0 if x == -inf else …``. What none of them mends stays as it is,
and so do rules of several inputs.

This comes last: it changes no value at any finite input, as is measured in float32 and in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Declared, Derived, Kind, Rewrite, Rule
from gradspec.ir.walk import names, transform
from gradspec.stabilise.bounding import (
    BOUNDS,
    INFINITY,
    End,
    Point,
    everywhere,
    factors,
    outside,
    product,
)
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.search import replaced
from gradspec.symbolic.enclose import program
from gradspec.symbolic.far import far
from gradspec.symbolic.pairs import pair
from gradspec.symbolic.sampling import sample
from gradspec.symbolic.sides import Limit, Trend
from gradspec.symbolic.truth import FORMATS

_SEEN = 24
_TRIED = 3
"""Points that are sampled, and of these those at which infinity is tried."""

_NUMBERS = (Kind.FLOAT, Kind.NOGRAD)
_FORMATS = (np.float32, np.float64)


_FLOATING = (Kind.FLOAT, Kind.NOGRAD)
"""Rules of several such inputs stay as they are: what depends on two inputs is 0 times
infinity on the way to some limits, and a factor that is asked whether it is 0 loses its
slope there, which a second derivative needs."""


def bounded(
    written: Rule, rule: Rule, rewrites: tuple[Rewrite, ...]
) -> tuple[Rule, tuple[Rewrite, ...]]:
    """``rule`` (in the forms chosen) right at infinities; the rewrites tell of it."""
    if sum(variable.kind in _FLOATING for variable in rule.inputs) != 1:
        return rule, rewrites
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
        self._points = typical(written)
        self._upstream = frozenset(f"d{o.name}" for o in rule.outputs)
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
        used = names(closed)
        for variable in self._rule.tensor_inputs:
            if variable.kind in _NUMBERS and variable.name in used:
                for sign in (1, -1):
                    end = End(variable.name, sign, self._points)
                    if _at(closed, end, np.float32) & _at(closed, end, np.float64):
                        yield end

    def _mended(self, name: str, form: Expr, end: End) -> Expr | None:
        limits = self._limits(self._written.close(Ref(name)), end)
        if limits is None:
            return None
        for start in dict.fromkeys((form, self._linear(form))):
            for other in self._candidates(start, end, limits):
                if self._is_right(other, end, limits):
                    return other
        return None

    def _linear(self, form: Expr) -> Expr:
        """With upstream gradients as factors of all else: no condition may ask them."""

        def visit(node: Expr) -> Expr:
            match node:
                case Apply(op="mul"):
                    parts = factors(node)
                    ahead = [f for f in parts if self._upstream & names(f)]
                    rest = [f for f in parts if f not in ahead]
                    if ahead and len(rest) > 1:
                        return product([*ahead, product(rest)])
                case Apply(op="div", args=(Apply(op="mul") as top, below)):
                    first, *rest = factors(top)
                    if self._upstream & names(first) and not self._upstream & names(
                        below
                    ):
                        inner = Apply("div", (product(rest), below))
                        return Apply("mul", (first, inner))
            return node

        return transform(form, visit)

    def _limits(self, meaning: Expr, end: End) -> tuple[float, ...] | None:
        """At each point; None if one of them is not known."""
        found = []
        for point in end.points:
            others = {k: v for k, v in point.items() if k != end.name}
            (limit,) = far((meaning,), others, end.name, end.sign, self._assumed)
            if limit.trend not in (Trend.FINITE, Trend.INFINITE):
                return None
            found.append(_number(limit))
        return tuple(found)

    # --- candidates ----------------------------------------------------------------------

    def _candidates(
        self, form: Expr, end: End, limits: tuple[float, ...]
    ) -> Iterator[Expr]:
        alone = list(self._alone(form, end))
        for part in alone:
            for other in self._bounded(part, end):
                yield replaced(form, part, other)
        is_there = Apply("eq", (Ref(end.name), end.number))
        for part in alone:
            limit = self._constant_limit(part, end)
            if limit is not None:
                yield replaced(form, part, Select(is_there, limit, part))
        if len(set(limits)) == 1 and self._is_known(form, limits[0]):
            yield Select(is_there, _constant(limits[0]), form)

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
        todo = [form]
        while todo:
            node = todo.pop()
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
                yield outside(part, end, size)
                yield everywhere(part, end, size)

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
        """A limit that is told for all values of statics and of upstream gradients."""
        free = names(self._chosen.close(form))
        statics = {i.name for i in self._rule.static_inputs}
        upstream = {n for n in free if n not in {i.name for i in self._rule.inputs}}
        if free & statics or math.isnan(limit):
            return False
        return limit == 0 or (not upstream and (math.isinf(limit) or _short(limit)))

    def _is_right(self, form: Expr, end: End, limits: tuple[float, ...]) -> bool:
        closed = self._chosen.close(form)
        for work in _FORMATS:
            for point, limit in zip(end.points, limits, strict=True):
                got = _value(closed, {**point, end.name: end.sign * math.inf}, work)
                if not _is_near(got, limit):
                    return False
        return True


def typical(rule: Rule) -> tuple[Point, ...]:
    """A few points that are nowhere special: no input is 0 or the equal of another."""
    own = {i.name for i in rule.tensor_inputs}

    def rank(point: Point) -> int:
        values = [v for name, v in point.items() if name in own]
        return sum(v in (0, 1, -1) for v in values) + len(values) - len(set(values))

    found = sorted(sample(rule, _SEEN), key=rank)
    if len(rule.tensor_inputs) == 1 and not rule.static_inputs:
        return tuple(found[:1])
    return tuple(found[:_TRIED])


def _at(closed: Expr, end: End, work: Any) -> bool:
    """Whether the model gives a NaN at the end."""
    return any(
        math.isnan(_value(closed, {**point, end.name: end.sign * math.inf}, work))
        for point in end.points
    )


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


def _is_near(got: float, wanted: float) -> bool:
    if math.isinf(wanted) or wanted == 0:
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
