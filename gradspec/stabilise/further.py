"""What is still tried where the best form alone is not good: its product in another
order, one form below a threshold and another above it, and any form that was looked at
and loses less, however little. Measured at extreme ratios of several inputs, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.primitives.on_target import MAY_LACK_DOUBLE
from gradspec.stabilise import wide
from gradspec.stabilise.about_ends import about_ends, undivided
from gradspec.stabilise.angled import angled
from gradspec.stabilise.choose import Candidate, Choice, cost
from gradspec.stabilise.collected import collected
from gradspec.stabilise.compounded import compounded
from gradspec.stabilise.decayed import decayed
from gradspec.stabilise.measure import QUIET, SLACK, Score, Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.near_nought import near_nought
from gradspec.stabilise.near_one import near_one
from gradspec.stabilise.one_line import over_one_line
from gradspec.stabilise.peeled import peeled
from gradspec.stabilise.points import Points, extremes
from gradspec.stabilise.products import is_product, reordered
from gradspec.stabilise.regimes import BAD, Form, by_regimes, losses
from gradspec.stabilise.separated import separated
from gradspec.stabilise.squares import with_squares_apart
from gradspec.stabilise.tried import Tried
from gradspec.stabilise.two_logistics import at_two_logistics
from gradspec.stabilise.two_places import at_two_places
from gradspec.stabilise.united import united, within_range
from gradspec.stabilise.vanishing import tamed
from gradspec.stabilise.written_order import as_written

_CLOSE = 3.0
"""ULP from the rounded truth at these points that are within 4 of the truth at any."""

_LARGEST = 200  # forms that are looked at once more
_SORTED, _TAMED = 6, 2
_PRICE = 1.5
"""How much more a form may cost that is only a little more accurate."""

_SEVERAL = 2  # inputs

_GAIN, _LEAST = 0.6, 6.0
"""Share of the lost bits that may be left, and how many must be gained."""

_MUCH = 200.0
"""Bits that are much whatever is left: five points or so that were wrong altogether."""

_POOR = 8.0
"""Bits lost in float64 that the first terms about an end may be worth."""

RARE = 0.25
"""What a point counts at which statics do not have their defaults."""

Make = Callable[[Expr], Candidate]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where an expression is measured: in float32 (first), in float64, and at extremes.
    ``usual``: for each, the points at which statics have their defaults; ``close`` puts
    values in place of names."""

    trials: tuple[Trial, ...]
    usual: tuple[Any, ...]
    close: Callable[[Expr], Expr]
    is_derived: bool
    """What is derived may be in any form; what the author wrote stays near it."""

    is_wide: bool = False
    """Whether float32 is computed in float64 and rounded."""

    def single(self) -> tuple[tuple[Trial, Any], ...]:
        """Those in float32, with the usual points."""
        pairs = zip(self.trials, self.usual, strict=True)
        return tuple((t, where) for t, where in pairs if t.dtype == "float32")

    def at(self, hard: Points, target: str) -> tuple[tuple[Trial, Any], ...]:
        """Those in float32 and one at ``hard`` points."""
        machine = Machine(hard.columns, np.float32, target)
        trial = Trial(self.trials[0].meaning, hard, machine)
        return (*self.single(), (trial, np.ones(len(hard), dtype=bool)))

    def widened(self, hard: Points | None, target: str) -> Ground:
        """In float64, and at some points more."""
        wide_one = replace(self, is_wide=True)
        if hard is None:
            return wide_one
        pairs = (
            *zip(self.trials, self.usual, strict=True),
            *self.at(hard, target)[-1:],
        )
        trials, usual_ = zip(*pairs, strict=True)
        return replace(wide_one, trials=trials, usual=usual_)

    def beyond(self, rule: Rule, target: str) -> Ground:
        """With extreme ratios, if there are several inputs."""
        first = self.trials[0]
        if not self.is_derived or len(first.variables) < _SEVERAL:
            return self
        far = extremes(rule)
        if not len(far):
            return self
        trial = Trial(first.meaning, far, Machine(far.columns, np.float32, target))
        usual = (*self.usual, wide.usual(rule, far))
        return replace(self, trials=(*self.trials, trial), usual=usual)

    def is_lost(self, form: Expr) -> bool:
        """Whether it is bad at extremes."""
        closed = self.close(form)
        far = zip(self.trials[2:], self.usual[2:], strict=True)
        return any(trial.score_at(closed, where).whole.bad for trial, where in far)

    def lost(self, closed: Expr) -> Any:
        """The bits lost at all points."""
        weight = np.where(np.concatenate(self.usual), 1.0, RARE)
        off = [
            (
                trial.suspicion_in_double(closed)
                if self._is_rounded(trial)
                else trial.suspicion(closed)
            )
            for trial in self.trials
        ]
        return losses(np.concatenate(off)) * weight

    def scores(self, closed: Expr) -> tuple[Score, ...]:
        return tuple(
            map(self._score, self.trials, self.usual, [closed] * len(self.usual))
        )

    def allows(self, new: Expr, old: Expr) -> bool:
        """Whether one form is worse than another in no measure, on no sample."""
        pairs = zip(self.scores(new), self.scores(old), strict=True)
        return not any(_is_worse(one, other, QUIET) for one, other in pairs)

    def is_good(self, closed: Expr) -> bool:
        scores = self.scores(closed)
        return all(score.is_good for score in scores)

    def _score(self, trial: Trial, where: Any, closed: Expr) -> Score:
        rounded = self._is_rounded(trial)
        return (trial.score_in_double if rounded else trial.score_at)(closed, where)

    def united(self, closed: Expr) -> Iterator[Expr]:
        """``closed`` gathered, and with one exponential."""
        first = self.trials[0]
        return united(closed, first.meaning, first.variables, self._is_positive)

    def peeled(self, closed: Expr) -> Iterator[Expr]:
        """``closed`` with one exponential outside of what is bounded. Its exponent has
        several inputs, of which float32 loses digits: nothing for targets that compute in
        float32 unless they are told otherwise."""
        first = self.trials[0]
        sure = first.target not in MAY_LACK_DOUBLE
        return peeled((first.meaning, closed)) if sure else iter(())

    def rewritten(self, closed: Expr) -> Iterator[Expr]:
        """``closed`` by half angles, and with angles taken apart; powers at two places;
        exponentials near 0 and 1, squares near each other."""
        yield from angled(closed, self._is_never_negative)
        yield from at_two_places(closed)
        yield from decayed(closed)
        yield from near_one(closed)
        yield from with_squares_apart(closed)
        yield from self._over_one_line(closed)
        yield from self.compounded(closed)

    def compounded(self, closed: Expr) -> Iterator[Expr]:
        """Powers of a sum with 1 through what they are more than 1."""
        for form in compounded(self.trials[0].meaning, closed):
            yield within_range(form, closed, self.trials[0].variables)

    def _over_one_line(self, closed: Expr) -> Iterator[Expr]:
        """What is left of 1 as a difference, also of ``sin(u)`` from a small ``u``; there are
        squares in it, which only numbers of float32 have in float64."""
        first = self.trials[0]
        for start in dict.fromkeys((closed, first.meaning)):
            for form in (start, *over_one_line(start)):
                others = *(() if form is start else (form,)), *near_nought(form)
                for other in others:
                    yield within_range(other, closed, first.variables)

    def separated(self) -> Iterator[Expr]:
        """The function as a sum of others of one variable each."""
        first = self.trials[0]
        return separated(first.meaning, first.variables, first.points.upstream)

    def collected(self) -> Iterator[Expr]:
        """The function as a sum of products of inputs and functions of one product of
        them, where that is small; elsewhere as it is peeled."""
        first = self.trials[0]
        sure = first.target not in MAY_LACK_DOUBLE
        return collected(first.meaning, first.points.upstream) if sure else iter(())

    def _is_positive(self, part: Expr) -> bool:
        """Whether an expression is, at all points."""
        return all(bool((t.values_in_double(part) > 0).all()) for t in self.trials)

    def _is_never_negative(self, part: Expr) -> bool:
        return all(bool((t.values_in_double(part) >= 0).all()) for t in self.trials)

    def rounded(self) -> tuple[tuple[Trial, bool], ...]:
        """The trials, with whether they are computed in float64 and rounded."""
        return tuple((trial, self._is_rounded(trial)) for trial in self.trials)

    def _is_rounded(self, trial: Trial) -> bool:
        return self.is_wide and trial.dtype == "float32"


