"""Whether a chosen form is worse than what is written at the largest numbers of the format.

`dense.py` ends where a product of three overflows in any form. A rewrite may overflow a
little sooner than what is written (`pi * x / 180` for `x / 180 * pi`), or round what was
exact. So both are computed where inputs are near the largest number, of both signs, one at
a time and together; of the points at which they differ some are put to balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr, Ref, Select, const
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import names
from gradspec.stabilise.apart import ulp
from gradspec.stabilise.hard import chosen_of
from gradspec.stabilise.measure import GOOD
from gradspec.stabilise.model import Machine
from gradspec.stabilise.points import Points
from gradspec.stabilise.quick import QuickMachine
from gradspec.symbolic.sampling import sample
from gradspec.symbolic.truth import nearest

_COUNT = 1200
_TOP, _ANY, _CORE = (112, 128), (-126, 128), (-12, 7)
"""Exponents: of the numbers next to the largest, of all, and of usual ones."""

_SEED, _SIMPLE = 23, 80
_ASKED = 16
"""Points that are put to balls at most, of those where the forms differ, and of those at
which one of them is no number, or 0."""

_BEGIN = 112
"""The power of two beyond which what is written may be taken."""

_NUMBERS = (Kind.FLOAT, Kind.NOGRAD)


@dataclass(frozen=True, slots=True)
class FarOut:
    """Points far out at which two forms of a function differ, and what it is there."""

    points: Points
    machine: Machine
    truth: Any

    def lost(self, closed: Expr) -> int:
        """At how many of them a form is no number, 0 or infinite, and ought not to be."""
        return int(np.isinf(self._off(closed)).sum())

    def is_worse(self, closed: Expr, written: Expr) -> bool:
        """Bad at more of them, or as often and beyond 4 ULP more often."""
        one, other = self._off(closed), self._off(written)
        lost, before = int(np.isinf(one).sum()), int(np.isinf(other).sum())
        if lost != before:
            return lost > before
        return int((one > GOOD).sum()) > 2 * int((other > GOOD).sum())

    def _off(self, closed: Expr) -> Any:
        with np.errstate(all="ignore"):
            return ulp(np.float64(self.machine.run(closed)), self.truth)


def far_out(rule: Rule, written: Expr, chosen: Expr, target: str) -> FarOut | None:
    """Where the two (closed) differ far out; None if they nowhere do."""
    drawn = _columns(rule)
    if not len(next(iter(drawn.values()))):
        return None
    machine = QuickMachine(drawn, np.float32, target)
    with np.errstate(all="ignore"):
        one, other = (np.float64(machine.run(form)) for form in (written, chosen))
        apart = (ulp(one, other) > GOOD) | (ulp(other, one) > GOOD)
    places = sorted({*_some(apart), *_some(_is_lost(one) != _is_lost(other))})
    if not places:
        return None
    nowhere = np.zeros(len(apart), dtype=bool)
    points = chosen_of(rule, drawn, nowhere, places)
    truth = np.array(nearest(written, points.rows))
    there = QuickMachine(points.columns, np.float32, target)
    return FarOut(points, there, truth)


def _is_lost(value: Any) -> Any:
    return ~np.isfinite(value) | (value == 0)


def _some(where: Any) -> list[int]:
    places = np.flatnonzero(where)
    few = np.linspace(0, len(places) - 1, min(_ASKED, len(places))).astype(int)
    return [int(n) for n in places[few]]


def as_written_far_out(rule: Rule, chosen: Expr, written: Expr) -> Expr:
    """The chosen form up to there, what is written beyond."""
    used = names(chosen) | names(written)
    for variable in rule.tensor_inputs:
        if variable.kind in _NUMBERS and variable.name in used:
            size = Apply("abs", (Ref(variable.name),))
            is_near = Apply("lt", (size, const(2**_BEGIN)))
            chosen = Select(is_near, chosen, written)
    return chosen


@lru_cache(maxsize=8)
def _columns(rule: Rule) -> dict[str, Any]:
    """Points inside the assumptions, one input next to the largest number at least."""
    random = np.random.Generator(np.random.PCG64(_SEED))
    drawn = _drawn(rule, random)
    inside = np.ones(_COUNT, dtype=bool)
    machine = Machine(drawn, np.float32)
    for assume in rule.assumes:
        if not assume.indices:
            inside &= np.asarray(machine.run(assume.condition), dtype=bool)
    for column in drawn.values():
        inside &= np.isfinite(column)
    return {name: column[inside] for name, column in drawn.items()}


def _drawn(rule: Rule, random: Any) -> dict[str, Any]:
    known = sample(rule, _SIMPLE)
    found: dict[str, Any] = {f"d{o.name}": np.ones(_COUNT) for o in rule.outputs}
    floats = [v.name for v in rule.inputs if v.kind in _NUMBERS]
    for variable in rule.inputs:
        simple = [float(p[variable.name]) for p in known] or [1.0]
        if variable.default is not None:
            simple = [float(variable.default)]
        is_flag = variable.kind is Kind.BOOL
        given = random.choice(simple, _COUNT)
        found[variable.name] = given.astype(np.bool_) if is_flag else given
    which = random.integers(0, max(1, len(floats)), _COUNT)
    for number, name in enumerate(floats):
        spans = [_by_exponent(random, span) for span in (_TOP, _ANY, _CORE)]
        kind = np.where(which == number, 0, random.integers(0, 4, _COUNT))
        found[name] = np.select([kind == n for n in range(3)], spans, found[name])
    for name in floats[1:]:
        close = found[floats[0]] * (1 + _by_exponent(random, (-26, -1)))
        opposite = random.choice([-1.0, 1.0], _COUNT)
        kept = random.integers(0, 6, _COUNT) > 0
        found[name] = np.where(kept, found[name], opposite * close)
    with np.errstate(over="ignore"):
        return {
            n: c if np.asarray(c).dtype == np.bool_ else np.float32(c)
            for n, c in found.items()
        }


def _by_exponent(random: Any, span: tuple[int, int]) -> Any:
    sign = random.choice([-1.0, 1.0], _COUNT)
    return sign * np.ldexp(1.0 + random.random(_COUNT), random.integers(*span, _COUNT))
