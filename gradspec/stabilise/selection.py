"""Selection of the forms of a rule's values, one after the other: what is common to
rules with axes and without (`scalars`, `arrays`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from gradspec.ir.elements import OutOfRange, element, places
from gradspec.ir.expr import Expr, Idx, Ref, show
from gradspec.ir.rule import AccuracyLoss, Complete, Definition, Rewrite, Rule
from gradspec.ir.walk import size
from gradspec.stabilise.accuracy_model import Trial, is_real
from gradspec.stabilise.choice import Choice, Contest, Proposals
from gradspec.stabilise.explanation import reason
from gradspec.stabilise.names import Names, Quantity, Scope, inline_lets, place
from gradspec.stabilise.reductions import IndexedProposals, with_norms
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.measured import Points, Sample

_ROUNDS = 3
_LEAST = 3  # nodes of a formula that may lose anything
_ELEMENTS = 2  # of a value that are measured at one choice of sizes


class Selection(ABC):
    """Selects value by value, given the selections so far. ``rule`` has no calls, which
    ``original`` has; ``hidden`` are locals that are put in place again in the end.
    """

    _proposals: Proposals | IndexedProposals

    def __init__(
        self, rule: Complete, original: Rule, effort: Effort, hidden: tuple[str, ...]
    ) -> None:
        self._written = self._rule = rule
        self._hidden = hidden
        self._effort = effort
        self._original = original
        self._known: dict[int, tuple[Names, Machine]] = {}
        self._chosen: dict[int, Names] = {}
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
                self.losses += self._losses(Quantity(*given))
                continue
            found = derived.get(entry.input)
            others = () if found is None else (_with_indices(found, entry.indices),)
            self._settle(Quantity(*given, True, entry.is_derived, others))
        return self._rule

    # --- what depends on axes --------------------------------------------------------------

    @property
    @abstractmethod
    def samples(self) -> tuple[Sample, ...]:
        """The points at which values are measured."""

    @property
    def points(self) -> Points | None:
        """Those of an elementwise rule."""
        return None

    @abstractmethod
    def _derive(self) -> Mapping[str, Definition]:
        """The cotangents of the forward as selected, by input."""

    def _start(self, written: Expr) -> Expr:
        """The form that counts as the one written."""
        return written

    def _has_candidates(self, of: Quantity, written: Expr) -> bool:
        """False if a value has one form."""
        return True

    def _is_free(self, of: Quantity) -> bool:
        """True if a shorter form is looked for although one is good."""
        return False

    @abstractmethod
    def _mend(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """The choice among further candidates for a form still bad."""

    @abstractmethod
    def _places(self, of: Quantity) -> tuple[Sample, ...]:
        """The samples at which a quantity is measured."""

    @abstractmethod
    def _steps(self, meaning: Expr) -> int:
        """The steps that exact values take."""

    @abstractmethod
    def _close(self, sample: Sample, env: Mapping[str, int], form: Expr) -> Expr:
        """A form as a target evaluates it, at an element, in inputs alone."""

    def _losses(self, of: Quantity) -> Iterable[AccuracyLoss]:
        """The losses of a value that stays as written."""
        return ()

    def _is_told(self, of: Quantity, choice: Choice) -> bool:
        """True if the author is told that another form was selected."""
        return True

    @abstractmethod
    def _note(self, of: Quantity, contest: Contest, choice: Choice, new: str) -> None:
        """Report what is lost all the same; ``new`` is the selected form as text."""

    def undefined_losses(self, done: Rule) -> Iterator[AccuracyLoss]:
        """The gradients of the finished rule that are NaN at ordinary inputs."""
        return iter(())

    # --- one quantity ----------------------------------------------------------------------

    def _settle(self, of: Quantity) -> None:
        """Replace a value by its selected form."""
        written = self._start(of.value)
        if of.is_derived:
            written = with_norms(written, (let.value for let in self._rule.forward))
        self._put(of, written)
        if of.name in self._original.exacts:
            self.losses += self._losses(of)
        elif is_real(written):
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
        if not self._has_candidates(of, written):
            return written
        trials = tuple(self._trials(of))
        if not trials or size(trials[0].meaning) < _LEAST:
            return written
        contest = Contest(trials, written)
        choice = contest.choose(())
        if not choice.is_good or self._is_free(of):
            choice = self._search_forms(contest, of, choice)
        choice = self._mend(contest, of, choice).settle()
        self._record(of, contest, choice)
        return choice.selected.form

    def _search_forms(self, contest: Contest, of: Quantity, choice: Choice) -> Choice:
        """The choice among the forms that the search finds from the choice so far,
        repeated until the form is good or stays the same.
        """
        for _ in range(_ROUNDS):
            held = choice.selected
            near = self._proposals.near(held.form, of, self._rule)
            choice = contest.choose(self._count(near), held)
            is_free = self._is_free(of)
            if not choice.is_good and not is_free:
                far = self._proposals.far(held.form, of, self._rule)
                choice = contest.choose(self._count(far), choice.selected)
            if choice.selected is held or (choice.is_good and not is_free):
                break
        return choice

    def _count(self, forms: Iterable[Expr]) -> Iterator[Expr]:
        """The forms, each of which takes a step for each of its nodes."""
        for form in forms:
            self._effort.need(size(form))
            yield form

    # --- where it is measured --------------------------------------------------------------

    def _trials(
        self, of: Quantity, samples: tuple[Sample, ...] | None = None
    ) -> Iterator[Trial]:
        """Trials of the first and the last element in every sample."""
        for sample in self._places(of) if samples is None else samples:
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

    def _exact(self, sample: Sample) -> tuple[Names, Machine]:
        """The rule as written, and one machine for all candidates at the points."""
        if id(sample) not in self._known:
            scalars = sample.written_out(self._written, sample.exact)
            machine = Machine(sample.points.columns, sample.work)
            self._known[id(sample)] = Names(scalars), machine
        return self._known[id(sample)]

    def _selected_values(self, sample: Sample, key: int) -> Names:
        """The values selected so far; ``key`` tells those of samples apart."""
        if key not in self._chosen:
            scalars = sample.written_out(self._rule, sample.evaluated)
            self._chosen[key] = Names(scalars)
        return self._chosen[key]

    def _record(self, of: Quantity, contest: Contest, choice: Choice) -> None:
        """Record a rewrite of the author's form."""
        before, after = choice.written, choice.selected
        lets = {let.name: let for let in self._rule.forward if let.name in self._hidden}
        forms = (inline_lets(form, lets, Scope()) for form in (before.form, after.form))
        old, new = map(show, forms)
        if before.form != after.form and self._is_told(of, choice):
            why = reason(contest.trials, choice)
            self.rewrites.append(Rewrite(of.owner, old, new, why))
        self._note(of, contest, choice, new)


def _with_indices(entry: Definition, indices: tuple[str, ...]) -> Expr:
    """Its value with the free indices of another entry of the same input."""
    at = {old: Idx(new) for old, new in zip(entry.indices, indices, strict=True)}
    return place(entry.value, at, Scope(indices)) if at else entry.value
