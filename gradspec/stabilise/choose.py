"""Which of several evaluations of one function to take, by measurement.

A candidate must not be worse than what is written in any measure on any stratum, in
float32 nor in float64: the same text serves both. Among those: fewer bad points, fewer gaps (points inside the assumptions at which the written
form is not defined, such as ``x * log(x)`` at 0), no infinity on the way, a clearly
smaller largest error, then what costs less to run and to read; what is written wins
ties.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.measure import GOOD, QUIET, SLACK, Score, Trial
from gradspec.stabilise.tried import Tried, note

_CHANCE = 64.0
_SELECT = 3.7  # multiplications (`np.where`, measured)
_CALL = 10.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """``form`` is what would stand in the rule, ``closed`` what it evaluates to in the
    inputs (the same unless ``form`` uses names of the rule).
    """

    form: Expr
    closed: Expr


@dataclass(frozen=True, slots=True)
class Choice:
    """The best form, and what was measured of it and of the one written; ``fine`` is the
    same in float64, if that was asked for: before and after."""

    form: Expr
    score: Score
    written: Score
    fine: tuple[Score, Score] | None = None

    def since(self, first: Choice) -> Choice:
        """The same, measured against what an earlier choice began with."""
        if self.fine is None or first.fine is None:
            return replace(self, written=first.written)
        fine = first.fine[0], self.fine[1]
        return replace(self, written=first.written, fine=fine)


@dataclass(frozen=True, slots=True)
class _Held:
    """A candidate with its scores in float32 and, where that is asked for, float64."""

    candidate: Candidate
    score: Score
    fine: Score | None

    @property
    def scores(self) -> tuple[Score, ...]:
        return (self.score,) if self.fine is None else (self.score, self.fine)


def choose(
    trial: Trial,
    written: Candidate,
    near: Iterable[Candidate],
    far: Iterable[Candidate] = (),
    fine: Trial | None = None,
) -> Choice:
    """The best of ``written``, ``near`` (rewrites of it) and ``far`` (the same function
    found in another way, which must be clearly better and not only cheaper). ``fine``
    tries them in float64.
    """
    contest = _Contest(trial, fine, written)
    for candidate in near:
        contest.enter_near(candidate)
    for candidate in far:
        contest.enter_far(candidate)
    first, best = contest.first, contest.held
    both = None
    if first.fine is not None and best.fine is not None:
        both = first.fine, best.fine
    formats = [("float32", first.score, best.score)]
    if both is not None:
        formats.append(("float64", *both))
    others = tuple(contest.entered.items())
    note(Tried(written.form, best.candidate.form, others, tuple(formats)))
    return Choice(best.candidate.form, best.score, first.score, both)


class _Contest:
    """The best candidate so far; none that is worse than the first in any measure."""

    def __init__(self, trial: Trial, fine: Trial | None, written: Candidate) -> None:
        self._trial, self._fine = trial, fine
        self.entered: dict[Expr, float | None] = {}
        score = trial.score_with_noise(written.closed)
        other = None if fine is None else fine.score(written.closed)
        self.first = self.held = _Held(written, score, other)

    def enter_near(self, candidate: Candidate) -> None:
        """Hold ``candidate`` if it is better than what is held, or as good and cheaper."""
        held = self.held.candidate.form
        self._enter(candidate, cost(candidate.form) < cost(held))

    def enter_far(self, candidate: Candidate) -> None:
        """Hold ``candidate`` if it is better than what is held."""
        self._enter(candidate, is_cheaper=False)

    def _enter(self, candidate: Candidate, is_cheaper: bool) -> None:
        score = _admitted(self._trial, candidate, self.first.score)
        self.entered[candidate.form] = None if score is None else score.whole.worst
        if score is None:
            return
        if not self._may_win(score, is_cheaper):
            return
        fine = self._in_double(candidate, score)
        if self._fine is not None and fine is None:
            return
        entry = _Held(candidate, score, fine)
        better = order(entry.scores, self.held.scores)
        if better < 0 or (better == 0 and is_cheaper):
            self.held = entry

    def _may_win(self, score: Score, is_cheaper: bool) -> bool:
        """Whether float64 needs asking: what is good there already gets no better."""
        held = self.held
        if held.fine is not None and not _is_faultless(held.fine):
            return True
        better = order((score,), (held.score,))
        return better < 0 or (better == 0 and is_cheaper)

    def _in_double(self, candidate: Candidate, single: Score) -> Score | None:
        """The score in float64, if it is not worse there; a little luck of rounding is
        allowed where float32 gains more than digits."""
        if self._fine is None or self.first.fine is None:
            return None
        score = self._fine.score(candidate.closed)
        mends = _grave((single,)) < _grave((self.first.score,))
        slack = QUIET if mends else SLACK
        return None if score.is_worse_than(self.first.fine, slack) else score


def _is_faultless(score: Score) -> bool:
    return score.is_good and not score.gaps


def _admitted(trial: Trial, candidate: Candidate, first: Score) -> Score | None:
    """The score of a candidate that is not worse than what is written."""
    quick = trial.score(candidate.closed)
    if quick.is_worse_than(first, QUIET):
        return None
    score = trial.with_noise(quick, candidate.closed)
    slack = QUIET if score.noisy < first.noisy else SLACK
    return None if score.is_worse_than(first, slack) else score


def order(scores: tuple[Score, ...], held: tuple[Score, ...]) -> int:
    """Negative if the first is more accurate, positive if the second is, else 0."""
    graves = _grave(scores), _grave(held)
    if graves[0] != graves[1]:
        return -1 if graves[0] < graves[1] else 1
    return sum(
        clearly(one.whole.worst, other.whole.worst)
        + clearly(one.core.worst, other.core.worst)
        for one, other in zip(scores, held, strict=True)
    )


def _grave(scores: tuple[Score, ...]) -> tuple[int, int, bool]:
    return (
        sum(score.whole.bad for score in scores),
        sum(score.gaps for score in scores),
        any(score.noisy > 0 for score in scores),
    )


def clearly(one: float, other: float) -> int:
    """-1 if the first error is clearly smaller, 1 if the second is, else 0.

    All that is good is equal. Errors of hundreds of ULP come from cancellation that no
    form avoids, and how large they are is luck: there it takes more.
    """
    low, high = sorted((max(one, GOOD), max(other, GOOD)))
    if high <= low * (2.0 if low <= _CHANCE else 16.0):
        return 0
    return -1 if one < other else 1


def is_worth(choice: Choice, before: Choice) -> bool:
    """Whether a form that was long looked for is more than luck: half of the bad points
    or gaps are gone, or the errors are clearly smaller."""
    new, old = choice.score, before.score
    if 2 * new.whole.bad <= old.whole.bad and new.whole.bad < old.whole.bad:
        return True
    if new.gaps < old.gaps or new.noisy < old.noisy:
        return True
    errors = clearly(new.whole.worst, old.whole.worst)
    return errors + clearly(new.core.worst, old.core.worst) < 0


def cost(expr: Expr) -> float:
    """To run (multiplications, shared nodes once) and to read (one for each node)."""
    return sum(_cost(node) for node in nodes(expr))


def _cost(node: Expr) -> float:
    match node:
        case Apply(op=op):
            return 1.0 + primitive(op).cost
        case Select():
            return 1.0 + _SELECT
        case Call():
            return 1.0 + _CALL
        case Ref() | Const():
            return 1.0
        case _:
            return 1.0
