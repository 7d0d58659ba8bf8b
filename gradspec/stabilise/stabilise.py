"""Selection of the form in which each expression of a rule is evaluated.

The passes, for each quantity: points and exact values → as written, if that is good →
candidates → choice; in elementwise rules then products that leave the range (`ranges`)
→ series (`series`) → float64. Forward first, then, on the forward as selected, the
cotangents; overrides stay as they are. Last, branches of conditionals are guarded
(`guards`).

An indexed rule is unrolled at a few small sizes, and each of its values measured at the
first and the last element; an elementwise rule is measured as it is, in two formats.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import nan
from typing import Any

import numpy as np

from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import derived_cotangent, indexed_cotangents
from gradspec.derive.vjp import cotangents
from gradspec.ir.elements import OutOfRange, element, places
from gradspec.ir.expr import Apply, Expr, Idx, Reduce, Ref, show
from gradspec.ir.rule import (
    AccuracyLoss,
    Chosen,
    Complete,
    Definition,
    Judged,
    Rewrite,
    Rule,
)
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import calls_surrogate, children, names, nodes, size
from gradspec.stabilise import sampling
from gradspec.stabilise.accuracy_model import Trial, is_real
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.choice import (
    Candidate,
    Choice,
    Contest,
    Proposals,
    Tried,
    note,
)
from gradspec.stabilise.comparisons import (
    with_comparands,
    with_names,
    without_names,
)
from gradspec.stabilise.explanation import accuracy_loss, reason
from gradspec.stabilise.guards import is_at_stake, with_guards
from gradspec.stabilise.names import (
    Names,
    Quantity,
    Scope,
    inline_lets,
    map_values,
    place,
    rederive,
    signs,
    weight,
    with_stops,
    without_calls,
    without_dead_locals,
)
from gradspec.stabilise.product import with_ordered_products, with_vanishing_products
from gradspec.stabilise.reductions import IndexedProposals
from gradspec.stabilise.rewriting import Search
from gradspec.stabilise.sampling import (
    Sample,
    coincident_samples,
    samples,
    scalar_samples,
    where_finite,
)
from gradspec.stabilise.series import with_series
from gradspec.stabilise.tips import with_tips
from gradspec.symbolic.limit import Effort

_ROUNDS = 3
_LEAST = 3  # nodes of a formula that may lose anything
_ELEMENTS = 2  # of a value that are measured at one choice of sizes
_FEW = 2
"""Bad points far out that do not justify doubling the bytes of every call, or a series."""

_RISKY = ("div", "pow", "rsqrt", "log")  # operations that may be 0 / 0
_PLAIN = 1e4
"""Beyond this, and below its inverse, products leave the range in between; that is
reported separately.
"""


def stabilise(judged: Judged, effort: Effort | None = None) -> Chosen:
    """The rule with its expressions in the forms that measure best. Raises OutOfSteps
    if ``effort`` does not suffice; without one there is no limit. Steps are counted, so
    that the search ends at the same point on any machine.
    """
    rule = without_calls(judged.rule)
    named, hidden = with_comparands(rule)
    work = _Stabiliser(named, judged.rule, effort or Effort(sys.maxsize), hidden)
    if rule.is_elementwise and not work.samples:
        return Chosen(judged, judged.rule)
    found = _with_tips(without_names(work.run(), hidden, rule.exacts))
    done = without_dead_locals(rule, _recomputing(found, work.wide))
    safe = with_guards(done, work.samples[0].points if rule.is_elementwise else None)
    work.losses += work.undefined_losses(safe)
    is_changed = rule.is_elementwise or safe != rule or calls_surrogate(judged.rule)
    return Chosen(
        judged,
        safe if is_changed else judged.rule,
        tuple(work.rewrites),
        tuple(work.losses),
        tuple(work.wide),
    )


def _with_tips(rule: Complete) -> Complete:
    """The rule with derived gradients that are 0 at tips of norms."""
    values = {let.name: let for let in rule.forward}
    return rule.redefine(
        *(
            replace(entry, value=with_tips(entry.value, values, signs(rule)))
            for entry in rule.backward
            if entry.is_derived
        )
    )


def as_written(judged: Judged) -> Chosen:
    """The rule evaluated as written, derived gradients as differentiation gives them.
    Branches of conditionals are guarded all the same: that changes no value, and keeps
    NaN out of second derivatives.
    """
    rule = map_values(without_calls(judged.rule), tidy)
    sample = sampling.points(rule) if rule.is_elementwise else None
    safe = rule if sample is not None and not len(sample) else with_guards(rule, sample)
    return Chosen(judged, safe, as_written=True)


def _recomputing(rule: Complete, wide: list[str]) -> Complete:
    """Cotangents computed in float64 must not use rounded outputs: outputs are
    recomputed, unless the author saves them.
    """
    if not any(f"d{i.name}" in wide for i in rule.inputs):
        return rule
    kept = {*rule.saves, *rule.recomputes}
    again = tuple(o.name for o in rule.outputs if o.name not in kept)
    return replace(rule, recomputes=(*rule.recomputes, *again))


class _Stabiliser:
    """Selects value by value, given the selections so far."""

    def __init__(
        self, rule: Complete, original: Rule, effort: Effort, hidden: tuple[str, ...]
    ) -> None:
        self._written = self._rule = rule
        self._hidden = hidden
        self._effort = effort
        self._original = original
        self._is_elementwise = rule.is_elementwise
        self._search = Search(self._holds)
        self._proposals: Proposals | IndexedProposals
        if rule.is_elementwise:
            self._proposals = Proposals(self._search, rule)
        else:
            self._proposals = IndexedProposals(self._search, rule)
        self._known: dict[int, tuple[Names, Machine]] = {}
        self._chosen: dict[int, Names] = {}
        self._plain: dict[str, Expr] = {}  # selected forms without their series
        self.rewrites: list[Rewrite] = []
        self.losses: list[AccuracyLoss] = []
        self.wide: list[str] = []

    def run(self) -> Complete:
        for let in self._written.forward:
            self._settle(Quantity(let.name, let.value, let.indices, let.axes))
        derived = self._derive()
        for entry in self._written.backward:
            given = entry.name, entry.value, entry.indices, entry.axes
            if entry.is_override:
                self._report(Quantity(*given))
                continue
            found = derived.get(entry.input)
            others = () if found is None else (_with_indices(found, entry.indices),)
            self._settle(Quantity(*given, True, entry.is_derived, others))
        return self._rule

    def _derive(self) -> Mapping[str, Definition]:
        """The cotangents of the forward (of the surrogates) as selected; where a series
        was selected, those of the function itself.
        """
        written, chosen = self._written, self._rule
        if not self._is_elementwise:
            return _derived_from(written, chosen)
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

    # --- one quantity ----------------------------------------------------------------------

    def _settle(self, of: Quantity) -> None:
        """Replace a value by its selected form."""
        written = tidy(of.value) if self._is_elementwise else of.value
        self._put(of, written)
        if of.name in self._original.exacts:
            self._report(of)
        elif is_real(written) and (self._is_elementwise or children(written)):
            try:
                self._put(of, self._select(of, written))
            except (NotImplementedError, OutOfRange):
                # a part that neither balls nor the model know; an element beyond an axis
                return

    def _put(self, of: Quantity, value: Expr) -> None:
        before, named = self._rule, self._rule.values[of.name]
        self._rule = before.redefine(replace(named, value=value))
        if self._rule != before:
            self._chosen.clear()

    def _select(self, of: Quantity, written: Expr) -> Expr:
        if not self._is_elementwise and not self._has_candidates(of, written):
            return written
        trials = tuple(self._trials(of))
        if not trials or size(trials[0].meaning) < _LEAST:
            return written
        contest = Contest(trials, written)
        choice = contest.choose(())
        if not choice.is_good or (of.is_derived and self._is_elementwise):
            choice = self._search_forms(contest, of, choice)
        if self._is_elementwise:
            choice = self._mend(contest, of, choice)
        elif of.is_derived and choice.selected.lost:
            mended = with_vanishing_products(contest.trials, choice.selected)
            choice = contest.choose(self._count(mended), choice.selected)
        choice = choice.settle()
        self._record(of, contest, choice)
        return choice.selected.form

    def _has_candidates(self, of: Quantity, written: Expr) -> bool:
        """False for most values of indexed rules, such as contractions, which have one
        form.
        """
        values = (written, *(let.value for let in self._rule.forward))
        if of.is_derived and is_at_stake(*values):
            return True  # a product with a 0 of a condition may overflow
        near = self._proposals.near(written, of, self._rule)
        far = self._proposals.far(written, of, self._rule)
        return any(True for _ in near) or any(True for _ in far)

    def _search_forms(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """The choice among the forms that the search finds from the choice so far,
        repeated until the form is good or stays the same.
        """
        for _ in range(_ROUNDS):
            held = choice.selected
            near = self._proposals.near(held.form, of, self._rule)
            choice = contest.choose(self._count(near), held)
            is_free = of.is_derived and self._is_elementwise
            if not choice.is_good and not is_free:
                far = self._proposals.far(held.form, of, self._rule)
                choice = contest.choose(self._count(far), choice.selected)
            if choice.selected is held or (choice.is_good and not is_free):
                break
        return choice

    def _mend(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """Further candidates for a form still bad: reordered products, a series."""
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

    def _count(self, forms: Iterable[Expr]) -> Iterator[Expr]:
        """The forms, each of which takes a step for each of its nodes."""
        for form in forms:
            self._effort.need(size(form))
            yield form

    # --- where it is measured --------------------------------------------------------------

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        if self._is_elementwise:
            return scalar_samples(self._original)
        return samples(self._written)

    @cached_property
    def _finite(self) -> tuple[Sample, ...]:
        """The samples restricted to finite outputs, where indexed gradients are
        measured.
        """
        if self._is_elementwise:
            return self.samples
        found = (where_finite(sample, self._rule) for sample in self.samples)
        return tuple(sample for sample in found if len(sample.points))

    @cached_property
    def _coincident(self) -> tuple[Sample, ...]:
        return tuple(coincident_samples(self._original))

    def _trials(
        self, of: Quantity, samples: tuple[Sample, ...] | None = None
    ) -> Iterator[Trial]:
        """Trials of the first and the last element in every sample."""
        usual = self._finite if of.is_gradient else self.samples
        for sample in usual if samples is None else samples:
            exact, machine = self._exact(sample)
            every = list(places(of.axes, sample.sizes))
            for at in dict.fromkeys((*every[: _ELEMENTS - 1], *every[-1:])):
                name = element(of.name, at)
                if name in exact:
                    env = dict(zip(of.indices, at, strict=True))
                    close = partial(self._close, sample, env)
                    meaning = exact.close(Ref(name))
                    self._effort.need(self._steps(meaning))
                    yield Trial(meaning, sample.points, machine, close)

    def _steps(self, meaning: Expr) -> int:
        """The steps that exact values take. A rewritten formula is written out in the
        end, so one that grows by being written out is not searched.
        """
        return weight(meaning, {}) if self._is_elementwise else size(meaning)

    def _exact(self, sample: Sample) -> tuple[Names, Machine]:
        """The rule as written, and one machine for all candidates at the points."""
        if id(sample) not in self._known:
            scalars = sample.written_out(self._written, sample.exact)
            machine = Machine(sample.points.columns, sample.work)
            self._known[id(sample)] = Names(scalars), machine
        return self._known[id(sample)]

    def _close(self, sample: Sample, env: Mapping[str, int], form: Expr) -> Expr:
        """A form as a target evaluates it, at an element, in inputs alone."""
        held = 0 if self._is_elementwise else id(sample)
        if held not in self._chosen:
            scalars = sample.written_out(self._rule, sample.evaluated)
            self._chosen[held] = Names(scalars)
        chosen = self._chosen[held]
        if self._is_elementwise:
            return chosen.close(form)
        closed = chosen.close(sample.evaluated.expand(form, env))
        for name in sorted(names(closed) - sample.points.columns.keys()):
            raise OutOfRange(name)
        return closed

    def _holds(self, condition: Expr) -> bool:
        """True if a rewrite's condition holds wherever the outputs are defined. (In an
        indexed rule it would be one condition for each index.)
        """

        def values(sample: Sample) -> Any:
            machine = self._exact(sample)[1]
            found = machine.run(self._close(sample, {}, condition))
            return found[sample.points.defined]

        return self._is_elementwise and all(values(s).all() for s in self.samples)

    # --- what is reported ------------------------------------------------------------------

    def _report(self, of: Quantity) -> None:
        """Report the float32 accuracy loss of overrides and exact definitions, which
        stay as written.
        """
        form = tidy(of.value)
        if self._is_elementwise and is_real(form):
            try:
                written = Contest(tuple(self._trials(of)), form)
            except NotImplementedError:
                return
            self.losses += accuracy_loss(of.name, written.trials, written.written)

    def _record(self, of: Quantity, contest: Contest, choice: Choice) -> None:
        """Record a rewrite of the author's form; of a derived form only if it is
        better.
        """
        before, after = choice.written, choice.selected
        is_told = before.faults != after.faults or not of.is_derived
        lets = {let.name: let for let in self._rule.forward if let.name in self._hidden}
        forms = (inline_lets(form, lets, Scope()) for form in (before.form, after.form))
        old, new = map(show, forms)
        owner = of.name.partition("'")[0]
        if before.form != after.form and (is_told or not self._is_elementwise):
            why = reason(contest.trials, choice)
            self.rewrites.append(Rewrite(owner, old, new, why))
        if not self._is_elementwise:
            self.losses += filter(_is_told, accuracy_loss(owner, contest.trials, after))
        else:
            note(Tried(choice, contest.measured))
            wide = self._is_wide(of, contest.trials[0], after)
            if wide:
                self.wide.append(of.name)
                self.rewrites.append(Rewrite(of.name, new, new, _WIDE))
            found = accuracy_loss(owner, contest.trials, after, wide)
            self.losses += found or self._loss_beside(of, owner, after.form, wide)

    def _loss_beside(
        self, of: Quantity, owner: str, form: Expr, wide: bool
    ) -> list[AccuracyLoss]:
        """The accuracy loss beside points at which inputs coincide, in either format."""
        for trial in self._trials(of, self._coincident):
            is_wide = wide and trial.machine.work is np.float32
            candidate = Candidate(form, (trial.score(form),))
            found = accuracy_loss(owner, (trial,), candidate, is_wide)
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

    def undefined_losses(self, done: Rule) -> Iterator[AccuracyLoss]:
        """The gradients of the finished indexed rule that are NaN at ordinary inputs at
        which the outputs are numbers.
        """
        values = {
            entry.name: entry.value
            for entry in done.backward
            if not entry.is_override
            and any(isinstance(n, Apply) and n.op in _RISKY for n in nodes(entry.value))
        }
        for sample in self._finite if values and not self._is_elementwise else ():
            scalars = sample.written_out(done, sample.evaluated)
            columns = dict(sample.points.columns)
            for name in sample.points.upstream & {*columns}:
                columns[name] = np.ones_like(columns[name])  # not 0 times infinity
            close, machine = Names(scalars), Machine(columns)
            inputs = {variable.name for variable in scalars.inputs}
            plain = _is_plain(sample) & sample.points.defined
            for entry in scalars.backward:
                name = entry.name.partition("[")[0]
                if name in values:
                    form = close.close(entry.value)
                    lost = np.flatnonzero(np.isnan(machine.run(form)) & plain)
                    if len(lost):
                        row = sample.points.rows[int(lost[0])]
                        point = tuple((n, row[n]) for n in row if n in inputs)
                        each = (
                            (node, machine.run(node)[lost[0]]) for node in nodes(form)
                        )
                        culprit = next(node for node, value in each if np.isnan(value))
                        values.pop(name)
                        yield AccuracyLoss(name, "undefined", culprit, point, nan, nan)


_WIDE = "computed in float64, at twice the bytes: no float32 form is good"


def _derived_from(written: Rule, chosen: Rule) -> Mapping[str, Definition]:
    """The derivative of an indexed forward as selected. Where a maximum was factored
    out (of a norm, of exponents) it is that of the forward as written, since the
    maximum cancels.
    """
    forward = tuple(
        new if _maxima(new) <= _maxima(old) else old
        for old, new in zip(written.forward, chosen.forward, strict=True)
    )
    if forward == written.forward:
        return {}
    try:
        return indexed_cotangents(chosen.redefine(*forward))
    except Underivable:
        return {}


def _maxima(let: Definition) -> int:
    return sum(
        isinstance(node, Reduce | Apply) and node.op in ("max", "peak")
        for node in nodes(let.value)
    )


def _with_indices(entry: Definition, indices: tuple[str, ...]) -> Expr:
    """Its value with the free indices of another entry of the same input."""
    at = {old: Idx(new) for old, new in zip(entry.indices, indices, strict=True)}
    return place(entry.value, at, Scope(indices)) if at else entry.value


def _is_much(before: Candidate, after: Candidate) -> bool:
    """True if more is repaired than a few points far out."""
    pairs = zip(before.faults, after.faults, strict=True)
    core, bad, *others = (was - now for was, now in pairs)
    return core > 0 or bad > _FEW or any(number > 0 for number in others)


def _is_plain(sample: Sample) -> Any:
    """The points at which every floating input is 0 or of ordinary magnitude."""
    plain = np.ones(len(sample.points), dtype=bool)
    for name in sample.points.floating:
        size = np.abs(sample.points.columns[name])
        plain &= (size == 0) | (size >= 1 / _PLAIN) & (size <= _PLAIN)
    return plain


def _is_told(loss: AccuracyLoss) -> bool:
    """True for lost digits of no small value: any softmax loses those of small ones."""
    error = abs(loss.value - loss.true)
    return loss.kind == "saturation" and error > 0.01 * abs(loss.true) > 1e-5
