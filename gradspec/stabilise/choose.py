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
from math import ceil, log2

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.measure import GOOD, Score, Trial

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


def choose(trial: Trial, written: Candidate, others: Iterable[Candidate]) -> Choice:
    """The best of ``written`` and ``others``."""
    first = trial.score(written.closed)
    best, best_score, best_key = written, first, _key(written, first)
    for candidate in others:
        score = trial.score(candidate.closed)
        if score.is_worse_than(first):
            continue
        key = _key(candidate, score)
        if key < best_key:
            best, best_score, best_key = candidate, score, key
    return Choice(best.form, best_score, first)


def _key(candidate: Candidate, score: Score) -> tuple[float, ...]:
    bad = score.whole.bad
    levels = _level(score.core.worst) + _level(score.whole.worst)
    return bad, score.gaps, score.noisy > 0, levels, cost(candidate.form)


def _level(worst: float) -> int:
    """Doublings beyond what is good: "clearly smaller" is a level less."""
    return 0 if worst <= GOOD else ceil(log2(worst / GOOD))


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
