"""Cells of the conformance matrix that were ok, kept in the user's cache folder.

A cell rests on the emitted text, the call, the feature and the framework: while all of
these are the same it stays ok. What was not ok is tried again each time.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gradspec.driver import cache
from gradspec.driver.trials import FRAMEWORKS
from gradspec.driver.write import replace_text
from gradspec.trial.feature import Feature

MAX_ENTRIES = 1000

Key = tuple[str, ...]
"""The module's path, the rule, the way, the feature."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The cells of earlier runs in a folder; none without one."""

    folder: Path | None = None

    def recall(
        self, target: str, features: tuple[Feature, ...], module: dict[str, Any]
    ) -> frozenset[Key]:
        """The cells of one module that were ok in a group of features."""
        if self.folder is None:
            return frozenset()
        try:
            path = self.folder / _name(target, features, module)
            found = json.loads(path.read_text("utf-8"))
            return frozenset((module["path"], *map(str, cell)) for cell in found)
        except (OSError, ValueError, TypeError):
            return frozenset()

    def keep(
        self,
        target: str,
        features: tuple[Feature, ...],
        module: dict[str, Any],
        good: Iterable[Key],
    ) -> None:
        """A folder that cannot be written is no reason to fail."""
        if self.folder is None:
            return
        cells = sorted(key[1:] for key in good if key[0] == module["path"])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / _name(target, features, module)
            replace_text(path, json.dumps(cells))
            _prune(self.folder)
        except OSError:
            return


NOTHING = Kept()


def kept() -> Kept:
    """In the user's cache folder, if there is to be one."""
    base = cache.folder()
    return Kept(base / "conformance" if base else None)


def _prune(folder: Path) -> None:
    """Drop the oldest entries beyond `MAX_ENTRIES`."""
    entries = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in entries[: max(0, len(entries) - MAX_ENTRIES)]:
        path.unlink(missing_ok=True)


def _name(target: str, features: tuple[Feature, ...], module: dict[str, Any]) -> str:
    """All that a cell rests on, but for the place of the module."""
    rests = {
        "tool": cache.tool(),
        "python": [sys.version, platform.machine()],
        "framework": _version(FRAMEWORKS[target][0]),
        "features": [asdict(feature) for feature in features],
        "text": Path(module["path"]).read_text("utf-8"),
        "rules": module["rules"],
    }
    return f"{cache.digest(json.dumps(rests, sort_keys=True))}.json"


def _version(package: str) -> list[str]:
    names = metadata.packages_distributions().get(package, [package])
    return [f"{name} {metadata.version(name)}" for name in sorted({*names})]
