"""The conformance suite: emitted modules through every feature of their frameworks.

Each group of features has a process of its own. One that dies costs the cell that it
was at: the rest goes on in another. Cells that were ok are kept in the user's cache
folder by all that they rest on: the emitted text, the call, the feature and the
framework. What was not ok is tried again each time.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec.driver import cache, runners
from gradspec.driver.cache import put
from gradspec.driver.run import compile_source
from gradspec.driver.trials import cases, runner_of
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets.target import Emitted
from gradspec.trial.features import FEATURES, Feature, applies

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

Key = tuple[str, ...]
"""A cell: the module's path, the rule, the way, the feature."""

Line = dict[str, Any]
"""A runner's result of a cell: its ``key``, ``state`` and ``message``."""


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
    found = cases(source, ".", options, True).value or ()
    return Subject({m.target: m for m in result.modules}, found)


# --- running -------------------------------------------------------------------------


def run(
    given: Iterable[Subject], options: Options, progress: Callable[[str], None]
) -> tuple[Matrix, ...]:
    """Every rule of the subjects on every target; cells that were ok are not run
    again."""
    given = tuple(given)
    found = []
    for target in options.targets:
        features = FEATURES.get(target, ())
        found.append(matrix(target, given, features, cache.cells()))
        progress(target)
    return tuple(found)


def matrix(
    target: str,
    given: tuple[Subject, ...],
    features: tuple[Feature, ...],
    kept: cache.Shelf | None = None,
) -> Matrix:
    """Every rule of the subjects through some features of one target; ``kept`` has the
    cells that were ok."""
    if absent := runners.missing(target, runner_of(target)):
        return Matrix(target, (), (), (), absent)
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        modules = list(_modules(Path(folder) / target, target, given))
        for group, members in groupby(features, lambda feature: feature.group):
            place = Path(folder) / f"{target}-{group}"
            cells += _group(place, target, tuple(members), modules, kept)
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
    kept: cache.Shelf | None,
) -> Iterator[Cell]:
    """The cells of one group; a cell at which a process died is an error."""
    done = _recalled(target, features, modules, kept)
    for _ in range(LIVES):
        left = _remaining(features, modules, done)
        if not left:
            break
        message = _child(place, target, features, modules, left, done)
        for line in done.values():
            if line["state"] == "started":
                line.update(state="error", message=message)
    if kept is not None:
        for module in modules:
            good = (key for key, line in done.items() if line["state"] == "ok")
            cells = sorted(key[1:] for key in good if key[0] == module["path"])
            kept.put(_name(target, features, module), cells)
            kept.prune()
    for module in modules:
        for case in module["rules"]:
            if case["way"] == "rule":
                for feature in features:
                    yield _cell(module, case, feature, done)


def _recalled(
    target: str,
    features: tuple[Feature, ...],
    modules: list[dict[str, Any]],
    kept: cache.Shelf | None,
) -> dict[Key, Line]:
    """The cells that were ok in an earlier run."""

    def keys(cells: list[list[str]]) -> list[Key]:
        return [tuple(map(str, cell)) for cell in cells]

    found: dict[Key, Line] = {}
    if kept is None:
        return found
    for module in modules:
        for key in kept.get(_name(target, features, module), keys) or ():
            found[module["path"], *key] = {"state": "ok", "message": ""}
    return found


def _name(target: str, features: tuple[Feature, ...], module: dict[str, Any]) -> str:
    """All that a cell rests on, but for the place of the module."""
    package = runners.FRAMEWORKS[target][0]
    names = metadata.packages_distributions().get(package, [package])
    rests = {
        "python": [sys.version, platform.machine()],
        "framework": [f"{name} {metadata.version(name)}" for name in sorted({*names})],
        "features": [asdict(feature) for feature in features],
        "text": Path(module["path"]).read_text("utf-8"),
        "rules": module["rules"],
    }
    return json.dumps(rests, sort_keys=True)


_COARSE = "half precision has too few digits for this call, in plain code as well"


def _cell(
    module: dict[str, Any],
    case: dict[str, Any],
    feature: Feature,
    done: dict[Key, Line],
) -> Cell:
    rule = case["rule"]
    if not applies(feature, case):
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


def _remaining(
    features: tuple[Feature, ...],
    modules: list[dict[str, Any]],
    done: dict[Key, Line],
) -> list[Key]:
    wanted = (
        (module["path"], case["rule"], case["way"], feature.name)
        for module in modules
        for case in module["rules"]
        for feature in features
        if applies(feature, case.get("applies", case))
        and _wanted(module, case, feature, done)
    )
    return [key for key in wanted if key not in done]


def _wanted(
    module: dict[str, Any],
    case: dict[str, Any],
    feature: Feature,
    done: dict[Key, Line],
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
    left: list[Key],
    done: dict[Key, Line],
) -> str:
    """Run what is left; why the process ended, if it did before its work was done."""

    def heard(line: Line) -> None:
        done[tuple(line["key"])] = line

    job = {
        "trial": False,
        "modules": modules,
        "features": [asdict(feature) for feature in features],
        "left": left,
    }
    reason = runners.run(runner_of(target), job, place, CELL_SECONDS, heard)
    return reason or "the process ended"
