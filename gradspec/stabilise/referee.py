"""Whether a form that was chosen is worse somewhere than what is written, at some
thousand points.

The sample on which forms compete is small: of two forms that lose a few units where terms
cancel, which one does so at more places is luck there. So the chosen form and the written
one are both computed at the points of `dense.py`, in float32 and in float64; where the two
agree in float64 the truth is known. Worse is: more bad points, a clearly larger error or a
clearly larger share beyond 4 ULP, in the core or beyond, or next to the largest numbers
(`far_out.py`). Then the first of the forms that were looked at which is worse in nothing,
here and on the sample, is taken, that which is written among them; if there is none and it
is but the largest numbers that are lost, what is written is taken there; else float64 may
be the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes
from gradspec.stabilise.apart import both, ulp
from gradspec.stabilise.choose import Choice, choose
from gradspec.stabilise.dense import columns
from gradspec.stabilise.far_out import as_written_far_out, far_out
from gradspec.stabilise.further import Ground, Make, looked_at, others
from gradspec.stabilise.hard import chosen_of
from gradspec.stabilise.measure import GOOD
from gradspec.stabilise.points import Points
from gradspec.stabilise.quick import QuickMachine, is_slow
from gradspec.stabilise.reason import reason
from gradspec.stabilise.tried import Tried

_SAME = 2.0**-8
"""ULP of float32 by which two evaluations in float64 may differ where they are right."""

_LUCK, _FEW, _NEAR = 1.3, 0.005, 6.0
"""How many times larger an error and a share may be, how much more the share, and how
many ULP are never too many."""

_FORMS, _HARD = 60, 16


@dataclass(frozen=True, slots=True)
class Count:
    """What a form loses in a stratum: bad points, the largest error, the share of the
    points beyond 4 ULP."""

    bad: int
    worst: float
    share: float

    def is_worse_than(self, other: Count) -> bool:
        return (
            self.bad > other.bad
            or self.worst > max(_LUCK * other.worst, _NEAR)
            or self.share > _LUCK * other.share + _FEW
        )


class Referee:
    """Compares forms with what is written, ``written`` (closed, like all forms here)."""

    def __init__(self, rule: Rule, written: Expr, chosen: Expr, target: str) -> None:
        drawn, core = columns(rule)
        self._closed = chosen
        self._machine = QuickMachine(drawn, np.float32, target)
        one, self._truth = both(self._machine, written)
        other, usual = both(self._machine, chosen)
        with np.errstate(all="ignore"):
            known = ulp(usual, self._truth) <= _SAME
        known &= np.isfinite(usual) & np.isfinite(self._truth)
        self._strata = (known & core, known)
        self._meaning = written
        self.far = far_out(rule, written, chosen, target)
        self._written, self._chosen = self._counts(one), self._counts(other)

    @property
    def is_worse(self) -> bool:
        """Whether the chosen form is."""
        return self.is_worse_near or self._is_worse_far(self._closed)

    @property
    def is_worse_near(self) -> bool:
        """Whether it is, leaving the largest numbers out."""
        return self._is_worse(self._chosen)

    def allows(self, form: Expr) -> bool:
        """Whether a form is worse in nothing."""
        counts = self._counts(both(self._machine, form)[0])
        return not (self._is_worse(counts) or self._is_worse_far(form))

    def worst(self) -> list[int]:
        """The points at which the chosen form loses most, of each stratum."""
        off = ulp(both(self._machine, self._closed)[0], self._truth)
        places: set[int] = set()
        for where in self._strata:
            order = np.argsort(-np.where(where, off, 0.0), kind="stable")[:_HARD]
            places.update(int(n) for n in order)
        return sorted(places)

    def _is_worse_far(self, form: Expr) -> bool:
        return self.far is not None and self.far.is_worse(form, self._meaning)

    def _is_worse(self, counts: tuple[Count, ...]) -> bool:
        pairs = zip(counts, self._written, strict=True)
        return any(one.is_worse_than(other) for one, other in pairs)

    def _counts(self, value: Any) -> tuple[Count, ...]:
        off = ulp(value, self._truth)
        return tuple(_count(off[where]) for where in self._strata)


def _count(off: Any) -> Count:
    bad = np.isinf(off)
    worst = float(np.where(bad, 0.0, off).max(initial=0.0))
    return Count(int(bad.sum()), worst, float((off > GOOD).mean()) if len(off) else 0.0)


def referee(rule: Rule, written: Expr, chosen: Expr, target: str) -> Referee | None:
    """One who has something to say: the chosen form is worse somewhere. None where balls
    alone know a part."""
    if written == chosen:
        return None
    if any(is_slow(n) for form in (written, chosen) for n in nodes(expand(form))):
        return None
    found = Referee(rule, written, chosen, target)
    return found if found.is_worse else None


def judged(
    ground: Ground,
    rule: Rule,
    choice: Choice,
    heard: Iterable[Tried],
    candidate: Make,
    target: str,
) -> tuple[Expr, str]:
    """The chosen form, or the next best that is worse in nothing than what is written, and
    why that."""
    closed = candidate(choice.form).closed
    found = referee(rule, ground.trials[0].meaning, closed, target)
    if found is None:
        return choice.form, ""
    tried = tuple(heard)
    pool = (*islice(looked_at(tried), _FORMS), *(t.written for t in tried[:1]))
    if not found.is_worse_near:
        near = as_written_far_out(rule, choice.form, tried[0].written)
        pool = (*pool, near)
    allowed = others(ground, choice, pool, candidate)
    best = next((made for made in allowed if found.allows(made.closed)), None)
    if best is None:
        return choice.form, ""
    single, double = ground.trials[:2]
    first = candidate(tried[0].written)
    done = choose(single, first, (), (best,), double)
    return best.form, reason(
        single, first.closed, replace(done, form=best.form), double
    )


def worse_at(rule: Rule, written: Expr, chosen: Expr, target: str) -> Points | None:
    """Points at which the chosen form loses most, if it is worse than ``written``."""
    found = referee(rule, written, chosen, target)
    if found is None:
        return None
    if found.far is not None and not found.is_worse_near:
        return found.far.points
    drawn, core = columns(rule)
    return chosen_of(rule, drawn, core, found.worst())
