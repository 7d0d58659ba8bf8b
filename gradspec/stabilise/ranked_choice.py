"""Which of several evaluations of a value of a ranked rule to take.

Judged as for elementwise rules (`choose.py`), over several elements at several sizes.
Sums of terms of both signs lose digits in any form, and how many is luck: so it takes
more for one form to be better, or worse, than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np

from gradspec.ir.expr import Expr, Reduce
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.choose import clearly, cost
from gradspec.stabilise.measure import FAIR, GOOD, Score, Stratum

_LUCK, _CHANCE = 2.0, 16.0
"""Factors by which an error may grow; the second from ``FAIR`` on."""

_LOGSUMEXP = sum(primitive(op).cost for op in ("exp", "exp", "log"))
_CLOSE = 16  # a part of the bad points that may be luck
_SHARE, _MARGIN = 4, 2  # of those left, what a form must mend that computes more

Scored: TypeAlias = Callable[[Expr], "list[tuple[Expr, Score]]"]
"""Measures a form at every element tried: what it evaluates to, and its score."""


class Choosing:
    """The best form so far; nothing that is worse than what is written."""

    def __init__(self, scored: Scored, written: Expr) -> None:
        self._scored = scored
        self._written = written
        self.best = written
        self._seen: dict[Expr, None] = {written: None}
        self.before = self.scores = scored(written)
        self._first = self._held = together(self.before)

    @property
    def is_good(self) -> bool:
        held = self._held
        return held.is_good and not held.gaps and not held.noisy

    @property
    def is_poor(self) -> bool:
        """Worth computing named values once more: not for a lack of digits alone, which
        sums of terms of both signs have in any form."""
        held = self._held
        return bool(held.whole.bad or held.gaps or held.noisy)

    def look_near(self, found: Iterable[Expr]) -> None:
        """Rewrites of what is written: any that measures better."""
        for form, scored, score in self._measured(found):
            better = self._order(score)
            cheaper = self.best != self._written and _cost(form) < _cost(self.best)
            if better < 0 or (better == 0 and cheaper):
                self._take(form, scored, score)

    def look_far(self, found: Iterable[Expr]) -> None:
        """Forms in which named values are computed once more: for a real gain only."""
        start = self._held
        for form, scored, score in self._measured(found):
            if _is_gain(score, start) and self._order(score) < 0:
                self._take(form, scored, score)

    def _measured(
        self, found: Iterable[Expr]
    ) -> Iterator[tuple[Expr, list[tuple[Expr, Score]], Score]]:
        for form in found:
            if form not in self._seen:
                self._seen[form] = None
                scored = self._scored(form)
                score = together(scored)
                if not _is_worse(score, self._first):
                    yield form, scored, score

    def _take(self, form: Expr, scored: list[tuple[Expr, Score]], score: Score) -> None:
        self.best, self._held, self.scores = form, score, scored

    def _order(self, score: Score) -> int:
        """Negative if better than what is held. Of bad points, few more or less are
        luck where there were many."""
        held = self._held
        less = score.whole.bad - held.whole.bad
        if abs(less) > self._first.whole.bad // _CLOSE:
            return less
        graves = (score.gaps, score.noisy > 0), (held.gaps, held.noisy > 0)
        if graves[0] != graves[1]:
            return -1 if graves[0] < graves[1] else 1
        errors = clearly(score.whole.worst, held.whole.worst)
        return errors + clearly(score.core.worst, held.core.worst)


def _cost(expr: Expr) -> float:
    """A logsumexp takes an exponential of every element, and a logarithm."""
    hidden = (n for n in nodes(expr) if isinstance(n, Reduce) and n.op == "logsumexp")
    return cost(expr) + sum(_LOGSUMEXP for _ in hidden)


def _is_gain(score: Score, held: Score) -> bool:
    """A good part of the bad points mended, or gaps or infinities, or errors much
    smaller with no bad point more."""
    mended = held.whole.bad - score.whole.bad
    if mended > max(_MARGIN, held.whole.bad // _SHARE):
        return True
    return mended >= 0 and (
        score.gaps < held.gaps
        or (held.noisy > 0 and not score.noisy)
        or held.whole.worst > _CHANCE * max(score.whole.worst, GOOD)
    )


def _is_worse(score: Score, first: Score) -> bool:
    """Fewer bad points are worth digits at fewer others: nothing is left of a NaN."""
    before, after = first.whole, score.whole
    limit = np.maximum(_CHANCE * before.errors, FAIR)
    spoiled = int((after.errors > limit).sum())
    if after.bad < before.bad and score.core.bad <= first.core.bad:
        grown = spoiled > (before.bad - after.bad) // 2
    else:
        slack = _LUCK if before.worst <= FAIR else _CHANCE
        grown = after.worst > max(slack * before.worst, GOOD) or after.bad > before.bad
    return grown or score.gaps > first.gaps or score.noisy > first.noisy


def together(scored: list[tuple[Expr, Score]]) -> Score:
    """One score for all elements."""
    scores = [score for _, score in scored]
    return Score(
        _joined([score.whole for score in scores]),
        _joined([score.core for score in scores]),
        sum(score.gaps for score in scores),
        sum(score.noisy for score in scores),
    )


def _joined(parts: list[Stratum]) -> Stratum:
    count = sum(part.count for part in parts)
    over = sum(part.share * part.count for part in parts)
    return Stratum(
        count,
        sum(part.bad for part in parts),
        max(part.worst for part in parts),
        over / count if count else 0.0,
        -1,
        np.concatenate([part.errors for part in parts]),
    )
