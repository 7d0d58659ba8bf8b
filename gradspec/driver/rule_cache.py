"""Results of single rules on disk, beside those of whole files (`cache.py`): in a file
that has changed, the rules that have not cost nothing again.

A name holds all that a result depends on, so entries are never wrong, only missing; they
are written whole (a rename), so that workers share them. The folder's name is the digest
of the tool itself.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from gradspec.driver import cache
from gradspec.driver.write import replace_text

MAX_ENTRIES = 20_000
_TOOLS = 3
"""Versions of the tool whose results stay."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A shelf (`ir.shelf.Shelf`) that is a folder."""

    path: Path

    def get(self, name: str) -> str | None:
        try:
            return (self.path / f"{name}.json").read_text("utf-8")
        except (OSError, ValueError):
            return None

    def put(self, name: str, text: str) -> None:
        """A cache that cannot be written is no reason to fail."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            replace_text(self.path / f"{name}.json", text)
        except OSError:
            return


def shelf() -> Folder | None:
    """That of this version; None where the cache is turned off."""
    base = cache.folder()
    return None if base is None else Folder(base / "rules" / cache.tool()[:16])


def prune() -> None:
    """Drop the results of older versions, and the oldest beyond `MAX_ENTRIES`."""
    own = shelf()
    if own is None:
        return
    try:
        tools = sorted(own.path.parent.iterdir(), key=_age)
        for folder in tools[: max(0, len(tools) - _TOOLS)]:
            shutil.rmtree(folder, ignore_errors=True)
        entries = sorted(own.path.glob("*.json"), key=_age)
        for path in entries[: max(0, len(entries) - MAX_ENTRIES)]:
            path.unlink(missing_ok=True)
    except OSError:
        return


def _age(path: Path) -> float:
    return path.stat().st_mtime
