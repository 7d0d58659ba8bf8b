"""The conformance suite: emitted modules through every feature of their frameworks.

Each group of features has a process of its own. One that dies costs the cell that it
was at: the rest goes on in another.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec.driver.conforming_kept import NOTHING, Kept, kept
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.imported import put
from gradspec.driver.results import FileResult
from gradspec.driver.run import compile_source
from gradspec.driver.runners import running
from gradspec.driver.trials import FRAMEWORKS, RUNNERS
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets.target import Emitted
from gradspec.trial.features import FEATURES, Feature

MARKERS = Path(__file__).parent.parent / "trial" / "markers.grad"
CELL_SECONDS = 240.0
"""Time limit of a cell: compilers start slowly, but beyond this one hangs."""

EVERY, DOUBTED = ("rule", "plain"), ("rule", "doubt")
"""Ways in which a rule is run: always beside plain code, or only where the rule
failed."""

DIFFERENTIATING = ("torch", "tf", "jax")
"""The targets that have plain code to compare with."""

LIVES = 12
"""Processes that one group of features may use."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``state``: ok, error, dropped, wrong, or none where the feature asks for
    something that the rule has not (a forward derivative, a second one). ``plain`` is
    the same for the forward expression in framework code that is differentiated without
    a rule.
    """

    rule: str
    feature: str
    state: str
    message: str = ""
    plain: str = "none"
    plain_message: str = ""

    @property
    def failed(self) -> bool:
        """True for an error, unless plain code has it as well: that is the framework's
        own."""
        if self.state in ("ok", "none"):
            return False
        return self.state != "error" or self.plain in ("ok", "none")


@dataclass(frozen=True, slots=True)
class Matrix:
    """One target; ``absent`` says what is missing where it cannot be imported."""

    target: str
    features: tuple[str, ...]
    rules: tuple[str, ...]
    cells: tuple[Cell, ...]
    absent: str = ""

    @property
    def failed(self) -> bool:
        return any(cell.failed for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Subject:
    """Modules by target, the calls of their rules, and in which ways they are run: as
    rules, and as plain code ("plain"; "doubt": only where the rule failed).
    """

    modules: dict[str, Emitted]
    cases: tuple[dict[str, Any], ...]
    ways: tuple[str, ...] = EVERY


def markers(options: Options) -> Subject:
    """The built-in rules, compiled."""
    source = Source(MARKERS.name, MARKERS.read_text("utf-8"))
    result, _ = compile_source(source, MARKERS.name, options)
    assert not result.failed, [d.headline for d in result.diagnostics]
    return Subject({m.target: m for m in result.modules}, cases(source, ".", options))


def subjects(
    entries: Iterable[Entry], results: Iterable[FileResult], options: Options
) -> Iterator[Subject]:
    """The user's own rules, which have been compiled."""
    for entry, result in zip(entries, results, strict=True):
        source = read_entry(entry).value
        if source is not None:
            modules = {m.target: m for m in result.modules}
            yield Subject(modules, cases(source, entry.root, options), DOUBTED)


def cases(source: Source, root: str, options: Options) -> tuple[dict[str, Any], ...]:
    """The calls of the rules of a file that are emitted."""
    from gradspec import pipeline
    from gradspec.driver.load import load
    from gradspec.plan.gradients import is_linear
    from gradspec.plan.planning import plan_module
    from gradspec.trial.conformance import conformance_case

    module = load(source, root).module
    checked = pipeline.check_module(module, options)[0] if module else ()
    linear = {p.name: is_linear(p) for p in plan_module(source, tuple(checked)).rules}
    rules = (one.rule for one in checked if one.rule.name in linear)
    found = (conformance_case(rule, linear[rule.name]) for rule in rules)
    return tuple(case for case in found if case is not None)


# --- running -------------------------------------------------------------------------


def run(
    given: Iterable[Subject], options: Options, progress: Callable[[str], None]
) -> tuple[Matrix, ...]:
    """Every rule of the subjects on every target; cells that were ok are not run
    again."""
    given = tuple(given)
    found = []
    for target in options.targets:
        found.append(matrix(target, given, FEATURES.get(target, ()), kept()))
        progress(target)
    return tuple(found)


def matrix(
    target: str,
    given: tuple[Subject, ...],
    features: tuple[Feature, ...],
    before: Kept = NOTHING,
) -> Matrix:
    """Every rule of the subjects through some features of one target."""
    framework, _, install = FRAMEWORKS.get(target, ("", "", ""))
    if not features or importlib.util.find_spec(framework) is None:
        absent = f"{framework} is not installed ({install})" if framework else ""
        absent = absent or f"there is no conformance suite for {target}"
        return Matrix(target, (), (), (), absent)
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        modules = list(_modules(Path(folder) / target, target, given))
        for group, members in groupby(features, lambda feature: feature.group):
            place = Path(folder) / f"{target}-{group}"
            cells += _group(place, target, tuple(members), modules, before)
    rules = tuple(dict.fromkeys(c["rule"] for m in modules for c in m["rules"]))
    return Matrix(target, tuple(f.name for f in features), rules, tuple(cells))