def further(
    ground: Ground, choice: Choice, heard: Iterable[Tried], candidate: Make
) -> Choice:
    """``choice``, or what is better; ``heard`` is what has been tried so far. What the
    author wrote only has exponentials taken out, where float64 has no room for it, and
    powers and logistics at two places, where it has no digits."""
    first = candidate(choice.form)
    is_left = not ground.is_derived and not ground.is_wide
    if is_left or ground.is_good(first.closed):
        return choice
    work = _Work(ground, candidate, first)
    if not ground.is_derived:
        forms = [*ground.peeled(first.closed), *ground.collected()]
        if ground.is_wide:
            forms += at_two_logistics(choice.form, ground.trials[0].meaning)
            forms += at_two_places(first.closed)
        return _changed(work, choice, work.best_in_parts([*map(work.form, forms)]))
    pool = dict.fromkeys((choice.form, *looked_at(heard)))
    known = [work.form(f) for f in islice(pool, _LARGEST)]
    known += [work.form(f) for f in work.sorted(known)]
    known += [work.form(f) for f in (*work.tamed(known), *work.united())]
    known += [work.form(f) for f in work.in_order(known)]
    best = work.best(known)
    split = by_regimes((best, *_ranked(known)), ground.trials, ground.is_wide)
    return _changed(work, choice, work.best((best, *map(work.form, split))))


