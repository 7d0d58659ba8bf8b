"""Emitted modules on disk with the runtime that they import, and imported from
there."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

from gradspec.driver import cache
from gradspec.driver.write import CannotWrite, OutputFile, needed, write
from gradspec.targets.target import Emitted
from gradspec.trial.loading import imported


def import_module(emitted: Emitted) -> ModuleType:
    """The module, from a file that stays, so that tools which read source text find it;
    the same texts give the same module object.
    """
    runtime = needed(emitted.target, emitted.runtime)
    digest = cache.digest("\0".join([emitted.text, *runtime.values()]))[:16]
    below = Path("modules", f"{emitted.target}_{digest}")
    root = (cache.folder() or _own_folder()) / below
    try:
        path = put(root, emitted)
    except CannotWrite:
        root = _own_folder() / below
        path = put(root, emitted)
    for compiled in root.rglob("__pycache__"):  # no digest vouches for what is there
        shutil.rmtree(compiled, ignore_errors=True)
    return imported(str(path), "gradspec")


@functools.cache
def _own_folder() -> Path:
    """Of this process alone, and gone with it: no other user can put modules there."""
    folder = tempfile.mkdtemp(prefix="gradspec-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def put(root: Path, emitted: Emitted) -> Path:
    """Write the module below ``root`` and its runtime there; gives the module's
    path."""
    texts = {
        emitted.path: emitted.text,
        **needed(emitted.target, emitted.runtime),
    }
    write(root, [OutputFile(path, text) for path, text in texts.items()])
    return root / emitted.path
