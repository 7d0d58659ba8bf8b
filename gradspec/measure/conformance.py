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
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from gradspec.driver import cache
from gradspec.driver.run import compile_source
from gradspec.measure.features import FEATURES, Feature, applies
from gradspec.measure.jobs import FRAMEWORKS, Case, Framework, Subject, cases, subjects
from gradspec.options import Options
from gradspec.source import Source

MARKERS = Path(__file__).parent / "markers.grad"
CELL_SECONDS = 240.0
"""Time limit of a cell: compilers start slowly, but beyond this one hangs."""

EVERY, DOUBTED = ("rule", "plain"), ("rule", "doubt")
"""Ways in which a rule is run: always beside plain code, or only where the rule
failed."""

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


def markers(options: Options) -> Subject:
    """The built-in rules, compiled."""
    source = Source(MARKERS.name, MARKERS.read_text("utf-8"))
    result, _ = compile_source(source, MARKERS.name, options)
    assert not result.failed, [d.headline for d in result.diagnostics]
    found = cases(source, ".", options, True).value or ()
    return subjects([result], [found])[0]


# --- running -------------------------------------------------------------------------


def run(
    given: Iterable[Subject], options: Options, progress: Callable[[str], None]
) -> tuple[Matrix, ...]:
    """Every rule of the subjects on every target, beside plain code where it failed;
    cells that were ok are not run again."""
    given = tuple(given)
    found = []
    for target in options.targets:
        features = FEATURES.get(target, ())
        found.append(matrix(target, given, features, DOUBTED, kept=cache.cells()))
        progress(target)
    return tuple(found)


def matrix(
    target: str,
    given: tuple[Subject, ...],
    features: tuple[Feature, ...],
    ways: tuple[str, ...] = EVERY,
    *,
    kept: cache.Shelf | None = None,
    runner: Path | None = None,
) -> Matrix:
    """Every rule of the subjects through some features of one target, which the
    ``runner`` has functions for; ``kept`` has the cells that were ok."""
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder:
        framework = Framework.of(target, Path(folder), runner)
        if absent := framework.missing:
            return Matrix(target, (), (), (), absent)
        modules = framework.modules(given)
        # NumPy has no derivatives with which plain code could be compared
        ways = ("rule",) if target == "numpy" else ways
        for _, members in groupby(features, lambda feature: feature.group):
            cells += _Group(framework, ways, tuple(members), modules).run(kept)
    rules = tuple(dict.fromkeys(c["rule"] for m in modules for c in m["cases"]))
    return Matrix(target, tuple(f.name for f in features), rules, tuple(cells))


_COARSE = "half precision has too few digits for this call, in plain code as well"


@dataclass(frozen=True, slots=True)
class _Group:
    """The features of one process, by which all rules are taken; ``done`` has what came
    out."""

    framework: Framework
    ways: tuple[str, ...]
    features: tuple[Feature, ...]
    modules: list[Case]
    done: dict[Key, Line] = field(default_factory=dict)

    def run(self, kept: cache.Shelf | None) -> Iterator[Cell]:
        """The cells; one at which a process died is an error."""
        if kept is not None:
            self._recall(kept)
        for _ in range(LIVES):
            if not (left := self._remaining()):
                break
            reason = self.framework.do(
                *("conformance", self.modules, self._hear, CELL_SECONDS),
                features=[asdict(feature) for feature in self.features],
                left=left,
            )
            for line in self.done.values():
                if line["state"] == "started":
                    line.update(state="error", message=reason or "the process ended")
        if kept is not None:
            self._keep(kept)
        for module in self.modules:
            for case in module["cases"]:
                for feature in self.features:
                    yield self._cell(module, case, feature)

    def _hear(self, line: Line) -> None:
        self.done[tuple(line["key"])] = line

    def _remaining(self) -> list[Key]:
        return [
            key
            for module in self.modules
            for way in self.ways  # what plain code leaves behind harms no rule
            for case in module["cases"]
            for feature in self.features
            if applies(feature, case)
            and (key := _key(module, case, way, feature)) not in self.done
            and self._is_due(way, key)
        ]

    def _is_due(self, way: str, key: Key) -> bool:
        """True unless it is plain code that may be needed only where its rule has
        failed, and that has not."""
        rule = self.done.get((*key[:2], "rule", key[3]), {"state": "ok"})
        return way != "doubt" or rule["state"] != "ok"

    def _cell(self, module: Case, case: Case, feature: Feature) -> Cell:
        if not applies(feature, case):
            return Cell(case["rule"], feature.name, "none")
        unreached = {"state": "error", "message": "it was not reached"}
        line, plain = (
            self.done.get(_key(module, case, way, feature), unreached)
            for way in ("rule", "plain")
        )
        cell = Cell(case["rule"], feature.name, line["state"], line["message"])
        if len(self.ways) == 1 or (self.ways == DOUBTED and cell.state == "ok"):
            return cell
        cell = replace(cell, plain=plain["state"], plain_message=plain["message"])
        if feature.half and cell.state == cell.plain == "wrong":
            return replace(cell, state="error", message=f"{_COARSE}: {cell.message}")
        return cell

    # --- cells that were ok ----------------------------------------------------------

    def _recall(self, kept: cache.Shelf) -> None:
        for module in self.modules:
            for key in kept.get(self._name(module), _keys) or ():
                self.done[module["path"], *key] = {"state": "ok", "message": ""}

    def _keep(self, kept: cache.Shelf) -> None:
        for module in self.modules:
            good = (key for key, line in self.done.items() if line["state"] == "ok")
            cells = sorted(key[1:] for key in good if key[0] == module["path"])
            kept.put(self._name(module), cells)
            kept.prune()

    def _name(self, module: Case) -> str:
        """All that a cell rests on, but for the place of the module."""
        package = FRAMEWORKS[self.framework.target][0]
        names = metadata.packages_distributions().get(package, [package])
        rests = {
            "python": [sys.version, platform.machine()],
            "framework": [f"{n} {metadata.version(n)}" for n in sorted({*names})],
            "features": [asdict(feature) for feature in self.features],
            "text": Path(module["path"]).read_text("utf-8"),
            "rules": [module["cases"], self.ways],
        }
        return json.dumps(rests, sort_keys=True)


def _key(module: Case, case: Case, way: str, feature: Feature) -> Key:
    code = "rule" if way == "rule" else "plain"
    return module["path"], case["rule"], code, feature.name


def _keys(cells: list[list[str]]) -> list[Key]:
    return [tuple(map(str, cell)) for cell in cells]
