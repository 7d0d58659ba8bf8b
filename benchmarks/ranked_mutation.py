"""Mutation score of the shipped rules with axes; `benchmarks/mutation.py` prints it.

Derived cotangents are declared as they were derived, then changed in one place. A mutant
that is not refuted is written out at sizes that the checker does not use and compared
with the truth there by mpmath.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time

from benchmarks.exact import equivalent, points
from benchmarks.library import RULES
from benchmarks.mutants import HIDDEN
from benchmarks.ranked_mutants import RankedMutant, mutants
from benchmarks.score import EQUIVALENT, KILLED, SURVIVED
from gradspec.checks.check import check
from gradspec.checks.instances import Instance, Instances
from gradspec.derive.complete import complete
from gradspec.driver.load import load
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Complete, Origin, Rule, Status
from gradspec.ir.unroll import Small, axis_names
from gradspec.ir.walk import closed_cotangents, expand
from gradspec.source import Source

_SIZES = ((7, 5, 6, 4, 3, 8), (5, 4, 3, 2, 6, 7), (3, 4, 2, 5, 3, 2), (2,), (8,), (4,))
_POINTS = 6
_LONG = 8


@dataclass(frozen=True, slots=True)
class RankedFate:
    mutant: RankedMutant
    outcome: str
    seconds: float


def ranked() -> list[Rule]:
    """The shipped rules with axes but without equations, every cotangent declared,
    without their examples."""
    found = []
    for path in sorted(RULES.rglob("*.grad")):
        module = load(
            Source(path.name, path.read_text("utf-8")), str(path.parent)
        ).module
        for rule in module.rules if module is not None else ():
            if rule.has_axes and not any(d.is_equation for d in rule.definitions):
                found.append(_declared(rule))
    return found


def _declared(rule: Rule) -> Complete:
    made = complete(rule).value
    assert made is not None, rule.name
    declared = (
        replace(entry, origin=Origin.WRITTEN, span=rule.name_span)
        for entry in made.backward
        if entry.is_derived
    )
    return replace(made.redefine(*declared), examples=())


def all_mutants(rules: Sequence[Rule]) -> list[RankedMutant]:
    return [mutant for rule in rules for mutant in mutants(rule)]


def fate(mutant: RankedMutant, budget: float) -> RankedFate:
    """Killed by a verdict, or refused as meaningless (an element that does not exist)."""
    begun = process_time()
    outcome = check(mutant.wrong, budget=budget)
    seconds = process_time() - begun
    verdicts = () if outcome.value is None else outcome.value.verdicts
    refuted = any(
        v.status is Status.REFUTED for v in verdicts if v.input in mutant.inputs
    )
    if refuted or outcome.failed:
        return RankedFate(mutant, KILLED, seconds)
    is_right = _is_right(mutant)
    return RankedFate(mutant, EQUIVALENT if is_right else SURVIVED, seconds)


def _is_right(mutant: RankedMutant) -> bool:
    """Equal to the truth, element by element, at sizes of its own; one that hides from a
    size on, where each axis in turn is longer than that.
    """
    if mutant.kind.startswith(HIDDEN):
        axes = axis_names(mutant.rule)
        every = [{a: _LONG if a == long else 2 for a in axes} for long in axes]
        return all(_is_equal(mutant, [sizes]) for sizes in every or [{}])
    return _is_equal(mutant, _sizes(mutant.rule))


def _is_equal(mutant: RankedMutant, every: Iterable[Mapping[str, int]]) -> bool:
    for sizes in every:
        right = _instance(mutant.rule, sizes)
        wrong = _instance(mutant.wrong, sizes)
        if right is None or wrong is None:
            continue
        truths = _elements(right.rule, mutant.inputs)
        values = _elements(wrong.rule, mutant.inputs)
        rule = right.rule
        places = points(rule, *truths.values(), *values.values(), count=_POINTS)
        if places:
            return all(equivalent(values[n], truths[n], places) for n in truths)
    return False


def _instance(rule: Rule, wished: Mapping[str, int]) -> Instance | None:
    """The rule at some sizes, with the first index values that are in range."""
    return next(iter(Instances(rule, Small((wished,), 1, False)).small), None)


def _sizes(rule: Rule) -> Iterator[Mapping[str, int]]:
    """The large ones first."""
    axes = axis_names(rule)
    for sizes in _SIZES:
        yield {axis: sizes[k % len(sizes)] for k, axis in enumerate(axes)}


def _elements(rule: Rule, inputs: tuple[str, ...]) -> dict[str, Expr]:
    """The cotangents of the elements of some variables."""
    return {
        name: expand(value)
        for name, value in closed_cotangents(rule).items()
        if name.removeprefix("d").partition("[")[0] in inputs
    }
