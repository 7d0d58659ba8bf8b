"""Running audits: points and truths in workers, then a child process for each
target."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.driver import cache
from gradspec.driver.cache import FileResult, put
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.run import each_file, gather_outcomes
from gradspec.ir.plain import use_shelf
from gradspec.measure import runners
from gradspec.options import AuditOptions, Options

if TYPE_CHECKING:
    from gradspec.ir.rule import Chosen, Judged
    from gradspec.measure.truths import Case, Finding
    from gradspec.stabilise.choice import Tried

Progress = Callable[[str], None]

LONGEST_SECONDS = 3600.0
"""Time limit of one rule in one format."""


class Unmeasured(Exception):
    """Files that could not be prepared, for the reasons in ``diagnostics``."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(d.headline for d in diagnostics))
        self.diagnostics = diagnostics


@dataclass(frozen=True, slots=True, eq=False)
class TargetAudit:
    """One target; ``absent`` says what is missing where it could not be run, ``faults``
    (rule, format, side and message) what raised an exception.
    """

    target: str
    findings: tuple[Finding, ...]
    faults: tuple[tuple[str, str, str, str], ...] = ()
    absent: str = ""


def run(
    entries: Iterable[Entry],
    results: Iterable[FileResult],
    options: Options,
    audit: AuditOptions,
    progress: Progress,
) -> tuple[TargetAudit, ...]:
    """Measure every rule of the compiled files on every target. Raises
    `Unmeasured`.
    """
    results, entries = tuple(results), tuple(entries)
    with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
        folder = Path(name)
        tasks = {entry.display: str(number) for number, entry in enumerate(entries)}
        prepare = partial(_cases, folder, options, audit, tasks)
        prepared = gather_outcomes(each_file(prepare, entries, audit.jobs, progress))
        if prepared.diagnostics:
            raise Unmeasured(prepared.diagnostics)
        cases = sum(prepared.value or (), ())
        one = partial(_one_target, folder, results, cases, progress)
        with ThreadPoolExecutor(audit.jobs) as pool:  # each waits for a child process
            found = pool.map(one, options.targets)
            try:
                return tuple(found)
            except BaseException:
                runners.end_all()
                raise


def steps(entries: Iterable[Entry], options: Options) -> int:
    """The number of times :func:`run` reports progress: per file, and per file and
    target."""
    return len(tuple(entries)) * (1 + len(options.targets))


def rules_with_candidates(
    options: Options, rule: str, entry: Entry
) -> Outcome[tuple[tuple[Chosen, tuple[Tried, ...]], ...]]:
    """The rules of that name with their selected forms and the candidates tried."""
    from gradspec.stabilise.choice import listening

    with listening() as heard:
        stable = tuple(one for _, one in _rules(entry, options, (rule,)))
    return Outcome(tuple((one, tuple(heard)) for one in stable))


# --- points and truths ---------------------------------------------------------------


def _cases(
    folder: Path,
    options: Options,
    audit: AuditOptions,
    tasks: dict[str, str],
    entry: Entry,
) -> Outcome[tuple[Case, ...]]:
    """The cases of a file's rules, which have just been compiled."""
    from gradspec.measure.truths import Request, prepare

    with use_shelf(cache.rules()):
        rules = tuple(_rules(entry, options, audit.rules))
    cases = (
        prepare(
            checked,
            stable.rule,
            Request(dtype, audit.points, audit.order, audit.sides),
            folder,
            f"{tasks[entry.display]}-{number}-{dtype}",
        )
        for number, (checked, stable) in enumerate(rules)
        for dtype in audit.dtypes
    )
    return Outcome(tuple(case for case in cases if case is not None))


def _rules(
    entry: Entry, options: Options, names: tuple[str, ...]
) -> Iterator[tuple[Judged, Chosen]]:
    """A file's rules (those named, if any are), as written and as selected; the file
    has been compiled without errors.
    """
    from gradspec.driver.load import load
    from gradspec.pipeline import check_module, with_evaluations

    source = read_entry(entry).value
    module = load(source, entry.root).module if source else None
    if module is None:
        return
    wanted = tuple(rule for rule in module.rules if not names or rule.name in names)
    checked, _ = check_module(replace(module, rules=wanted), options)
    for one in checked:
        yield one, with_evaluations(one, options)


# --- targets -------------------------------------------------------------------------


def _one_target(
    folder: Path,
    results: tuple[FileResult, ...],
    cases: tuple[Case, ...],
    progress: Progress,
    target: str,
) -> TargetAudit:
    from gradspec.measure.truths import findings

    runner = runners.runner_of(target)
    if absent := runners.missing(target, runner):
        return TargetAudit(target, (), absent=absent)
    own = folder / target
    own.mkdir()
    paths = {
        result.display: str(put(own, module))
        for result in results
        for module in result.modules
        if module.target == target
    }
    here = tuple(
        case
        for case in cases
        if case.display in paths and (target, case.dtype) != ("numpy", "bfloat16")
    )
    display = {case.key: case.display for case in here}
    last = {name: key for key, name in display.items()}
    faults: list[tuple[str, str, str, str]] = []
    rules = {case.key: (case.rule, case.dtype) for case in here}

    def heard(line: dict[str, Any]) -> None:
        key = line["key"]
        faults.extend((*rules[key], *fault) for fault in line["faults"].items())
        if key in last.values():
            progress(display[key])

    job = {
        "kind": "audit",
        "folder": str(own),
        "cases": [{**c.job, "module": paths[c.display]} for c in here],
    }
    failed = runners.run(runner, job, own / "audit.job", LONGEST_SECONDS, heard)
    if failed:
        return TargetAudit(target, (), (("", "", "", failed),))
    found = tuple(f for case in here for f in findings(case, target, folder, own))
    return TargetAudit(target, found, tuple(faults))
