"""The last of a choice: what rounding takes off arguments is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradspec.ir.expr import Expr
from gradspec.stabilise.choose import Candidate, Choice, choose
from gradspec.stabilise.compensate import compensated
from gradspec.stabilise.measure import Trial


def polished(
    trials: tuple[Trial, Trial],
    usual: tuple[Any, ...],
    choice: Choice,
    candidate: Callable[[Expr], Candidate],
) -> Choice:
    """A form that is not good yet where statics have their defaults (``usual``), with
    compensated functions in it, also where a name stands for what they are of."""
    first = candidate(choice.form)
    pairs = zip(trials, usual, strict=True)
    if all(trial.score_at(first.closed, where).is_good for trial, where in pairs):
        return choice
    forms = (*compensated(choice.form), *compensated(first.closed))
    found = map(candidate, dict.fromkeys(forms))
    return choose(trials[0], first, (), found, trials[1])
