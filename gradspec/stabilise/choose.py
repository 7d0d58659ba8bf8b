"""Which of several evaluations of one function to take, by measurement.

A candidate must not be worse than what is written in any measure on any stratum. Among
those: fewer bad points, fewer gaps (points inside the assumptions at which the written
form is not defined, such as ``x * log(x)`` at 0), no infinity on the way, a clearly
smaller largest error, then what costs less to run and to read; what is written wins
ties.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.measure import GOOD, QUIET, SLACK, Score, Trial

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
    """The best form, and what was measured of it and of the one written."""

    form: Expr
    score: Score
    written: Score


def choose(
    trial: Trial,
    written: Candidate,
    near: Iterable[Candidate],
    far: Iterable[Candidate] = (),
) -> Choice:
    """The best of ``written``, ``near`` (rewrites of it) and ``far`` (the same function
    found in another way, which must be clearly better and not only cheaper).
    """
    first = trial.score_with_noise(written.closed)
    best, held = written, first
    for candidate in near:
        score = _admitted(trial, candidate, first)
        if score is None:
            continue
        if (order(score, held) or cost(candidate.form) - cost(best.form)) < 0:
            best, held = candidate, score
    for candidate in far:
        score = _admitted(trial, candidate, first)
        if score is not None and order(score, held) < 0:
            best, held = candidate, score
    return Choice(best.form, held, first)


def _admitted(trial: Trial, candidate: Candidate, first: Score) -> Score | None:
    """The score of a candidate that is not worse than what is written."""
    quick = trial.score(candidate.closed)
    if quick.is_worse_than(first, QUIET):
        return None
    score = trial.score_with_noise(candidate.closed)
    slack = QUIET if score.noisy < first.noisy else SLACK
    return None if score.is_worse_than(first, slack) else score


def order(score: Score, held: Score) -> int:
    """Negative if the first is more accurate, positive if the second is, else 0."""
    grave = (score.whole.bad, score.gaps, score.noisy > 0)
    held_grave = (held.whole.bad, held.gaps, held.noisy > 0)
    if grave != held_grave:
        return -1 if grave < held_grave else 1
    errors = clearly(score.whole.worst, held.whole.worst)
    return errors + clearly(score.core.worst, held.core.worst)


def clearly(one: float, other: float) -> int:
    """-1 if the first error is clearly smaller, 1 if the second is, else 0.

    All that is good is equal. Errors of hundreds of ULP come from cancellation that no
    form avoids, and how large they are is luck: there it takes more.
    """
    low, high = sorted((max(one, GOOD), max(other, GOOD)))
    if high <= low * (2.0 if low <= _CHANCE else 16.0):
        return 0
    return -1 if one < other else 1


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
