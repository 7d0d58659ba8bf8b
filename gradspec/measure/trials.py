"""Trials: emitted modules against the truth, a process for each framework, and targets
against one another."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradspec.driver.cache import FileResult
from gradspec.measure.features import TRIALS
from gradspec.measure.jobs import Case, Framework, Subject, subjects
from gradspec.options import Options


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that did not agree."""

    target: str
    display: str
    rule: str
    what: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class TrialReport:
    """One target: how much was tried, what failed; ``absent`` says what is missing when
    the framework cannot be imported.
    """

    target: str
    rules: int
    checks: int
    failures: tuple[Failure, ...]
    absent: str = ""


def run(
    results: Iterable[FileResult],
    cases: Iterable[Iterable[Case]],
    options: Options,
    progress: Callable[[str], None],
) -> tuple[TrialReport, ...]:
    """Try every rule of the compiled files on every target of the options."""
    given = subjects(results, cases)
    reports, values = [], {}
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        for target in options.targets:
            report, values[target] = _one_target(Path(folder), target, given)
            reports.append(report)
            progress(target)
    return (*reports, *_agreement(values))


def _one_target(
    folder: Path, target: str, given: tuple[Subject, ...]
) -> tuple[TrialReport, dict[tuple[str, str], Any]]:
    framework = Framework.of(target, folder)
    if absent := framework.missing:
        return TrialReport(target, 0, 0, (), absent), {}
    found: list[dict[str, Any]] = []
    modules = framework.modules(given)
    features = [asdict(feature) for feature in TRIALS[target]]
    fault = framework.do("trial", modules, found.append, features=features)
    report, values = _read(target, found)
    if fault:
        failure = Failure(target, "", "", "the trial itself", "", fault)
        report = replace(report, failures=(*report.failures, failure))
    return report, values


def _read(
    target: str, data: list[dict[str, Any]]
) -> tuple[TrialReport, dict[tuple[str, str], Any]]:
    failures = tuple(
        Failure(target, d["display"], d["rule"], f["what"], f["where"], f["message"])
        for d in data
        for f in d["failures"]
    )
    checks = sum(d["checks"] for d in data)
    values = {(d["display"], d["rule"]): d["values"] for d in data}
    return TrialReport(target, len(data), checks, failures), values


def _agreement(
    values: dict[str, dict[tuple[str, str], Any]],
) -> Iterator[TrialReport]:
    """Targets with one another: twice the room that each has against the truth."""
    present = [target for target, found in values.items() if found]
    if len(present) < 2:
        return
    first, *others = present
    checks, failures = 0, []
    for other in others:
        for place, mine in values[first].items():
            theirs = values[other].get(place, [])
            if not mine or not theirs:  # a kernel computes it in float32
                continue
            checks += 1
            if not _agree(mine, theirs):
                names = f"{first} and {other}"
                failures.append(
                    Failure(names, *place, "agreement", "", "their values differ")
                )
    rules = len(values[first])
    yield TrialReport(" = ".join(present), rules, checks, tuple(failures))


def _agree(mine: list[list[float]], theirs: list[list[float]]) -> bool:
    if len(mine) != len(theirs):
        return False
    for left, right in zip(mine, theirs, strict=True):
        largest = max([1.0, *(abs(v) for v in left if math.isfinite(v))])
        for a, b in zip(left, right, strict=True):
            same = a == b or (math.isnan(a) and math.isnan(b))
            if not same and not abs(a - b) <= 2e-10 * max(abs(a), 1e-4 * largest):
                return False
    return True
