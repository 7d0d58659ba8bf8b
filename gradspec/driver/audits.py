"""Running audits: points and truths in workers, then a child process for each
target."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradspec.driver import cache
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.imported import put
from gradspec.driver.results import FileResult
from gradspec.driver.runners import end_all, running
from gradspec.driver.trials import FRAMEWORKS
from gradspec.driver.workers import Lost, each
from gradspec.ir.plain import shelved
from gradspec.options import AuditOptions, Options

if TYPE_CHECKING:
    from gradspec.audit.cases import Case, Finding
    from gradspec.ir.rule import CheckedRule
    from gradspec.stabilise.choice import Tried

RUNNERS = Path(__file__).parent.parent / "audit" / "runners"
Progress = Callable[[str], None]


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
    """Measure every elementwise rule of the compiled files on every target."""
    results = tuple(results)
    with tempfile.TemporaryDirectory(prefix="gradspec-") as name:
        folder = Path(name)
        cases = _cases(tuple(entries), folder, options, audit, progress)
        one = partial(_one_target, folder, results, cases, progress)
        with ThreadPoolExecutor(audit.jobs) as pool:  # each waits for a child process
            found = pool.map(one, options.targets)
            try:
                return tuple(found)
            except BaseException:
                end_all()
                raise


def steps(entries: Iterable[Entry], options: Options) -> int:
    """The number of times :func:`run` reports progress: per file, and per file and
    target."""
    return len(tuple(entries)) * (1 + len(options.targets))


def explained(
    entries: Iterable[Entry], options: Options, rule: str
) -> tuple[tuple[CheckedRule, tuple[Tried, ...]], ...]:
    """The rules of that name with their selected forms and the candidates tried."""
    from gradspec.stabilise.choice import listening

    found = []
    for entry in entries:
        with listening() as heard:
            stable = tuple(one for _, one in _rules(entry, options, (rule,)))
        found += [(one, tuple(heard)) for one in stable]
    return tuple(found)


# --- points and truths ---------------------------------------------------------------


def _cases(
    entries: tuple[Entry, ...],
    folder: Path,
    options: Options,
    audit: AuditOptions,
    progress: Progress,
) -> tuple[Case, ...]:
    work = partial(_of_file, folder, options, audit)
    tasks = tuple((str(number), entry) for number, entry in enumerate(entries))
    found: dict[int, tuple[Case, ...]] = {}
    with closing(each(work, tasks, audit.jobs)) as results:
        for number, cases in results:
            if isinstance(cases, Lost):
                raise RuntimeError(f"{entries[number].display}: {cases}")
            found[number] = cases
            progress(entries[number].display)
    return tuple(case for number in sorted(found) for case in found[number])


def _of_file(
    folder: Path, options: Options, audit: AuditOptions, task: tuple[str, Entry]
) -> tuple[Case, ...]:
    """The cases of a file's elementwise rules, which have just been compiled."""
    from gradspec.audit.cases import Request, prepare

    key, entry = task
    with shelved(cache.rules()):
        rules = tuple(_rules(entry, options, audit.rules))
    return tuple(
        prepare(
            checked,
            stable.rule,
            Request(dtype, audit.points, audit.order, audit.sides),
            folder,
            f"{key}-{number}-{dtype}",
        )
        for number, (checked, stable) in enumerate(rules)
        for dtype in audit.dtypes
    )


def _rules(
    entry: Entry, options: Options, names: tuple[str, ...]
) -> Iterator[tuple[CheckedRule, CheckedRule]]:
    """A file's elementwise rules (those named, if any are), as written and as selected;
    the file has been compiled without errors.
    """
    from gradspec import pipeline
    from gradspec.driver.load import load

    source = read_entry(entry).value
    module = load(source, entry.root).module if source else None
    if module is None:
        return
    scalar = (rule for rule in module.rules if rule.is_elementwise)
    wanted = tuple(rule for rule in scalar if not names or rule.name in names)
    checked, _ = pipeline.check_module(replace(module, rules=wanted), options)
    for one in checked:
        yield one, pipeline.evaluated(one, options)


# --- targets -------------------------------------------------------------------------


def _one_target(
    folder: Path,
    results: tuple[FileResult, ...],
    cases: tuple[Case, ...],
    progress: Progress,
    target: str,
) -> TargetAudit:
    framework, _, install = FRAMEWORKS.get(target, ("", "", ""))
    runner = RUNNERS / f"{target}_audit.py"
    if not framework or not runner.exists():
        return TargetAudit(target, (), absent=f"there is no audit for {target}")
    if importlib.util.find_spec(framework) is None:
        absent = f"{framework} is not installed ({install})"
        return TargetAudit(target, (), absent=absent)
    own = folder / target
    paths = _modules(own, target, results)
    here = tuple(
        case
        for case in cases
        if case.display in paths and (target, case.dtype) != ("numpy", "bfloat16")
    )
    job = {"cases": [{**c.job, "module": paths[c.display]} for c in here]}
    (own / "job.json").write_text(json.dumps(job), "utf-8")
    failed = _child(runner, own, here, progress)
    if failed:
        return TargetAudit(target, (), (("", "", "", failed),))
    return _collected(target, folder, own, here)


def _modules(own: Path, target: str, results: tuple[FileResult, ...]) -> dict[str, str]:
    paths = {}
    for result in results:
        for module in result.modules:
            if module.target == target:
                paths[result.display] = str(put(own, module))
    own.mkdir(parents=True, exist_ok=True)
    return paths


def _child(runner: Path, own: Path, cases: tuple[Case, ...], progress: Progress) -> str:
    """Run a runner to its end, reporting each finished file; the reason if it died."""
    display = {case.key: case.display for case in cases}
    last = [case.key for case in {c.display: c for c in cases}.values()]
    with (own / "errors.txt").open("w+", encoding="utf-8") as errors:
        arguments = own / "job.json", own
        with running(runner, arguments, subprocess.PIPE, errors) as child:
            for line in child.stdout or ():
                if line.strip() in last:
                    progress(display[line.strip()])
            child.wait()
        if child.returncode == 0:
            return ""
        errors.seek(0)
        return (errors.read().strip().splitlines() or ["no message"])[-1]


def _collected(
    target: str, folder: Path, own: Path, cases: tuple[Case, ...]
) -> TargetAudit:
    from gradspec.audit.cases import faults, findings

    found = tuple(f for case in cases for f in findings(case, target, folder, own))
    return TargetAudit(target, found, tuple(_faults(cases, own, faults)))


def _faults(
    cases: tuple[Case, ...], own: Path, faults: Callable[[Case, Path], dict[str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    for case in cases:
        for side, message in faults(case, own).items():
            yield case.rule, case.dtype, side, message
