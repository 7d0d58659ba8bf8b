"""The wider search for one expression of a rule: what equality saturation finds beside
the best form so far, and what is found case by case, if it is worth it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from gradspec.ir.expr import Expr
from gradspec.stabilise.by_cases import by_cases
from gradspec.stabilise.choose import Candidate, Choice, choose, is_worth
from gradspec.stabilise.measure import Score, Trial
from gradspec.stabilise.propose import proposals
from gradspec.stabilise.saturate import Saturation

_SEVERE = 8.0  # ULP


def is_severe(score: Score) -> bool:
    """Whether a search, which takes half a second, is worth its time. What is a few
    units off is left to the compensated functions."""
    return score.whole.bad > 0 or score.whole.worst > _SEVERE


def searched(
    saturation: Saturation,
    trials: tuple[Trial, Trial],
    found: Choice,
    starts: tuple[Expr, ...],
    candidate: Callable[[Expr], Candidate],
    upstream: frozenset[str],
) -> Choice:
    """``found``, or a form that mends it; ``starts`` are equal to it, itself first. What
    is divided by cases has to be good: more branches for fewer faults are no remedy where
    float64 leaves none."""
    single, double = trials
    best = candidate(found.form)
    every = dict.fromkeys((*starts, *proposals(starts[0], upstream)))
    forms = saturation.forms(tuple(every), single.suspicion(best.closed))
    divided = map(candidate, chain.from_iterable(map(by_cases, starts)))
    whole = [one for one in divided if single.score(one.closed).is_good]
    done = choose(single, best, (), chain(whole, map(candidate, forms)), double)
    return done if is_worth(done, found) else found
