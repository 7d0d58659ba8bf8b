"""What the checker says of mutants and of disguises, counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import process_time
from typing import Protocol

from benchmarks.disguises import disguises
from benchmarks.exact import equivalent, points, value
from benchmarks.library import complete_rules
from benchmarks.mutants import (
    HIDDEN,
    Mutant,
    cotangents,
    is_worth_it,
    mutants,
    with_declared,
)
from gradspec.checks.check import check
from gradspec.ir.rule import Rule, Status

KILLED, SURVIVED, EQUIVALENT = "killed", "survived", "equivalent"


COLLECTED = Path(__file__).parents[1] / "tests" / "checks" / "disguised"


class Labelled(Protocol):
    """A mutant of either sort of rule."""

    @property
    def kind(self) -> str: ...


class Judged(Protocol):
    """What became of it."""

    @property
    def mutant(self) -> Labelled: ...
    @property
    def outcome(self) -> str: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant, and the CPU seconds that checking it took."""

    mutant: Mutant
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Seen:
    """The verdict on a true cotangent in disguise."""

    disguise: str
    rule: str
    status: Status
    seconds: float


def all_mutants(rules: Sequence[Rule]) -> list[Mutant]:
    return [m for rule in rules if is_worth_it(rule) for m in mutants(rule)]


SMALLEST = 2.0**-1074


def fate(mutant: Mutant) -> Fate:
    """Killed by a verdict on the cotangent (its examples alone do not count)."""
    wrong = mutant.declared()
    begun = process_time()
    is_hidden = mutant.kind.startswith(HIDDEN)
    outcome = check(wrong, budget=1.0 if is_hidden else 0.0)
    checked = outcome.value
    seconds = process_time() - begun
    assert checked is not None
    if is_hidden and outcome.failed:  # refuted, or refused as not reached or not linear
        return Fate(mutant, KILLED, seconds)
    verdicts = {v.input: v.status for v in checked.verdicts}
    if any(verdicts[name] is Status.REFUTED for name, _ in mutant.values):
        return Fate(mutant, KILLED, seconds)
    is_right = _is_zero(mutant) if is_hidden else _is_right(mutant)
    return Fate(mutant, EQUIVALENT if is_right else SURVIVED, seconds)


def _is_right(mutant: Mutant) -> bool:
    wrong, truths = dict(mutant.values), dict(mutant.truths)
    places = points(mutant.rule, *wrong.values(), *truths.values())
    return all(equivalent(wrong[name], truths[name], places) for name in wrong)


def _is_zero(mutant: Mutant) -> bool:
    """True if the gradient is 0 in float64 at the places that the mutant hides."""
    places = points(mutant.rule, *dict(mutant.truths).values())
    there = Fraction("1.25" if mutant.kind.endswith("1.25") else "4e7")
    hidden = ({**place, name: there} for place in places for name, _ in mutant.values)
    found = [value(truth, p) for p in hidden for _, truth in mutant.truths]
    return all(abs(v) < SMALLEST for v in found)


def disguised(rules: Sequence[Rule], step: int, budget: float) -> Iterator[Seen]:
    """The verdict on every ``step``-th disguise of every true cotangent."""
    dressed = [
        (rule, name, what, expr)
        for rule in rules
        for name, value in cotangents(rule).items()
        for what, expr in disguises(value)
    ]
    for rule, name, what, expr in dressed[::step]:
        begun = process_time()
        checked = check(with_declared(rule, {name: expr}), budget).value
        seconds = process_time() - begun
        assert checked is not None
        (verdict,) = (v for v in checked.verdicts if v.input == name)
        yield Seen(what, rule.name, verdict.status, seconds)


def collected(step: int, budget: float) -> Iterator[Seen]:
    """The verdicts on every ``step``-th true rule of the collection."""
    for path in sorted(COLLECTED.glob("*.grad")):
        for rule in complete_rules(path)[::step]:
            begun = process_time()
            checked = check(rule, budget).value
            seconds = process_time() - begun
            assert checked is not None
            for verdict in checked.verdicts:
                if verdict.input in rule.declared:
                    what = f"collected: {path.stem}"
                    yield Seen(what, rule.name, verdict.status, seconds)


def overrides(rules: Sequence[Rule]) -> int:
    """Cotangents that claim nothing."""
    return sum(len(rule.overrides) for rule in rules)


def fates_table(fates: Sequence[Judged]) -> list[str]:
    """One line a kind of mutation, and one for all."""
    lines = [
        "| mutation | mutants | killed | survived | equivalent | median CPU ms | longest CPU ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    kinds = dict.fromkeys(f.mutant.kind for f in fates)
    for kind in kinds:
        lines.append(_fates_line(kind, [f for f in fates if f.mutant.kind == kind]))
    return [*lines, _fates_line("**all**", fates)]


def _fates_line(name: str, fates: Sequence[Judged]) -> str:
    counts = [
        sum(f.outcome == outcome for f in fates)
        for outcome in (KILLED, SURVIVED, EQUIVALENT)
    ]
    times = [1000 * f.seconds for f in fates]
    cells = (name, len(fates), *counts, f"{median(times):.0f}", f"{max(times):.0f}")
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def disguises_table(seen: Sequence[Seen]) -> list[str]:
    """One line a disguise, and one for all."""
    lines = [
        "| disguise | cotangents | refused | accepted | proved | longest CPU ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(s.disguise for s in seen):
        lines.append(_seen_line(name, [s for s in seen if s.disguise == name]))
    return [*lines, _seen_line("**all**", seen)]


def _seen_line(name: str, seen: Sequence[Seen]) -> str:
    refused = sum(s.status is Status.REFUTED for s in seen)
    proved = sum(s.status is Status.PROVED for s in seen)
    longest = max(1000 * s.seconds for s in seen)
    cells = (name, len(seen), refused, len(seen) - refused, proved, f"{longest:.0f}")
    return f"| {' | '.join(str(cell) for cell in cells)} |"
