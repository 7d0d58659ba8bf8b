"""The one place that asks the compiler: a rule as text, compared at points, and checked.

A declared gradient that has no value where the derivative has one is never counted as
wrong, nor is a point far out, a kink, or a size of 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from gradspec import pipeline
from gradspec.checks.check import check as check_rule
from gradspec.checks.diagnosis.wording import Witness
from gradspec.checks.evidence import Claim
from gradspec.checks.given import underivable
from gradspec.checks.instances import Instance, instances
from gradspec.derive.chain import is_linear
from gradspec.derive.complete import complete
from gradspec.diagnostics import Diagnostic
from gradspec.ir.elements import element, places
from gradspec.ir.rule import Complete, Status
from gradspec.ir.unroll import is_too_large
from gradspec.ir.walk import deep, forget, names, size
from gradspec.mend import check_and_mend
from gradspec.source import Source
from gradspec.symbolic.borders.limits import on_border
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    compare,
    distinct_texts,
    meets,
    shared_digits,
)
from gradspec.symbolic.enclose import enclose, is_defined
from gradspec.symbolic.limit import Effort, Shortage, run_limited

FARTHEST = Fraction(10**5)
BUDGET = 0.8
"""Effort for the check of one rule."""

_HAIR = 1e-14  # a relative difference that is rounding
_DIGITS = 6
"""Digits that are shared by values which the rounding of constants tells apart."""

_ELEMENTS = 6  # of a gradient, that are compared at a size


@dataclass(frozen=True)
class Difference:
    """A point at which a gradient is wrong, certainly."""

    gradient: str
    place: str
    declared: str
    derived: str
    relative: float
    is_flat: bool
    """True if the derivative is 0 there."""
    ratio: float
    apart: float
    """The difference in units of the larger of the values and 1."""


@dataclass(frozen=True)
class Survey:
    """The result of comparing gradients: ``fault`` says why there was nothing to compare."""

    differences: tuple[Difference, ...] = ()
    compared: int = 0
    undefined: tuple[str, ...] = ()
    """Places at which the derivative has a value and the declared gradient has none."""
    is_linear: bool = True
    is_gated: bool = False
    """True if a gradient is not linear in the upstream one, and 0 where that is 0."""
    fault: str = ""

    @property
    def agrees(self) -> bool:
        return not self.differences and self.compared > 0


def rule_of(text: str) -> tuple[Complete | None, str]:
    """The complete rule of a text, or what is wrong with it."""
    module = pipeline.read_module(Source("lifted.grad", text))
    if module.value is None or module.failed:
        return None, _first_error(module.diagnostics)
    lowered = pipeline.lower_module(module.value, {})
    if lowered.value is None or lowered.failed:
        return None, _first_error(lowered.diagnostics)
    (rule,) = lowered.value.rules
    unknown = tuple(underivable(rule))
    if unknown:
        return None, _first_error(unknown)
    completed = complete(rule)
    return completed.value, _first_error(completed.diagnostics)


def _first_error(found: tuple[Diagnostic, ...]) -> str:
    return next((f"{d.code}: {d.headline}" for d in found if d.is_error), "")


@deep()
def survey(text: str, effort: Effort) -> Survey:
    """Declared gradients compared with the derivatives at points.

    Raises:
        OutOfSteps: that needs more effort than is left.
    """
    effort.need(len(text))
    forget()
    rule, fault = rule_of(text)
    if rule is None:
        return Survey(fault=fault)
    if is_too_large(rule):
        return Survey(fault="too many elements")
    found = _Comparing(effort)
    completed = complete(rule)
    if completed.value is None:
        return Survey(fault=_first_error(completed.diagnostics))
    known = instances(completed.value)
    for instance in _looked_at(known):
        found.look_at(instance)
    if not found.compared and not found.differences:
        return Survey(
            (), 0, tuple(found.undefined), fault="no point at which it has values"
        )
    return Survey(
        tuple(found.differences),
        found.compared,
        tuple(found.undefined),
        found.is_linear,
        not found.is_linear and found.vanishes,
    )


def _looked_at(known: Any) -> tuple[Instance, ...]:
    some = (known.usual, known.apart, *known.larger[:1])
    found = dict.fromkeys(one for one in some if one is not None)
    return tuple(found)


class _Comparing:
    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.differences: list[Difference] = []
        self.undefined: list[str] = []
        self.compared = 0
        self.is_linear = self.vanishes = True

    def look_at(self, instance: Instance) -> None:
        is_degenerate = 1 in instance.sizes.values()
        for claim in claims(instance):
            upstream = frozenset(instance.rule.cotangents)
            used = names(claim.declared) & upstream
            if used and not is_linear(claim.declared, upstream):
                self.is_linear = False
                zero = dict.fromkeys(upstream, Fraction(0))
                values = (
                    enclose(claim.declared, {**p, **zero}) for p in instance.points
                )
                self.vanishes &= all(is_defined(v) and v == 0 for v in values)
            borders = (*instance.forward.values(), claim.declared, claim.derived)
            for point in instance.points:
                if any(abs(value) > FARTHEST for value in point.values()):
                    continue
                self.effort.need(size(claim.declared) + size(claim.derived))
                seen = compare(claim.declared, claim.derived, point)
                match seen.relation:
                    case Relation.EQUAL:
                        self.compared += 1
                    case Relation.LEFT_UNDEFINED:
                        self.undefined.append(Witness(claim, point, seen).place)
                    case Relation.DIFFERENT if not is_degenerate:
                        if on_border(borders, point):
                            continue
                        self._differ(claim, point, seen)

    def _differ(self, claim: Claim, point: Any, seen: Comparison) -> None:
        most = max(abs(float(seen.left.mid())), abs(float(seen.right.mid())))
        relative = abs(float((seen.left - seen.right).mid())) / most if most else 0.0
        is_rounded = shared_digits(seen.left, seen.right) >= _DIGITS and meets(
            claim.declared, claim.derived, point
        )
        if is_rounded or relative < _HAIR:
            self.compared += 1
            return
        declared, derived = distinct_texts((seen.left, seen.right))
        true = float(seen.right.mid())
        witness = Witness(claim, point, seen)
        self.differences.append(
            Difference(
                witness.name,
                witness.place,
                declared,
                derived,
                relative,
                bool(seen.right.contains(0)),
                float(seen.left.mid()) / true if true else 0.0,
                relative * min(most, 1.0),
            )
        )


def claims(instance: Instance) -> Iterator[Claim]:
    """A few elements of each declared gradient."""
    inputs = {i.name: i for i in instance.rule.inputs}
    entries = instance.rule.declared
    for variable in instance.written.inputs:
        every = [
            element(variable.name, at)
            for at in places(variable.shape.axes, instance.sizes)
        ]
        known = [n for n in every if n in entries and n in instance.derived]
        for name in known[:: (len(known) // _ELEMENTS) | 1]:
            stated, derived = instance.stated[name], instance.derived[name]
            yield Claim(instance, inputs[name], entries[name], stated, derived)


@dataclass(frozen=True)
class Checked:
    """The verdict of the ordinary check: of each input, and what was found."""

    statuses: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    fault: str = ""

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(d.code for d in self.diagnostics if d.is_error)

    def of(self, *words: str) -> tuple[str, ...]:
        return tuple(name for name, status in self.statuses if status in words)


@deep()
def check(text: str, explains: bool = False) -> Checked:
    """The rule through the ordinary check; what is wrong with it is explained by changes
    that are tried."""
    rule, fault = rule_of(text)
    if rule is None:
        return Checked(fault=fault)
    work = partial(check_and_mend if explains else check_rule, rule, BUDGET)
    outcome = run_limited(2 * BUDGET, work)
    if isinstance(outcome, Shortage):
        return Checked(fault=outcome.sentence("judging it", BUDGET))
    if outcome.value is None:
        told = next(
            (d.headline for d in outcome.diagnostics if d.is_error), "no verdict"
        )
        return Checked((), outcome.diagnostics, told)
    words = (Status.PROVED, Status.AGREES, Status.REFUTED)
    statuses = tuple(
        (v.input, v.status.value) for v in outcome.value.verdicts if v.status in words
    )
    return Checked(statuses, outcome.diagnostics)
