"""How the expressions of an indexed rule are evaluated.

The rule is unrolled at a few small sizes and each candidate measured there, element by
element, as those of elementwise rules are (`choice.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from gradspec.derive.indexed import Underivable, indexed_cotangents
from gradspec.ir.elements import Index, OutOfRange, element, places
from gradspec.ir.expr import Apply, Expr, Idx, Reduce, Ref
from gradspec.ir.rule import (
    AccuracyLoss,
    Backward,
    CheckedRule,
    Declared,
    Derived,
    Input,
    Let,
    Output,
    Rewrite,
    Rule,
)
from gradspec.ir.text import show
from gradspec.ir.unroll import axis_names, unrolled
from gradspec.ir.walk import children, names, nodes
from gradspec.stabilise.accuracy_model import Quantity, Score, Trial, is_real
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.choice import Choice, Contest
from gradspec.stabilise.explanation import reason
from gradspec.stabilise.guards import guarded
from gradspec.stabilise.indexed_points import Sample, samples, where_finite
from gradspec.stabilise.matching import Search
from gradspec.stabilise.names import (
    Names,
    restored,
    without_calls,
    without_dead_locals,
)
from gradspec.stabilise.reductions import forms, norms_of, slopes
from gradspec.stabilise.scopes import Scope, inlined, named, place, weight

_LARGEST = 600  # nodes (locals put in) of an expression beyond which it is left alone
_PLAIN = 1e4
"""Beyond this, and below its inverse, products leave the range on the way; that is reported
in other words."""

_FEW = 2  # elements of a value that are measured at one choice of sizes


def stabilise_indexed(checked: CheckedRule) -> CheckedRule:
    """The indexed rule with its expressions in the forms that measure best."""
    rule = without_calls(checked.rule)
    work = _Stabiliser(rule)
    done = guarded(work.run())
    losses = tuple(work.undefined(done))
    if not work.rewrites and done == rule:
        return replace(checked, losses=losses)
    return replace(
        checked,
        rule=restored(rule, without_dead_locals(rule, done)),
        rewrites=(*checked.rewrites, *work.rewrites),
        losses=losses,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """One value of the rule: an output or local, or the cotangent of an input."""

    name: str
    indices: tuple[str, ...]
    axes: tuple[str | int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Probe:
    """One element at one choice of sizes, and the points it is tried on."""

    sample: Sample
    at: Index
    trial: Trial


class _Forward:
    """Other forms of a value of the forward pass; ``before`` are the lets, as written,
    that it may use, and ``rule`` has them as chosen."""

    def __init__(self, scope: Scope, rule: Rule, before: tuple[Let, ...]) -> None:
        self._scope = scope
        self._before = before
        self._values = {x.name: x for x in before if x.name not in rule.exacts}
        known = {let.name for let in before}
        self._chosen = tuple(x for x in rule.forward if x.name in known)

    def near(self, value: Expr, indices: tuple[str, ...]) -> Iterator[Expr]:
        """Rewrites of the value as it stands."""
        if weight(value, {}) <= _LARGEST:
            yield from self._forms(value, self._scope.union(indices))

    def far(self, value: Expr, indices: tuple[str, ...]) -> Iterator[Expr]:
        """Rewrites with locals put in, and named again where they are left."""
        whole = self.whole(value, indices)
        if whole is not value:
            for form in self._forms(whole, self._scope.union(indices)):
                yield self._named(form)

    def whole(self, value: Expr, indices: tuple[str, ...]) -> Expr:
        """The value with locals put in, if that is not too large."""
        if weight(value, self._values) > _LARGEST:
            return value
        return inlined(value, self._values, self._scope.union(indices))

    def _forms(self, value: Expr, scope: Scope) -> Iterator[Expr]:
        return forms(value, scope)

    def _named(self, form: Expr) -> Expr:
        return named(form, self._chosen)


class _Slope(_Forward):
    """The same of a cotangent; ``derived`` is that of the forward as chosen, if it was
    found: one more rewrite of what we derived ourselves, something else than what the
    user wrote."""

    def __init__(
        self,
        scope: Scope,
        rule: Rule,
        before: tuple[Let, ...],
        entry: Derived | Declared,
        derived: Derived | None,
    ) -> None:
        super().__init__(scope, rule, before)
        self._own = isinstance(entry, Derived)
        statics = frozenset(static.name for static in rule.static_inputs)
        self._statics = statics if self._own else None
        found = () if derived is None else (derived,)
        self._derived = tuple(_with_indices(d, entry.indices) for d in found)

    def near(self, value: Expr, indices: tuple[str, ...]) -> Iterator[Expr]:
        yield from super().near(value, indices)
        if self._own:
            yield from self._others(value, indices)

    def far(self, value: Expr, indices: tuple[str, ...]) -> Iterator[Expr]:
        if not self._own:
            yield from self._others(value, indices)

    def _others(self, value: Expr, indices: tuple[str, ...]) -> Iterator[Expr]:
        yield from super().far(value, indices)
        yield from self._derived_forms(indices)

    def _derived_forms(self, indices: tuple[str, ...]) -> Iterator[Expr]:
        for value in self._derived:
            yield value
            yield from super().near(value, indices)

    def _forms(self, value: Expr, scope: Scope) -> Iterator[Expr]:
        return slopes(value, scope, norms_of(self._before), self._statics)

    def _named(self, form: Expr) -> Expr:
        return named(named(form, self._before), self._chosen)


class _Stabiliser:
    """Chooses value by value; knows what has been chosen so far."""

    def __init__(self, rule: Rule) -> None:
        self._written = rule
        self._rule = rule
        self._samples: tuple[Sample, ...] | None = None
        self._finite: tuple[Sample, ...] | None = None
        self._is_backward = False
        named_values: tuple[Input | Output | Let, ...] = (
            *rule.inputs,
            *rule.outputs,
            *rule.forward,
            *rule.backward_locals,
        )
        taken = (value.name for value in named_values)
        self._scope = Scope((*taken, *axis_names(rule)))
        self._search = Search(_never)
        self._exacts: dict[int, tuple[Names, Machine]] = {}
        self._chosen: dict[int, Names] = {}
        self.rewrites: list[Rewrite] = []

    def run(self) -> Rule:
        for number, let in enumerate(self._written.forward):
            here = _Place(let.name, let.indices, let.axes)
            before = self._written.forward[:number]
            self._choose(here, let.value, _Forward(self._scope, self._rule, before))
        self._is_backward = True
        derived = _derived(self._written, self._rule)
        for variable, entry in zip(
            self._written.inputs, self._written.backward, strict=True
        ):
            if isinstance(entry, Derived | Declared):
                name, axes = variable.name, variable.shape.axes
                lets = self._written.forward
                found = _Slope(self._scope, self._rule, lets, entry, derived.get(name))
                here = _Place(f"d{name}", entry.indices, axes)
                self._choose(here, entry.value, found)
        return self._rule

    def undefined(self, done: Rule) -> Iterator[AccuracyLoss]:
        """The gradients of the finished rule that are NaN at plain inputs at which the
        outputs are numbers."""
        entries = zip(done.inputs, done.backward, strict=True)
        values = {
            f"d{variable.name}": entry.value
            for variable, entry in entries
            if isinstance(entry, Derived | Declared) and _may_divide(entry.value)
        }
        for sample in self._found() if values else ():
            scalars = unrolled(done, sample.evaluated).rule
            close, machine = Names(scalars), Machine(sample.points.columns)
            inputs = {variable.name for variable in scalars.inputs}
            plain = _is_plain(sample) & sample.points.defined
            for variable, entry in zip(scalars.inputs, scalars.backward, strict=True):
                name = f"d{variable.name.partition('[')[0]}"
                if name in values and isinstance(entry, Derived | Declared):
                    found = machine.run(close.close(entry.value))
                    lost = np.flatnonzero(np.isnan(found) & plain)
                    if len(lost):
                        row = sample.points.rows[int(lost[0])]
                        shown = (n for n in row if n in inputs)
                        point = tuple((n, row[n]) for n in shown)
                        culprit = values.pop(name)
                        yield AccuracyLoss(name, "undefined", culprit, point, nan, nan)

    def _choose(self, place: _Place, written: Expr, found: _Forward) -> None:
        if place.name in self._written.exacts:
            return
        if not is_real(written) or not children(written):
            return
        try:
            self._measure(place, written, found)
        except (NotImplementedError, OutOfRange):
            # a part that neither balls nor the model know; an element beyond an axis
            return

    def _measure(self, place: _Place, written: Expr, found: _Forward) -> None:
        if not self._has_forms(place, written, found):
            return
        probes = list(self._probes(place))
        if not probes:
            return
        contest = Contest(lambda form: self._scores(probes, place, form), written)
        choice = contest.choose(())
        whole = found.whole(written, place.indices)
        steps = (
            lambda: found.near(written, place.indices),
            lambda: self._search.forms(choice.selected.form),
            lambda: found.far(written, place.indices),
            lambda: self._search.forms(whole),
        )
        for found_by in steps:
            if not choice.is_good:
                choice = contest.choose(found_by(), choice.selected)
        choice = choice.settled()
        if choice.selected.form != written:
            self._record(place, probes, choice)
            self._rule = _with(self._rule, place.name, choice.selected.form)
            self._chosen.clear()

    def _has_forms(self, place: _Place, written: Expr, found: _Forward) -> bool:
        """Most values, contractions say, are what they are."""
        if any(True for _ in found.near(written, place.indices)):
            return True
        whole = found.whole(written, place.indices)
        searched = self._search.forms(written)[1:] or self._search.forms(whole)[1:]
        return bool(searched) or any(True for _ in found.far(written, place.indices))

    def _probes(self, place: _Place) -> Iterator[_Probe]:
        """The first and the last element at every choice of sizes."""
        for sample in self._found():
            exact, machine = self._exact(sample)
            every = list(places(place.axes, sample.sizes))
            for at in dict.fromkeys((*every[: _FEW - 1], *every[-1:])):
                name = element(place.name, at)
                if name in exact:
                    meaning = exact.close(Ref(name))
                    yield _Probe(sample, at, Trial(meaning, sample.points, machine))

    def _exact(self, sample: Sample) -> tuple[Names, Machine]:
        """The rule as written at a sample's sizes; one machine for its points."""
        if id(sample) not in self._exacts:
            written = unrolled(self._written, sample.exact).rule
            machine = Machine(sample.points.columns)
            self._exacts[id(sample)] = Names(written), machine
        return self._exacts[id(sample)]

    def _evaluated(self, sample: Sample) -> Names:
        """The rule as chosen so far at a sample's sizes."""
        if id(sample) not in self._chosen:
            chosen = unrolled(self._rule, sample.evaluated).rule
            self._chosen[id(sample)] = Names(chosen)
        return self._chosen[id(sample)]

    def _scores(
        self, probes: list[_Probe], place: _Place, form: Expr
    ) -> Iterator[Score]:
        """A form of the value at ``place``, probe by probe."""
        for probe in probes:
            yield probe.trial.score(self._closed(probe, place, form))

    def _closed(self, probe: _Probe, place: _Place, form: Expr) -> Expr:
        """A form of the value at ``place``, as a target evaluates its element."""
        at = dict(zip(place.indices, probe.at, strict=True))
        value = probe.sample.evaluated.expand(form, at)
        closed = self._evaluated(probe.sample).close(value)
        for name in sorted(names(closed) - probe.sample.points.columns.keys()):
            raise OutOfRange(name)
        return closed

    def _found(self) -> tuple[Sample, ...]:
        """The samples; a gradient is asked for where the outputs are finite."""
        if self._samples is None:
            self._samples = samples(self._written)
        if self._is_backward and self._finite is None:
            there = (where_finite(sample, self._rule) for sample in self._samples)
            self._finite = tuple(sample for sample in there if len(sample.points))
        return self._samples if self._finite is None else self._finite

    def _record(self, place: _Place, probes: list[_Probe], choice: Choice) -> None:
        """Explained by the element at which most was gained."""
        before, after = choice.written, choice.selected
        number = max(
            range(len(probes)),
            key=lambda n: before.scores[n].bad - after.scores[n].bad,
        )
        closed = self._closed(probes[number], place, before.form)
        one = Choice(
            replace(before, scores=(before.scores[number],)),
            replace(after, scores=(after.scores[number],)),
        )
        quantity = Quantity((probes[number].trial,), lambda _: closed)
        why = reason(quantity, one)
        self.rewrites.append(
            Rewrite(place.name, show(before.form), show(after.form), why)
        )


