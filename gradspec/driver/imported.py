"""Emitted modules on disk with the runtime that they import, and imported from there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType

from gradspec.driver import cache, runtimes
from gradspec.driver.write import OutputFile, write
from gradspec.targets.target import Emitted
from gradspec.trial.loading import imported


def import_module(emitted: Emitted) -> ModuleType:
    """The module, from a file that stays, so that tools which read source text find it;
    the same texts give the same module object.
    """
    runtime = runtimes.needed(emitted.target, emitted.runtime)
    digest = cache.digest("\0".join([emitted.text, *runtime.values()]))[:16]
    base = cache.folder() or Path(tempfile.gettempdir()) / "gradspec"
    folder = base / "modules" / f"{emitted.target}_{digest}"
    return imported(str(put(folder, emitted)), "gradspec")


def put(root: Path, emitted: Emitted) -> Path:
    """Write the module below ``root`` and its runtime there; gives the module's path."""
    texts = {
        emitted.path: emitted.text,
        **runtimes.needed(emitted.target, emitted.runtime),
    }
    write(root, [OutputFile(path, text) for path, text in texts.items()])
    return root / emitted.path