def _changed(work: _Work, choice: Choice, best: Form) -> Choice:
    same = best.candidate.form == choice.form
    return choice if same else work.choice(choice, best.candidate)


class _Work:
    def __init__(self, ground: Ground, candidate: Make, first: Candidate) -> None:
        self._ground, self._candidate = ground, candidate
        self.first = self.form(first.form)
        self._scores = ground.scores(first.closed)
        self._noisy = ground.trials[0].score_with_noise(first.closed).noisy

    def form(self, form: Expr) -> Form:
        made = self._candidate(form)
        return Form(made, self._ground.lost(made.closed), cost(form))

    def sorted(self, forms: list[Form]) -> Iterator[Expr]:
        """The products among the best forms, in other orders."""
        best = [f.candidate for f in _ranked(forms) if is_product(f.candidate.closed)]
        for made in best[:_SORTED]:
            if made.form == made.closed:
                yield from reordered(made.form, self._ground.trials)

    def tamed(self, forms: list[Form]) -> Iterator[Expr]:
        """The best forms and the first without the NaN that they are somewhere: the
        last thing that is tried, in float64."""
        some = (self.first, *_ranked(forms)[:_TAMED]) if self._ground.is_wide else ()
        meaning = self._ground.trials[0].meaning
        for form in some:
            yield from at_two_logistics(form.candidate.form, meaning)
            pairs = self._ground.rounded()
            yield from tamed(form.candidate.form, self._ground.close, pairs)

    def in_order(self, forms: list[Form]) -> Iterator[Expr]:
        """The best forms with their sums as they are written."""
        for form in _ranked(forms)[:_TAMED] if self._ground.is_wide else ():
            yield as_written(form.candidate.form, self._ground.trials[0].meaning)

    def united(self) -> Iterator[Expr]:
        """Its powers and exponentials in one, where they leave the range in float64."""
        first = self.first
        if self._ground.is_wide:
            yield from self._ground.rewritten(first.candidate.closed)
        if self._ground.is_wide and (first.lost >= BAD * RARE).any():
            yield from self._ground.united(first.candidate.closed)
            yield from self._ground.peeled(first.candidate.closed)
            yield from self._ground.separated()
            yield from self._ground.collected()
            yield from undivided(first.candidate.form)

    def best(self, known: Iterable[Form]) -> Form:
        """The form that loses least of those that are worse in nothing, if that is much;
        or else the cheapest that is within 4 ULP in the core."""
        before, ranked = _total(self.first), _ranked(known)
        most = min(_GAIN * before, before - _LEAST)
        if self._ground.is_wide:  # other points may be beyond help
            most = max(most, before - _MUCH)
        for form in ranked:
            if _total(form) > most:
                break
            if self.is_admitted(form.candidate):
                return form
        if all(score.core.is_good for score in self._scores):
            return self.first
        cheap = [f for f in ranked if f.cost <= _PRICE * self.first.cost]
        for form in sorted(cheap, key=lambda f: f.cost):
            scores = self._ground.scores(form.candidate.closed)
            is_close = all(s.core.worst <= _CLOSE for s in scores)
            if is_close and self.is_admitted(form.candidate):
                return form
        return self.first

    def best_in_parts(self, known: list[Form]) -> Form:
        """The best form, or else what was there with another beyond a threshold."""
        best = self.best(known)
        if best is not self.first:
            return best
        split = by_regimes((self.first, *_ranked(known)), self._ground.trials)
        return self.best(map(self.form, split))

    def choice(self, before: Choice, best: Candidate) -> Choice:
        single, double = self._ground.trials[:2]
        score = single.score_with_noise(best.closed)
        fine = before.fine and (before.fine[0], double.score(best.closed))
        return Choice(best.form, score, before.written, fine)

    def is_admitted(self, made: Candidate) -> bool:
        """Worse in no measure, nor by infinities on the way."""
        if made.form == self.first.candidate.form:
            return False
        slack = QUIET if self._ground.is_wide else SLACK
        after = self._ground.scores(made.closed)
        pairs = zip(after, self._scores, strict=True)
        if any(_is_worse(one, other, slack) for one, other in pairs):
            return False
        noisy = self._ground.trials[0].score_with_noise(made.closed).noisy
        return self._ground.is_wide or noisy <= self._noisy


