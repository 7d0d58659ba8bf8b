"""Selection in elementwise rules, whose values are measured in two formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gradspec.derive.indexed import derived_cotangent
from gradspec.derive.vjp import cotangents
from gradspec.ir.expr import Expr
from gradspec.ir.rule import AccuracyLoss, Complete, Definition, Rewrite, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import calls_surrogate
from gradspec.stabilise.accuracy_model import Trial, is_real
from gradspec.stabilise.choice import (
    Candidate,
    Choice,
    Contest,
    Proposals,
    Tried,
    note,
)
from gradspec.stabilise.comparisons import with_names
from gradspec.stabilise.explanation import accuracy_loss
from gradspec.stabilise.names import Quantity, rederive, weight, with_stops
from gradspec.stabilise.overflow import with_ordered_products, with_vanishing_products
from gradspec.stabilise.rewriting import Search
from gradspec.stabilise.selection import Selection
from gradspec.stabilise.series import with_series
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.measured import (
    Points,
    Sample,
    coincident_samples,
    scalar_samples,
)

_FEW = 2
"""Bad points far out that do not justify doubling the bytes of every call, or a series."""


class ScalarSelection(Selection):
    """The passes of a quantity: forms of the search, products that leave the range,
    series, float64."""

    def __init__(
        self, rule: Complete, original: Rule, effort: Effort, hidden: tuple[str, ...]
    ) -> None:
        super().__init__(rule, original, effort, hidden)
        self._proposals = Proposals(Search(self._holds), rule)
        self._plain: dict[str, Expr] = {}  # selected forms without their series

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        return scalar_samples(self._original)

    @property
    def points(self) -> Points:
        return self.samples[0].points

    def _derive(self) -> Mapping[str, Definition]:
        """Those of the surrogates, if any; where a series was selected, those of the
        function itself.
        """
        written, chosen = self._written, self._rule
        if calls_surrogate(self._original):
            found = {n: with_stops(e) for n, e in cotangents(self._original).items()}
        else:
            lets = (
                replace(x, value=self._plain.get(x.name, x.value))
                for x in chosen.forward
            )
            found = rederive(written, tuple(lets))
        return {
            i.name: derived_cotangent(i, with_names(value, chosen, self._hidden))
            for i in written.inputs
            if (value := found.get(i.name)) is not None
        }

    def _start(self, written: Expr) -> Expr:
        return tidy(written)

    def _is_free(self, of: Quantity) -> bool:
        return of.is_derived

    def _mend(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """Reordered products, a series."""
        for mend in (with_vanishing_products, with_ordered_products, with_series):
            self._plain[of.name] = choice.selected.form
            if choice.is_good:
                continue
            best = sorted(contest.measured, key=lambda found: found.faults)
            starts = dict.fromkeys((choice.selected, choice.written, *best[:2]))
            found = (form for start in starts for form in mend(contest.trials, start))
            held = choice.selected
            choice = contest.choose(self._count(found), held)
            if mend is with_series and not _is_much(held, choice.selected):
                choice = Choice(choice.written, held)
            if choice.is_good and of.is_derived and mend is with_ordered_products:
                # from an order that is good the search may go on to a cheaper form
                choice = self._search_forms(contest, of, choice)
        return choice

    def _places(self, of: Quantity) -> tuple[Sample, ...]:
        return self.samples

    def _steps(self, meaning: Expr) -> int:
        """A rewritten formula is written out in the end, so one that grows by being
        written out is not searched.
        """
        return weight(meaning, {})

    def _close(self, sample: Sample, env: Mapping[str, int], form: Expr) -> Expr:
        return self._selected_values(sample, 0).close(form)

    def _holds(self, condition: Expr) -> bool:
        """True if a rewrite's condition holds wherever the outputs are defined."""

        def values(sample: Sample) -> Any:
            machine = self._exact(sample)[1]
            found = machine.run(self._close(sample, {}, condition))
            return found[sample.points.defined]

        return all(values(sample).all() for sample in self.samples)

    # --- what is reported ------------------------------------------------------------------

    def _losses(self, of: Quantity) -> Iterable[AccuracyLoss]:
        """Those in float32 of overrides and exact definitions."""
        form = tidy(of.value)
        if not is_real(form):
            return ()
        try:
            written = Contest(tuple(self._trials(of)), form)
        except NotImplementedError:
            return ()
        return accuracy_loss(of.name, written.trials, written.written)

    def _is_told(self, of: Quantity, choice: Choice) -> bool:
        """True for a form of the author; for a derived one, if another is better."""
        return choice.written.faults != choice.selected.faults or not of.is_derived

    def _note(self, of: Quantity, contest: Contest, choice: Choice, new: str) -> None:
        after = choice.selected
        note(Tried(choice, contest.measured))
        wide = self._is_wide(of, contest.trials[0], after)
        if wide:
            self.wide.append(of.name)
            self.rewrites.append(Rewrite(of.name, new, new, _WIDE))
        found = accuracy_loss(of.owner, contest.trials, after, wide)
        self.losses += found or self._loss_beside(of, after.form, wide)

    @cached_property
    def _coincident(self) -> tuple[Sample, ...]:
        return tuple(coincident_samples(self._original))

    def _loss_beside(self, of: Quantity, form: Expr, wide: bool) -> list[AccuracyLoss]:
        """The accuracy loss beside points at which inputs coincide, in either format."""
        for trial in self._trials(of, self._coincident):
            is_wide = wide and trial.machine.work is np.float32
            candidate = Candidate(form, (trial.score(form),))
            found = accuracy_loss(of.owner, (trial,), candidate, is_wide)
            if found:
                return found
        return []

    def _is_wide(self, of: Quantity, trial: Trial, selected: Candidate) -> bool:
        """True if a result that no form gives in float32 is computed in float64 and
        rounded once: it costs twice the bytes and, on most accelerators, more than
        twice the time, so it is the last resort. Where all bad points are far out, only
        a derived gradient justifies it: the author's own form is reported instead
        (GS442) and left to the author.
        """
        is_result = of.is_gradient or of.name in {o.name for o in self._rule.outputs}
        score = selected.scores[0]
        is_bad = score.core or (of.is_derived and score.bad > _FEW)
        if not is_bad or not is_result or calls_surrogate(self._original):
            return False
        wide = trial.score_in_double(selected.form)
        if score.core:
            return wide.core <= score.core // 4 and wide.bad < score.bad
        return wide.bad <= score.bad // 2


_WIDE = "computed in float64, at twice the bytes: no float32 form is good"


def _is_much(before: Candidate, after: Candidate) -> bool:
    """True if more is repaired than a few points far out."""
    pairs = zip(before.faults, after.faults, strict=True)
    core, bad, *others = (was - now for was, now in pairs)
    return core > 0 or bad > _FEW or any(number > 0 for number in others)
