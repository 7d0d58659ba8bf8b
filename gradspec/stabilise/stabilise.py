"""How each expression of an elementwise rule is evaluated: the same function, measured.

The passes, for each quantity: points and exact values → as written, if that is good →
candidates → choice → products that leave the range (`ranges`) → series (`series`) → SymPy
and regimes (`candidates`) → float64 (`precision`). Forward first, then, on the forward as
chosen, the cotangents; overrides stay as they are. Last, branches of conditionals are
guarded (`guards`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gradspec.derive.vjp import cotangents
from gradspec.ir.calls import calls_surrogate, expand
from gradspec.ir.expr import Expr
from gradspec.ir.rule import (
    AccuracyLoss,
    Backward,
    CheckedRule,
    Declared,
    Derived,
    Let,
    Override,
    Rewrite,
    Rule,
)
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import size
from gradspec.stabilise import candidates, precision
from gradspec.stabilise.accuracy_model import Quantity, Trial, is_real
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.choice import Choice, Contest, Tried, note
from gradspec.stabilise.cost_model import cost
from gradspec.stabilise.explanation import accuracy_loss, reason
from gradspec.stabilise.guards import guarded
from gradspec.stabilise.indexed import stabilise_indexed
from gradspec.stabilise.matching import Search
from gradspec.stabilise.names import (
    Names,
    rederived,
    restored,
    without_calls,
    without_dead_locals,
)
from gradspec.stabilise.ranges import with_ordered_products, with_vanishing_products
from gradspec.stabilise.sampling import DOUBLE, Points, points
from gradspec.stabilise.series import with_series

_GROWTH, _ROOM = 1.25, 20.0
"""How much more a form with locals put in may cost than what the author wrote."""

_ROUNDS = 3
_LEAST = 3  # nodes of a formula that may lose anything


def stabilise(checked: CheckedRule) -> CheckedRule:
    """The rule with its expressions in the forms that measure best."""
    if not checked.rule.is_elementwise:
        return stabilise_indexed(checked)
    sample, fine = points(checked.rule), points(checked.rule, DOUBLE)
    if not len(sample):
        return checked
    rule = without_calls(checked.rule)
    work = _Stabiliser(rule, checked.rule, sample, fine)
    forward = work.forward()
    done = replace(rule, forward=forward, backward=work.backward(forward))
    done = precision.recomputing(done, work.wide)
    safe = guarded(without_dead_locals(rule, done), sample)
    return replace(
        checked,
        rule=restored(rule, safe),
        rewrites=(*checked.rewrites, *work.rewrites),
        losses=tuple(work.losses),
        wide=tuple(work.wide),
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known of a quantity beside its definition: whether it is a cotangent that we
    derived, which may take any form, and other forms of it to begin with."""

    is_derived: bool = False
    others: tuple[Expr, ...] = ()