def _is_worse(one: Score, other: Score, slack: float) -> bool:
    """At single points, and in the counts, too."""
    return one.is_worse_than(other, slack) and one.counts_worse(other, slack)


def ended(ground: Ground, choice: Choice, candidate: Make) -> Choice:
    """``choice`` with the first terms about the ends at which float64 has nothing, or
    little, left for float32: the cheapest of those that mend most, if that is much."""
    work = _Work(ground, candidate, candidate(choice.form))
    first, trials = work.first, ground.trials
    rounded = [np.full(len(t.points), w) & t.is_finite for t, w in ground.rounded()]
    lost = np.concatenate(rounded) & (first.lost >= _POOR)
    closed = first.candidate.closed
    usual = (closed, *ground.compounded(closed)) if ground.is_wide else (closed,)
    pairs = [pair for form in usual for pair in about_ends(form, lost, trials)]
    every = {form: work.form(form) for form in dict.fromkeys(chain(*pairs))}
    split = by_regimes((first, *(every[series] for series, _ in pairs)), trials)
    some = (*every.values(), *map(work.form, split))
    known = [f for f in some if (f.lost[lost] >= _POOR).mean() <= _GAIN]
    good = (f for f in _ranked(known) if work.is_admitted(f.candidate))
    least = next(good, None)
    if least is None:
        return choice
    near = [f for f in known if _total(f) <= _total(least) + _LEAST]
    cheap = sorted((f for f in near if f.cost < least.cost), key=lambda f: f.cost)
    best = next((f for f in cheap if work.is_admitted(f.candidate)), least)
    return work.choice(choice, best.candidate)


def looked_at(heard: Iterable[Tried]) -> Iterator[Expr]:
    for tried in heard:
        yield tried.taken
        yield from (form for form, _ in tried.others)


def _total(form: Form) -> float:
    return float(form.lost.sum())


def _ranked(forms: Iterable[Form]) -> list[Form]:
    return sorted(forms, key=lambda f: (_total(f), f.cost))


def others(
    ground: Ground, choice: Choice, pool: Iterable[Expr], candidate: Make
) -> Iterator[Candidate]:
    """Forms that are worse than the chosen one in nothing and lose hardly more, those
    that lose least first."""
    first = candidate(choice.form)
    work = _Work(ground, candidate, first)
    known = [work.form(f) for f in islice(dict.fromkeys(pool), _LARGEST)]
    most = _total(work.form(choice.form)) + _LEAST
    for form in _ranked(known):
        if _total(form) <= most and work.is_admitted(form.candidate):
            yield form.candidate
