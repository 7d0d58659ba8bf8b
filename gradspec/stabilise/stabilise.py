"""Choose how each expression of a rule is evaluated: the same function, measured.

Forward first, then (on the forward as chosen) the backward; overrides stay as they are.
Last, branches of conditionals are guarded against points at which they are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from gradspec.derive.vjp import cotangents
from gradspec.ir.calls import calls_surrogate, expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import (
    Backward,
    CheckedRule,
    Declared,
    Derived,
    Harm,
    Let,
    Override,
    Rewrite,
    Rule,
)
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import size
from gradspec.stabilise import wide, widening
from gradspec.stabilise.anchored import Mender
from gradspec.stabilise.choose import Candidate, Choice, choose, cost
from gradspec.stabilise.dead import without_dead_locals
from gradspec.stabilise.directed import forms
from gradspec.stabilise.exact import restored
from gradspec.stabilise.faults import concern
from gradspec.stabilise.further import Ground, further
from gradspec.stabilise.guard import guarded
from gradspec.stabilise.harm import harm
from gradspec.stabilise.inlined import without_calls
from gradspec.stabilise.last_look import in_written_order, last_look
from gradspec.stabilise.measure import Score, Trial, is_real
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.part_way import PartWay
from gradspec.stabilise.points import DOUBLE, Points, points
from gradspec.stabilise.polished import polished
from gradspec.stabilise.propose import proposals
from gradspec.stabilise.reason import gains, reason
from gradspec.stabilise.rederived import rederived
from gradspec.stabilise.referee import judged
from gradspec.stabilise.saturate import Saturation
from gradspec.stabilise.search import FEW, Search
from gradspec.stabilise.searching import is_severe, searched
from gradspec.stabilise.slopes import by_parts
from gradspec.stabilise.so_far import keep
from gradspec.stabilise.tried import Tried, forms_of, overhearing
from gradspec.stabilise.with_axes import with_axes

_GROWTH, _ROOM = 1.25, 20.0
"""How much more a derived form may cost than what is written."""
_ROUNDS = 4
_Pair: TypeAlias = tuple[Trial, Trial]


def for_target(shared: CheckedRule, target: str) -> CheckedRule:
    """The forms that measure best on a target: ``shared``, those of all targets, or
    better ones where it is known to get a function in them wrong."""
    if not shared.rule.is_elementwise or not concern(shared.rule, target):
        return shared
    moved = tuple(r for r in shared.rewrites if r.before != r.after)
    own = stabilise(replace(shared, rewrites=moved, wide=()), target)
    return shared if (own.rule, own.wide) == (shared.rule, shared.wide) else own


def stabilise(checked: CheckedRule, target: str = "") -> CheckedRule:
    """The rule with its expressions in the forms that measure best."""
    if not checked.rule.is_elementwise:
        return with_axes(checked)
    sample = points(checked.rule)
    if not len(sample):
        return checked
    rule = without_calls(checked.rule)
    work = _Work(rule, checked.rule, sample, target)
    forward = work.forward()
    backward = work.backward(forward)
    forward = tuple(replace(x, value=work.last(x.name, x.value)) for x in forward)
    done = replace(rule, forward=forward, backward=backward)
    safe = guarded(without_dead_locals(rule, wide.recomputing(done, work.wide)), sample)
    return replace(
        checked,
        rule=restored(rule, safe),
        rewrites=(*checked.rewrites, *work.rewrites),
        harms=tuple(work.harms),
        wide=tuple(work.wide),
    )


class _Work:
    """Chooses expression by expression; remembers what has been chosen so far."""

    def __init__(self, rule: Rule, original: Rule, sample: Points, target: str) -> None:
        self._rule, self._target = rule, target
        self._calls_surrogate = calls_surrogate(original)
        self._original = original
        self._sample = sample
        self._machine = Machine(sample.columns, np.float32, target)
        self._fine = points(original, DOUBLE)
        self._double = Machine(self._fine.columns, np.float64, target)
        self._search = Search(self._holds)
        self._saturation = Saturation(sample)
        self._written = Names(rule)
        self._chosen = Names(rule)
        self._seen = Names(rule, rule.exacts)  # what others may be made of
        self._plain: dict[str, Expr] = {}  # forms that rewrites know: unpolished ones
        self._straight: dict[str, Expr] = {}  # those that the wider search began with
        self._parted: dict[str, Expr] = {}  # of inputs, through parts of one variable
        self._upstream = frozenset(
            f"d{o.name}" for o in rule.outputs if o.takes_gradient
        )
        self._results = frozenset(
            [o.name for o in rule.outputs] + [f"d{i.name}" for i in rule.inputs]
        )
        self._usual = tuple(wide.usual(rule, p) for p in (sample, self._fine))
        self._mender = Mender.of(rule, self._chosen.close, self._search, self._usual)
        self._series: dict[str, Expr] = {}
        self._forms: dict[str, Expr] = {}
        self._done: list[str] = []
        self._heard: list[Tried] = []
        self.rewrites: list[Rewrite] = []
        self.harms: list[Harm] = []
        self.wide: list[str] = []

    def forward(self) -> tuple[Let, ...]:
        lets = []
        for let in self._rule.forward:
            value = self._choose(let.name, let.value, ())
            self._set(let.name, value)
            lets.append(replace(let, value=value))
        return tuple(lets)

    def backward(self, forward: tuple[Let, ...]) -> tuple[Backward, ...]:
        plain = tuple(
            replace(x, value=self._plain.get(x.name, x.value)) for x in forward
        )
        derived = self._derived(plain)
        self._parted = by_parts(self._rule, plain)
        entries: list[Backward] = []
        for variable, entry in zip(self._rule.inputs, self._rule.backward, strict=True):
            name = f"d{variable.name}"
            match entry:
                case Derived(value=value) | Declared(value=value):
                    known = (derived, self._parted)
                    others = [d[variable.name] for d in known if variable.name in d]
                    value = self._choose(name, value, tuple(others))
                    self._set(name, value)
                    entries.append(replace(entry, value=self.last(name, value)))
                case Override(value=value):
                    self._measure(name, value)
                    entries.append(entry)
                case _:
                    entries.append(entry)
        return tuple(entries)

    def _derived(self, forward: tuple[Let, ...]) -> dict[str, Expr]:
        """That of the forward (of the surrogates) as chosen, or of the original's."""
        if self._calls_surrogate:
            return {n: expand(e) for n, e in cotangents(self._original).items()}
        surrogates = tuple(
            replace(s, value=self._choose("", s.value, ()))
            for s in self._rule.surrogates
        )
        return rederived(self._rule, forward, surrogates)

    def _choose(self, name: str, value: Expr, others: tuple[Expr, ...]) -> Expr:
        """The best form of ``value``; ``others`` are known to be equal to it."""
        written = tidy(value)
        if name in self._rule.exacts:
            self._measure(name, value)
            return written
        meaning = self._written.close(value)
        if not is_real(written) or size(meaning) < 3:
            return written
        try:
            trial = Trial(meaning, self._sample, self._machine)
            fine = Trial(meaning, self._fine, self._double)
            first = self._candidate(written)
            choice = self._chosen_from(name, (trial, fine), written, others)
        except NotImplementedError:  # a part that neither balls nor the model know
            return written
        if choice.form != written:
            self._record(name, (trial, fine), first, choice)
        self._tell(name, choice.form)
        form = self._mended(name, (trial, fine), choice, written)
        form = self._once_more(name, (trial, fine), replace(choice, form=form))
        self._tell(name, form)
        self._blame(name, trial, form, trial.score(self._chosen.close(form)))
        if name in self._results and not self._calls_surrogate:
            self._weigh(name, (trial, fine), replace(choice, form=form))
        self._done.append(name)
        self._tell(name, self.last(name, choice.form))
        return choice.form

    def _tell(self, name: str, form: Expr) -> None:
        """What is chosen so far, in case that there is time for no more."""
        self._forms |= {name: form} if name else {}
        told = tuple(self.wide), tuple(self.rewrites), tuple(self.harms)
        keep(PartWay(self._rule, tuple(self._forms.items()), tuple(self._done), *told))

    def _chosen_from(
        self, name: str, trials: _Pair, written: Expr, others: tuple[Expr, ...]
    ) -> Choice:
        """The best form found from what is written, from that, and so on until nothing
        better is found: what is stabilised stays as it is."""
        form = written
        ground = self._ground(name, trials)
        rounds: list[Choice] = []
        is_searched = False
        with overhearing() as self._heard:
            while len(rounds) < _ROUNDS:
                near = self._candidates(self._near(name, form, others))
                far = self._candidates(self._far(name, trials, form, others))
                found = choose(trials[0], self._candidate(form), near, far, trials[1])
                is_poor = is_severe(found.score) or ground.is_lost(found.form)
                if found.form == form and is_poor and not is_searched:
                    starts = tuple(map(self._seen.close, (form, written, *others)))
                    self._straight[name] = form
                    work = self._saturation, trials, found, starts
                    found = searched(*work, self._candidate, self._upstream)
                    is_searched = True
                rounds.append(found)
                if found.form == form:
                    break
                form = found.form
        best = further(ground, rounds[-1], self._heard, self._candidate)
        best = in_written_order(ground, best, self._candidate)
        self._plain[name] = best.form
        return polished(trials, self._usual, best, self._candidate).since(rounds[0])

    def last(self, name: str, value: Expr) -> Expr:
        """The form chosen for a name, with its series (nothing is derived of those)."""
        return self._series.get(name, value)

    def _mended(self, name: str, trials: _Pair, choice: Choice, written: Expr) -> Expr:
        """The form chosen, with a series where it cancels."""
        plain = self._plain.get(name, choice.form)
        if not name:
            return choice.form
        parted = self._parted.get(name.removeprefix("d"), plain)
        starts = plain, self._straight.get(name, plain), parted
        found = self._mender.best(starts, choice.form, written, trials)
        if found is None:
            return choice.form
        self._put(name, written, *found)
        return found[0]

    def _put(self, name: str, written: Expr, form: Expr, why: str) -> None:
        """A last form, in place of whatever was chosen."""
        self._series[name] = form
        self.rewrites = [r for r in self.rewrites if r.name != name]
        if form != written:
            self.rewrites.append(Rewrite(name, show(written), show(form), why))

    def _once_more(self, name: str, trials: _Pair, choice: Choice) -> Expr:
        """With a series what stands beside it may be poor; at more points another form."""
        ground = self._ground(name, trials)
        if name in self._series:
            self._series[name] = further(ground, choice, (), self._candidate).form
        form = self._series.get(name, choice.form)
        if name not in self._results:
            return form
        work = ground, self._original, replace(choice, form=form), self._heard
        form, why = judged(*work, self._candidate, self._target)
        if why:
            self._put(name, self._heard[0].written, form, why)
        return form

    def _blame(self, name: str, trial: Trial, form: Expr, score: Score) -> None:
        """What is wrong with the form chosen, if that is known."""
        if name:
            found = harm(name, trial, self._machine, self._chosen.close(form), score)
            self.harms += [found] if found else []

    def _measure(self, name: str, value: Expr) -> None:
        """Overrides, exact definitions stay; what they do in float32 is told."""
        form = tidy(value)
        if is_real(form):
            with suppress(NotImplementedError):
                closed = self._chosen.close(form)
                trial = Trial(self._written.close(value), self._sample, self._machine)
                self._blame(name, trial, form, trial.score(closed))

    def _set(self, name: str, value: Expr) -> None:
        self._chosen.set(name, value)
        self._seen.set(name, self._plain.get(name, value))

    def _weigh(self, name: str, trials: _Pair, choice: Choice) -> None:
        """Whether a result is to be computed in float64, and in which form then."""
        form, ground = choice.form, self._ground(name, trials)
        closed = self._chosen.close(form)
        why = widening.why(ground, self._original, closed, self._target)
        if not why:
            return
        forms = forms_of(self._heard, self._seen.close)
        work = self._original, closed, forms, self._target
        far = ground.widened(widening.lost(ground, *work), self._target)
        look = self._heard, self._candidate, forms, self._target
        best, is_wide = last_look(far, self._original, choice, *look).form, True
        if best != form:
            self._series[name] = best
            asked = self._original, self._chosen.close(best), self._target
            if best not in far.peeled(closed):
                is_wide, why = widening.still(ground, *asked, why)
        self.wide += [name] if is_wide else []
        self.rewrites.append(Rewrite(name, show(form), show(best), why))

    def _ground(self, name: str, trials: _Pair) -> Ground:
        """Where ``name`` is measured: derived gradients at extreme ratios, too."""
        is_derived = isinstance(self._entry(name), Derived)
        near = Ground(trials, self._usual, self._chosen.close, is_derived)
        return near.beyond(self._original, self._target)

    def _candidate(self, form: Expr) -> Candidate:
        return Candidate(form, self._chosen.close(form))

    def _candidates(self, found: Iterator[Expr]) -> Iterator[Candidate]:
        seen: dict[Expr, None] = {}
        for form in found:
            if form not in seen:
                seen[form] = None
                yield self._candidate(form)

    def _near(
        self, name: str, written: Expr, others: tuple[Expr, ...]
    ) -> Iterator[Expr]:
        """Rewrites; of what we derived ourselves also the derivative of the forward as
        chosen, and all of it gathered."""
        if isinstance(self._entry(name), Derived):
            yield from self._others((*others, written))
        else:
            yield from forms(self._search, written)

    def _far(
        self, name: str, trials: _Pair, written: Expr, others: tuple[Expr, ...]
    ) -> Iterator[Expr]:
        """The same of what the user wrote, and with names put in place, if that is not
        good as it is. Nothing that is much longer."""
        whole = self._seen.close(written)
        closed = self._chosen.close(written)
        single, double = trials
        score = single.score_with_noise(closed)
        good = score.is_good and not score.noisy and double.score(closed).is_good
        if isinstance(self._entry(name), Derived) or good:
            return
        most = _GROWTH * cost(whole) + _ROOM
        yield from forms(self._search, whole)
        found = self._others((whole, *others))
        yield from (form for form in found if cost(form) <= most)

    def _others(self, starts: tuple[Expr, ...]) -> Iterator[Expr]:
        for start in dict.fromkeys(starts):
            yield from forms(self._search, start)
            for proposal in proposals(start, self._upstream):
                yield from self._search.forms(proposal, FEW)

    def _holds(self, condition: Expr) -> bool:
        """Whether a rewrite's condition is true at all points."""
        return bool(self._machine.run(self._chosen.close(condition)).all())

    def _record(
        self, name: str, trials: _Pair, first: Candidate, choice: Choice
    ) -> None:
        """Told of what the user wrote; of a derived form only if it gained accuracy."""
        entry = self._entry(name)
        if name and (gains(choice) or not isinstance(entry, Derived)):
            single, double = trials
            why = reason(single, first.closed, choice, double)
            self.rewrites.append(
                Rewrite(name, show(first.form), show(choice.form), why)
            )

    def _entry(self, name: str) -> Backward | None:
        names_of = (f"d{variable.name}" for variable in self._rule.inputs)
        return dict(zip(names_of, self._rule.backward, strict=True)).get(name)
