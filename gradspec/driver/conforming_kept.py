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
from gradspec.trial.features import Feature

Key = tuple[str, ...]
"""The module's path, the rule, the way, the feature."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The cells of earlier runs on a shelf; none without one."""

    shelf: cache.Shelf | None = None

    def recall(
        self, target: str, features: tuple[Feature, ...], module: dict[str, Any]
    ) -> frozenset[Key]:
        """The cells of one module that were ok in a group of features."""
        if self.shelf is None:
            return frozenset()

        def keys(cells: list[list[str]]) -> frozenset[Key]:
            return frozenset((module["path"], *map(str, cell)) for cell in cells)

        found = self.shelf.get(_name(target, features, module), keys)
        return found or frozenset()

    def keep(
        self,
        target: str,
        features: tuple[Feature, ...],
        module: dict[str, Any],
        good: Iterable[Key],
    ) -> None:
        """Keep the cells of one module that are ok."""
        if self.shelf is None:
            return
        cells = sorted(key[1:] for key in good if key[0] == module["path"])
        self.shelf.put(_name(target, features, module), cells)
        self.shelf.prune()


NOTHING = Kept()


def kept() -> Kept:
    """In the user's cache folder, if there is to be one."""
    return Kept(cache.cells())


def _name(target: str, features: tuple[Feature, ...], module: dict[str, Any]) -> str:
    """All that a cell rests on, but for the place of the module."""
    rests = {
        "python": [sys.version, platform.machine()],
        "framework": _version(FRAMEWORKS[target][0]),
        "features": [asdict(feature) for feature in features],
        "text": Path(module["path"]).read_text("utf-8"),
        "rules": module["rules"],
    }
    return json.dumps(rests, sort_keys=True)


def _version(package: str) -> list[str]:
    names = metadata.packages_distributions().get(package, [package])
    return [f"{name} {metadata.version(name)}" for name in sorted({*names})]
