"""Running trials: emitted modules into a temporary folder, a child process per
target."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.diagnostics import Outcome
from gradspec.driver import cache
from gradspec.driver.cache import FileResult, put
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.run import gather_outcomes, run_within_budget
from gradspec.ir.plain import use_shelf
from gradspec.measure import runners
from gradspec.measure.features import TRIALS
from gradspec.options import Options
from gradspec.source import Source

if TYPE_CHECKING:
    from gradspec.ir.rule import Rule

LONGEST_SECONDS = 3600.0
"""Time limit of a rule's trial."""

Case = dict[str, Any]
"""The job of a rule."""


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
    given = tuple(zip(results, cases, strict=True))
    reports, values = [], {}
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        for target in options.targets:
            report, values[target] = _one_target(Path(folder), target, given)
            reports.append(report)
            progress(target)
    return (*reports, *_agreement(values))


def _functions(text: str) -> list[str]:
    return re.findall(r"^def (\w+)\(", text, re.MULTILINE)


def cases_of(
    options: Options, is_suite: bool, entry: Entry
) -> Outcome[tuple[Case, ...]]:
    """The jobs of the rules of a file that has been compiled: of a trial, or of the
    conformance suite."""
    source = read_entry(entry).value
    if source is None:
        return Outcome(())
    with use_shelf(cache.rules()):
        return cases(source, entry.root, options, is_suite)


def cases(
    source: Source, root: str, options: Options, is_suite: bool
) -> Outcome[tuple[Case, ...]]:
    """The jobs of the rules of a text that are emitted: a rule with axes may be checked
    only.
    """
    from gradspec.driver.load import load
    from gradspec.ir.rule import Chosen
    from gradspec.measure.cases import conformance_case, trial_case
    from gradspec.pipeline import check_module
    from gradspec.plan.gradients import is_linear
    from gradspec.plan.planning import plan_module

    module = load(source, root).module
    checked = check_module(module, options)[0] if module else ()
    written = tuple(Chosen(judged, judged.rule) for judged in checked)
    linear = {p.name: is_linear(p) for p in plan_module(source, written).rules}
    make = conformance_case if is_suite else trial_case

    def jobs(rule: Rule) -> tuple[Case, ...]:
        found = make(rule, linear[rule.name])
        return () if found is None else (found,)

    rules = (one.rule for one in checked if one.rule.name in linear)
    found = gather_outcomes(
        run_within_budget(r, "trying", options, partial(jobs, r)) for r in rules
    )
    return Outcome(sum(found.value or (), ()), found.diagnostics)


def _one_target(
    folder: Path, target: str, given: Iterable[tuple[FileResult, Iterable[Case]]]
) -> tuple[TrialReport, dict[tuple[str, str], Any]]:
    script = runners.runner_of(target)
    if absent := runners.missing(target, script):
        return TrialReport(target, 0, 0, (), absent), {}
    found: list[dict[str, Any]] = []
    job = {
        "kind": "trial",
        "modules": list(_modules(folder / target, target, given)),
        "features": [asdict(feature) for feature in TRIALS[target]],
    }
    place = folder / f"{target}.job"
    fault = runners.run(script, job, place, LONGEST_SECONDS, found.append)
    report, values = _read(target, found)
    if fault:
        failure = Failure(target, "", "", "the trial itself", "", fault)
        report = replace(report, failures=(*report.failures, failure))
    return report, values


def _modules(
    folder: Path, target: str, given: Iterable[tuple[FileResult, Iterable[Case]]]
) -> Iterator[dict[str, Any]]:
    for result, cases in given:
        for module in result.modules:
            if module.target == target:
                names = _functions(module.text)
                yield {
                    "display": result.display,
                    "path": str(put(folder, module)),
                    "rules": [case for case in cases if case["rule"] in names],
                }


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