def _modules(
    folder: Path, target: str, given: tuple[Subject, ...]
) -> Iterator[dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    for number, subject in enumerate(given):
        emitted = subject.modules.get(target)
        if emitted is None:
            continue
        path = put(folder / f"rules_{number}", emitted)
        rules = [c for c in subject.cases if f"\ndef {c['rule']}(" in emitted.text]
        ways = subject.ways if target in DIFFERENTIATING else ("rule",)
        rules = [_in_a_way(case, way) for case in rules for way in ways]
        yield {"path": str(path), "rules": rules, "doubt": "doubt" in ways}


def _in_a_way(case: dict[str, Any], way: str) -> dict[str, Any]:
    """The rule itself, or plain code in its place."""
    if way == "rule":
        return {**case, "way": way}
    return {**case, "way": "plain", "applies": case, **case["bare"]}


def _group(
    place: Path,
    target: str,
    features: tuple[Feature, ...],
    modules: list[dict[str, Any]],
    before: Kept,
) -> Iterator[Cell]:
    """The cells of one group; a cell at which a process died is an error."""
    result = place.with_suffix(".result")
    result.touch()
    known = (before.recall(target, features, module) for module in modules)
    ok = {"state": "ok", "message": ""}
    done = {key: ok for keys in known for key in keys}
    for _ in range(LIVES):
        left = _left(features, modules, done)
        if not left:
            break
        message = _child(place, target, features, modules, left, done)
        done = _read(result, message) | done
    good = [key for key, line in done.items() if line["state"] == "ok"]
    for module in modules:
        before.keep(target, features, module, good)
        for case in module["rules"]:
            if case["way"] == "rule":
                for feature in features:
                    yield _cell(module, case, feature, done)


_COARSE = "half precision has too few digits for this call, in plain code as well"


def _cell(
    module: dict[str, Any],
    case: dict[str, Any],
    feature: Feature,
    done: dict[tuple[str, ...], dict[str, Any]],
) -> Cell:
    rule = case["rule"]
    if not _applies(case, feature):
        return Cell(rule, feature.name, "none")
    unreached = {"state": "error", "message": "it was not reached"}
    line = done.get((module["path"], rule, "rule", feature.name), unreached)
    cell = Cell(rule, feature.name, line["state"], line["message"])
    ways = [c["way"] for c in module["rules"] if c["rule"] == rule]
    if "plain" not in ways or (module["doubt"] and cell.state == "ok"):
        return cell
    plain = done.get((module["path"], rule, "plain", feature.name), unreached)
    cell = replace(cell, plain=plain["state"], plain_message=plain["message"])
    if feature.half and cell.state == cell.plain == "wrong":
        return replace(cell, state="error", message=f"{_COARSE}: {cell.message}")
    return cell


def _applies(case: dict[str, Any], feature: Feature) -> bool:
    """True if the feature applies to the rule, or to plain code. A feature needs a
    gradient that can be lost.
    """
    case = case.get("applies", case)
    if not case["first"]:
        return False
    if (feature.forward and not case["linear"]) or (
        feature.exact and not case["exact"]
    ):
        return False
    wanted = {2: "second", 3: "third"}.get(feature.order, "first")
    return case[wanted] is not None and (
        case["second"] is not None or not feature.smooth
    )


def _left(
    features: tuple[Feature, ...],
    modules: list[dict[str, Any]],
    done: dict[tuple[str, ...], dict[str, Any]],
) -> list[tuple[str, ...]]:
    wanted = (
        (module["path"], case["rule"], case["way"], feature.name)
        for module in modules
        for case in module["rules"]
        for feature in features
        if _applies(case, feature) and _wanted(module, case, feature, done)
    )
    return [key for key in wanted if key not in done]


def _wanted(
    module: dict[str, Any],
    case: dict[str, Any],
    feature: Feature,
    done: dict[tuple[str, ...], dict[str, Any]],
) -> bool:
    """True if the cell is due: plain code may be needed only where its rule has
    failed."""
    if case["way"] == "rule" or not module["doubt"]:
        return True
    rule = done.get((module["path"], case["rule"], "rule", feature.name))
    return rule is not None and rule["state"] != "ok"


def _child(
    place: Path,
    target: str,
    features: tuple[Feature, ...],
    modules: list[dict[str, Any]],
    left: list[tuple[str, ...]],
    done: dict[tuple[str, ...], dict[str, Any]],
) -> str:
    """Run what is left; why the process ended, if it did before its work was done."""
    table = [
        {"name": f.name, "order": f.order, "half": f.half, "double": f.double}
        for f in features
    ]
    every = [
        [m["path"], c["rule"], c["way"], f.name]
        for m in modules
        for c in m["rules"]
        for f in features
    ]
    skipped = [key for key in every if tuple(key) not in left]
    job = place.with_suffix(".job")
    job.write_text(
        json.dumps({"modules": modules, "features": table, "done": skipped}), "utf-8"
    )
    runner = RUNNERS / f"conforming_{target}.py"
    result, log = place.with_suffix(".result"), place.with_suffix(".log")
    with log.open("w") as told, running(runner, (job, result), told, told) as child:
        if not _in_time(child, result):
            return "it took too long"
    last = (log.read_text("utf-8").strip().splitlines() or ["no message"])[-1]
    return f"the process ended with {child.returncode}: {last[:160]}"


def _in_time(child: subprocess.Popen[str], result: Path) -> bool:
    """Wait until the process ends; False when a cell takes too long."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        if (now := result.stat().st_size) != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > CELL_SECONDS:
            return False
        time.sleep(0.05)
    return True


def _read(result: Path, message: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Each cell's last line; one that was only started is where the process ended."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for text in result.read_text("utf-8").splitlines():
        line = json.loads(text)
        found[tuple(line["key"])] = line
    for line in found.values():
        if line["state"] == "started":
            line.update(state="error", message=message)
    return found