class _Stabiliser:
    """Chooses expression by expression; knows what has been chosen so far."""

    def __init__(
        self, rule: Rule, original: Rule, sample: Points, fine: Points
    ) -> None:
        self._rule, self._original = rule, original
        self._formats = (
            (sample, Machine(sample.columns, np.float32)),
            (fine, Machine(fine.columns, np.float64)),
        )
        self._search = Search(self._holds)
        self._written = Names(rule)
        self._chosen = Names(rule)
        self._visible = Names(rule, rule.exacts)  # what may be put in place of a name
        self._upstream = sample.upstream
        self._results = frozenset(
            [o.name for o in rule.outputs] + [f"d{i.name}" for i in rule.inputs]
        )
        self._plain: dict[str, Expr] = {}  # selected forms without their series
        self.rewrites: list[Rewrite] = []
        self.losses: list[AccuracyLoss] = []
        self.wide: list[str] = []

    def forward(self) -> tuple[Let, ...]:
        lets = []
        for let in self._rule.forward:
            value = self._choose(let.name, let.value, _Kind())
            self._set(let.name, value)
            lets.append(replace(let, value=value))
        return tuple(lets)

    def backward(self, forward: tuple[Let, ...]) -> tuple[Backward, ...]:
        derived = self._derived(forward)
        entries: list[Backward] = []
        for variable, entry in zip(self._rule.inputs, self._rule.backward, strict=True):
            name = f"d{variable.name}"
            match entry:
                case Derived(value=value) | Declared(value=value):
                    others = (derived.get(variable.name),)
                    known = tuple(form for form in others if form is not None)
                    kind = _Kind(isinstance(entry, Derived), known)
                    value = self._choose(name, value, kind)
                    self._set(name, value)
                    entries.append(replace(entry, value=value))
                case Override(value=value):
                    self._measure(name, value)
                    entries.append(entry)
                case _:
                    entries.append(entry)
        return tuple(entries)

    def _derived(self, forward: tuple[Let, ...]) -> dict[str, Expr]:
        """The cotangents of the forward (of the surrogates) as chosen; of what has a
        series, those of the function itself."""
        if calls_surrogate(self._original):
            return {n: expand(e) for n, e in cotangents(self._original).items()}
        plain = (replace(x, value=self._plain.get(x.name, x.value)) for x in forward)
        return rederived(self._rule, tuple(plain))

    # --- one quantity ----------------------------------------------------------------------

    def _choose(self, name: str, value: Expr, kind: _Kind) -> Expr:
        """The form selected for ``value``."""
        written = tidy(value)
        if name in self._rule.exacts:
            self._measure(name, value)
            return written
        meaning = self._written.close(value)
        if not is_real(written) or size(meaning) < _LEAST:
            return written
        try:
            return self._selected(name, self._quantity(meaning), written, kind)
        except NotImplementedError:  # a part that neither balls nor the model know
            return written

    def _selected(
        self, name: str, quantity: Quantity, written: Expr, kind: _Kind
    ) -> Expr:
        contest = Contest(quantity.scores, written)
        choice = contest.choose(())
        if kind.is_derived or not choice.is_good:
            choice = self._searched(contest, kind, choice)
        for mend in (with_vanishing_products, with_ordered_products, with_series):
            self._plain[name] = choice.selected.form
            if not choice.is_good:
                best = sorted(contest.measured, key=lambda found: found.faults)
                starts = dict.fromkeys((choice.selected, choice.written, *best[:2]))
                found = [form for start in starts for form in mend(quantity, start)]
                choice = contest.choose(found, choice.selected)
                if choice.is_good and kind.is_derived and mend is with_ordered_products:
                    # from an order that is good the search may go on to a cheaper form
                    choice = self._searched(contest, kind, choice)
        if choice.selected.faults[0]:
            found = list(
                candidates.by_size(quantity, choice.selected, contest.measured)
            )
            choice = contest.choose(found, choice.selected)
        choice = choice.settled()
        note(Tried(choice, contest.measured))
        self._record(name, quantity, choice, kind)
        selected = choice.selected
        wide = ""
        if self._may_be_wide(name):
            wide = precision.in_double(quantity, selected, self._few(name, kind))
        if wide:
            self.wide.append(name)
            text = show(selected.form)
            self.rewrites.append(Rewrite(name, text, text, wide))
        self.losses += accuracy_loss(name, quantity, selected, bool(wide))
        return selected.form

    def _few(self, name: str, kind: _Kind) -> float:
        """The part of the points that may be wrong far out before float64 is taken."""
        if kind.is_derived:
            return 0.0
        is_output = any(name == output.name for output in self._rule.outputs)
        return precision.OUTPUT if is_output else 1.0

    def _may_be_wide(self, name: str) -> bool:
        return name in self._results and not calls_surrogate(self._original)

    def _quantity(self, meaning: Expr) -> Quantity:
        trials = (Trial(meaning, sample, machine) for sample, machine in self._formats)
        return Quantity(tuple(trials), self._chosen.close)

    def _searched(self, contest: Contest, kind: _Kind, choice: Choice) -> Choice:
        """The choice among what the search finds from the choice so far, from that, and
        so on, until the form is good or stays the same."""
        for _ in range(_ROUNDS):
            held = choice.selected
            choice = contest.choose(self._near(contest, held.form, kind), held)
            if not choice.is_good and not kind.is_derived:
                far = self._far(contest, held.form, kind)
                choice = contest.choose(far, choice.selected)
            is_settled = choice.is_good and not kind.is_derived
            if is_settled or choice.selected is held:
                break
        return choice

    def _near(self, contest: Contest, form: Expr, kind: _Kind) -> Iterator[Expr]:
        """Rewrites of a form; of a derived one also those of its other derivations."""
        if not kind.is_derived:
            yield from candidates.rewritten(self._search, form)
            return
        for start in dict.fromkeys((form, contest.written.form, *kind.others)):
            yield from candidates.of_cotangent(self._search, start, self._upstream)

    def _far(self, contest: Contest, form: Expr, kind: _Kind) -> Iterator[Expr]:
        """The same of what the author wrote with names put in, and of what we derive,
        unless it is much longer."""
        whole, first = map(self._visible.close, (form, contest.written.form))
        most = _GROWTH * cost(first) + _ROOM
        for start in dict.fromkeys((whole, first, *kind.others)):
            forms = candidates.of_cotangent(self._search, start, self._upstream)
            yield from (found for found in forms if cost(found) <= most)

    def _holds(self, condition: Expr) -> bool:
        """Whether a rewrite's condition is true wherever the outputs are defined."""
        closed = self._chosen.close(condition)
        return all(
            bool(machine.run(closed)[sample.defined].all())
            for sample, machine in self._formats
        )

    def _set(self, name: str, value: Expr) -> None:
        self._chosen.set(name, value)
        self._visible.set(name, value)

    # --- what is reported ------------------------------------------------------------------

    def _measure(self, name: str, value: Expr) -> None:
        """Overrides and exact definitions stay; what they lose in float32 is reported."""
        form = tidy(value)
        if is_real(form):
            try:
                quantity = self._quantity(self._written.close(value))
                written = Contest(quantity.scores, form).written
            except NotImplementedError:
                return
            self.losses += accuracy_loss(name, quantity, written)

    def _record(
        self, name: str, quantity: Quantity, choice: Choice, kind: _Kind
    ) -> None:
        """A rewrite of what the author wrote; of a derived form only if it is better."""
        before, after = choice.written, choice.selected
        if before.form == after.form:
            return
        if before.faults != after.faults or not kind.is_derived:
            why = reason(quantity, choice)
            self.rewrites.append(
                Rewrite(name, show(before.form), show(after.form), why)
            )
