"""Running trials: emitted modules into a temporary folder, a child process per
target."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.imported import put
from gradspec.driver.results import FileResult
from gradspec.driver.runners import running
from gradspec.options import Options

RUNNERS = Path(__file__).parent.parent / "trial" / "runners"
FRAMEWORKS = {
    "numpy": ("numpy", "numpy_trial.py", "pip install numpy scipy"),
    "torch": ("torch", "torch_trial.py", "pip install torch"),
    "tf": ("tensorflow", "tf_trial.py", "pip install tensorflow-cpu"),
    "jax": ("jax", "jax_trial.py", "pip install jax"),
}
LONGEST_SECONDS = 3600.0


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
    entries: Iterable[Entry],
    results: Iterable[FileResult],
    options: Options,
    progress: Callable[[str], None],
) -> tuple[TrialReport, ...]:
    """Try every rule of the compiled files on every target of the options."""
    results = tuple(results)
    cases = {e.display: _cases(e, options, _emitted(results)) for e in entries}
    reports, values = [], {}
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        for target in options.targets:
            job = _job(Path(folder), target, results, cases)
            report, found = _one_target(Path(folder), target, job)
            reports.append(report)
            values[target] = found
            progress(target)
    return (*reports, *_agreement(values))


def _emitted(results: Iterable[FileResult]) -> frozenset[tuple[str, str]]:
    """Files and functions that some target has: a rule with axes may be checked
    only."""
    return frozenset(
        (result.display, name)
        for result in results
        for module in result.modules
        for name in _functions(module.text)
    )


def _functions(text: str) -> list[str]:
    return re.findall(r"^def (\w+)\(", text, re.MULTILINE)


def _cases(
    entry: Entry, options: Options, emitted: frozenset[tuple[str, str]]
) -> dict[str, dict[str, Any]]:
    """The jobs of a file's own rules; the file has been compiled, so it has no
    faults."""
    from gradspec import pipeline
    from gradspec.driver.load import load
    from gradspec.trial.cases import trial_case

    source = read_entry(entry).value
    module = load(source, entry.root).module if source else None
    if module is None:
        return {}
    tried = tuple(r for r in module.rules if (entry.display, r.name) in emitted)
    return {
        c.rule.name: trial_case(c.rule)
        for c in pipeline.check_module(replace(module, rules=tried), options)[0]
    }


def _job(
    folder: Path,
    target: str,
    results: Iterable[FileResult],
    cases: dict[str, dict[str, dict[str, Any]]],
) -> dict[str, Any]:
    modules = []
    for result in results:
        for module in result.modules:
            if module.target == target:
                path = put(folder / target, module)
                functions = _functions(module.text)
                rules = [
                    case
                    for name, case in cases[result.display].items()
                    if name in functions
                ]
                modules.append(
                    {"display": result.display, "path": str(path), "rules": rules}
                )
    return {"modules": modules}


def _one_target(
    folder: Path, target: str, job: dict[str, Any]
) -> tuple[TrialReport, dict[tuple[str, str], Any]]:
    if target not in FRAMEWORKS:
        return TrialReport(target, 0, 0, (), f"there is no trial for {target}"), {}
    framework, runner, install = FRAMEWORKS[target]
    if importlib.util.find_spec(framework) is None:
        absent = f"{framework} is not installed ({install})"
        return TrialReport(target, 0, 0, (), absent), {}
    job_path, result_path = folder / f"{target}.json", folder / f"{target}.result.json"
    job_path.write_text(json.dumps(job), "utf-8")
    script, pipe = RUNNERS / runner, subprocess.PIPE
    with running(script, (job_path, result_path), subprocess.DEVNULL, pipe) as child:
        _, errors = child.communicate(timeout=LONGEST_SECONDS)
    if child.returncode != 0 or not result_path.exists():
        last = (errors.strip().splitlines() or ["no message"])[-1]
        fault = Failure(target, "", "", "the trial itself", "", last)
        return TrialReport(target, 0, 0, (fault,)), {}
    return _read(target, json.loads(result_path.read_text("utf-8")))


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