def _derived(written: Rule, chosen: Rule) -> dict[str, Derived]:
    """The derivative of the forward as chosen. Where a maximum was taken out (of a norm,
    of exponents) it is that of the forward as written: it only disappears again."""
    forward = tuple(
        new if _maxima(new) <= _maxima(old) else old
        for old, new in zip(written.forward, chosen.forward, strict=True)
    )
    if forward == written.forward:
        return {}
    try:
        return indexed_cotangents(replace(chosen, forward=forward))
    except Underivable:
        return {}


def _maxima(let: Let) -> int:
    return sum(
        isinstance(node, Reduce | Apply) and node.op in ("max", "peak")
        for node in nodes(let.value)
    )


def _with_indices(entry: Derived, indices: tuple[str, ...]) -> Expr:
    """Its value with the free indices of another entry of the same input."""
    at = {old: Idx(new) for old, new in zip(entry.indices, indices, strict=True)}
    return place(entry.value, at, Scope(indices))


def _is_plain(sample: Sample) -> Any:
    """The points at which every floating input is 0 or of an ordinary size."""
    plain = np.ones(len(sample.points), dtype=bool)
    for name in sample.points.floating:
        size = np.abs(sample.points.columns[name])
        plain &= (size == 0) | (size >= 1 / _PLAIN) & (size <= _PLAIN)
    return plain


def _may_divide(value: Expr) -> bool:
    """Whether there is an operation that may be 0 / 0."""
    risky = ("div", "pow", "rsqrt", "log")
    return any(isinstance(node, Apply) and node.op in risky for node in nodes(value))


def _never(_: Expr) -> bool:
    """Rows that hold on a condition only are left out: it would be one for each index."""
    return False


def _with(rule: Rule, name: str, value: Expr) -> Rule:
    """``rule`` with another form of one of its values."""
    forward = tuple(
        replace(let, value=value) if let.name == name else let for let in rule.forward
    )
    backward: list[Backward] = []
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if f"d{variable.name}" == name and isinstance(entry, Derived | Declared):
            backward.append(replace(entry, value=value))
        else:
            backward.append(entry)
    return replace(rule, forward=forward, backward=tuple(backward))
