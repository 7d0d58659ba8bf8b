"""Choose how the expressions of a ranked rule are evaluated.

The rule is written out at a few small sizes and each candidate measured there, element
by element, as elementwise rules are (`choose.py`). A candidate is taken only if it has
fewer bad points, or is clearly more accurate, and nowhere clearly worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gradspec.ir.elements import element, places
from gradspec.ir.expr import Expr
from gradspec.ir.rule import (
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
from gradspec.stabilise.choose import Choice, cost, order
from gradspec.stabilise.measure import FAIR, GOOD, Score, Stratum, Trial
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.reason import gains, reason
from gradspec.stabilise.reductions import forms, norms_of, slopes
from gradspec.stabilise.scopes import Scope, inlined, named, weight
from gradspec.stabilise.vectors import Sample, samples, where_finite

_LUCK, _CHANCE = 2.0, 16.0
"""Factors by which an error may grow; the second from ``FAIR`` on: sums of terms of both
signs lose digits in any form, and how many is luck."""

_LARGEST = 600  # nodes (locals put in) of an expression beyond which it is left alone
_FEW = 2  # elements of a value that are measured at one choice of sizes


def stabilised(checked: CheckedRule) -> CheckedRule:
    """The ranked rule with its expressions in the forms that measure best."""
    work = _Work(checked.rule)
    rule = work.run()
    return replace(checked, rule=rule, rewrites=(*checked.rewrites, *work.rewrites))


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
    element: str
    trial: Trial


class _Work:
    def __init__(self, rule: Rule) -> None:
        self._written = rule
        self._rule = rule
        self._samples: tuple[Sample, ...] | None = None
        named_values: tuple[Input | Output | Let, ...] = (
            *rule.inputs,
            *rule.outputs,
            *rule.forward,
            *rule.backward_locals,
        )
        self._scope = Scope(value.name for value in named_values)
        self.rewrites: list[Rewrite] = []

    def run(self) -> Rule:
        for number, let in enumerate(self._written.forward):
            before = self._written.forward[:number]
            found = self._forward_forms(let, before)
            place = _Place(let.name, let.indices, let.axes)
            self._choose(place, let.value, found)
        self._samples = tuple(where_finite(s, self._rule) for s in self._found())
        for variable, entry in zip(
            self._written.inputs, self._written.backward, strict=True
        ):
            if isinstance(entry, Derived | Declared):
                axes = variable.shape.axes
                place = _Place(f"d{variable.name}", entry.indices, axes)
                self._choose(place, entry.value, self._backward_forms(entry))
        return self._rule

    # --- candidates ------------------------------------------------------------------

    def _forward_forms(self, let: Let, before: tuple[Let, ...]) -> Iterator[Expr]:
        scope = self._scope.union(let.indices)
        values = {other.name: other for other in before}
        chosen = tuple(x for x in self._rule.forward if x.name in values)
        if weight(let.value, values) <= _LARGEST:
            yield from forms(let.value, scope)
            for form in forms(inlined(let.value, values, scope), scope):
                yield named(form, chosen)

    def _backward_forms(self, entry: Derived | Declared) -> Iterator[Expr]:
        scope = self._scope.union(entry.indices)
        values = {let.name: let for let in self._written.forward}
        norms = norms_of(self._written.forward)
        chosen = self._rule.forward
        if weight(entry.value, values) <= _LARGEST:
            yield from slopes(entry.value, scope, norms)
            for form in slopes(inlined(entry.value, values, scope), scope, norms):
                yield named(named(form, self._written.forward), chosen)

    # --- choice ----------------------------------------------------------------------

    def _choose(self, place: _Place, written: Expr, found: Iterator[Expr]) -> None:
        candidates = [f for f in dict.fromkeys(found) if f != written]
        if not candidates or not self._found():
            return
        try:
            self._measure(place, written, candidates)
        except NotImplementedError:  # a part that neither balls nor the model know
            return

    def _measure(self, place: _Place, written: Expr, candidates: list[Expr]) -> None:
        probes = list(self._probes(place))
        if not probes:
            return
        before = self._scores(probes, place, written)
        first = _together(before)
        best, held, scores = written, first, before
        for form in candidates:
            after = self._scores(probes, place, form)
            score = _together(after)
            if _is_worse(score, first):
                continue
            better = order(score, held)
            cheaper = best != written and cost(form) < cost(best)
            if better < 0 or (better == 0 and cheaper):
                best, held, scores = form, score, after
        if best is not written:
            self._record(place, probes, (written, before), (best, scores))
            self._rule = _with(self._rule, place.name, best)

    def _probes(self, place: _Place) -> Iterator[_Probe]:
        """The first and the last element at every choice of sizes."""
        for sample in self._found():
            rule = sample.exact(self._written).rule
            close = Names(rule)
            every = [element(place.name, at) for at in places(place.axes, sample.sizes)]
            machine = Machine(sample.points.columns)
            for name in dict.fromkeys((*every[: _FEW - 1], *every[-1:])):
                value = _value(rule, name)
                if value is not None:
                    trial = Trial(close.close(value), sample.points, machine)
                    yield _Probe(sample, name, trial)

    def _scores(
        self, probes: list[_Probe], place: _Place, form: Expr
    ) -> list[tuple[Expr, Score]]:
        rule = _with(self._rule, place.name, form)
        known: dict[int, Rule] = {}
        found = []
        for probe in probes:
            key = id(probe.sample)
            if key not in known:
                known[key] = probe.sample.evaluated(rule).rule
            value = _value(known[key], probe.element)
            assert value is not None
            closed = Names(known[key]).close(value)
            found.append((closed, probe.trial.score_with_noise(closed)))
        return found

    def _found(self) -> tuple[Sample, ...]:
        if self._samples is None:
            self._samples = samples(self._written)
        return self._samples

    def _record(
        self,
        place: _Place,
        probes: list[_Probe],
        before: tuple[Expr, list[tuple[Expr, Score]]],
        after: tuple[Expr, list[tuple[Expr, Score]]],
    ) -> None:
        """Told of the element at which most was gained."""
        choices = [
            (probe, closed, Choice(after[0], now, then))
            for probe, (closed, then), (_, now) in zip(
                probes, before[1], after[1], strict=True
            )
        ]
        probe, closed, choice = next((c for c in choices if gains(c[2])), choices[0])
        why = reason(probe.trial, closed, choice)
        self.rewrites.append(Rewrite(place.name, show(before[0]), show(after[0]), why))


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


def _value(rule: Rule, name: str) -> Expr | None:
    """The value of a let, or of a cotangent of an unrolled rule."""
    for let in rule.forward:
        if let.name == name:
            return let.value
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if f"d{variable.name}" == name and isinstance(entry, Derived | Declared):
            return entry.value
    return None


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


def _together(scored: list[tuple[Expr, Score]]) -> Score:
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
