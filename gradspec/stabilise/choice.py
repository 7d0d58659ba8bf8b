"""Selection among candidates for one function, by measurement in both formats.

A form that is good at every point is kept as written. Else the cheapest good candidate
is selected; if none is good, the one with the fewest faults, provided that it repairs
more points than it spoils. The same text serves float32 and float64, so both count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from gradspec.ir.expr import Apply, Call, Expr, Reduce, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.accuracy_model import Score, Trial

_PRICE = 3
"""Points to be repaired for each one that is spoiled."""

_WORTH = 0.25
"""The fraction of the faults that a longer candidate, still bad, must repair."""

_SELECT = 3.7  # multiplications of a float32 array (`np.where`, measured)
_CALL = 10.0
_LOGSUMEXP = 26.0  # an exponential of each element, and a logarithm


def cost(expr: Expr) -> float:
    """The cost of an expression in multiplications of an array, shared operations once,
    plus 1 for each node: a pass over memory, and something to read.
    """
    return sum(1.0 + _cost(node) for node in nodes(expr))


def _cost(node: Expr) -> float:
    match node:
        case Apply(op=op):
            return primitive(op).cost
        case Select():
            return _SELECT
        case Call():
            return _CALL
        case Reduce(op="logsumexp"):
            return _LOGSUMEXP
        case _:
            return 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for a value, with a score for each trial, float32 first."""

    form: Expr
    scores: tuple[Score, ...]

    @property
    def is_good(self) -> bool:
        return all(score.is_good for score in self.scores)

    @property
    def faults(self) -> tuple[int, ...]:
        """Bad points in the core, bad points, gaps and infinities, over all trials."""
        columns = zip(*(score.faults for score in self.scores), strict=True)
        return tuple(map(sum, columns))

    @property
    def lost(self) -> int:
        """Points at which the value is not a number, over all trials."""
        return sum(
            score.gaps + int(np.isinf(score.errors).sum()) for score in self.scores
        )

    def spoils(self, other: Candidate) -> int:
        """Points that are bad here and not in ``other``."""
        pairs = zip(self.scores, other.scores, strict=True)
        return sum(one.spoils(two) for one, two in pairs)


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate as written, and the selected one."""

    written: Candidate
    selected: Candidate

    @property
    def is_good(self) -> bool:
        return self.selected.is_good

    def settled(self) -> Choice:
        """The written form, if the selected one costs more, is still bad and repairs
        little: no point without a number, and less than a quarter of any fault.
        """
        before, after = self.written, self.selected
        if after.is_good or cost(after.form) <= cost(before.form):
            return self
        pairs = zip(before.faults[1:], after.faults[1:], strict=True)
        is_much = any(was and was - now >= _WORTH * was for was, now in pairs)
        return self if is_much or after.lost < before.lost else Choice(before, before)


class Contest:
    """The comparison of candidates for one quantity. A candidate with more faults in
    the first trial than the best has in all is not measured in the others.
    """

    def __init__(self, trials: tuple[Trial, ...], written: Expr) -> None:
        self.trials = trials
        self._known: dict[Expr, Candidate | None] = {}
        scores = tuple(trial.score(written) for trial in trials)
        self._known[written] = self.written = Candidate(written, scores)

    @property
    def measured(self) -> tuple[Candidate, ...]:
        """All candidates measured in every trial."""
        return tuple(found for found in self._known.values() if found is not None)

    def choose(self, forms: Iterable[Expr], held: Candidate | None = None) -> Choice:
        """The best of ``forms``, of ``held`` (the choice so far) and of the written
        form.
        """
        best = held or self.written
        is_first_good = best.is_good
        for form in sorted(dict.fromkeys((best.form, *forms)), key=cost):
            found = self._measured(form, best)
            if found is None or not self._is_fair(found):
                continue
            if found.is_good or found.faults < best.faults:
                best = found
            if best.is_good and (found.is_good or not is_first_good):
                break
        return Choice(self.written, best)

    def _measured(self, form: Expr, best: Candidate) -> Candidate | None:
        if form not in self._known:
            first = self.trials[0].score(form)
            self._known[form] = None
            if first.faults <= best.faults:
                others = (trial.score(form) for trial in self.trials[1:])
                self._known[form] = Candidate(form, (first, *others))
        return self._known[form]

    def _is_fair(self, found: Candidate) -> bool:
        """True if it repairs enough for what it spoils."""
        spoiled = found.spoils(self.written)
        return spoiled * _PRICE <= self.written.spoils(found) if spoiled else True


# --- for `gradspec audit --explain` ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tried:
    """One choice, and all candidates measured for it."""

    choice: Choice
    measured: tuple[Candidate, ...]


_listener: ContextVar[list[Tried] | None] = ContextVar("tried", default=None)


@contextmanager
def listening() -> Iterator[list[Tried]]:
    """Record the choices made inside, in order."""
    heard: list[Tried] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


def note(tried: Tried) -> None:
    """Record a choice for every active listener."""
    heard = _listener.get()
    if heard is not None:
        heard.append(tried)
