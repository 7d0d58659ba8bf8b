"""Emitted modules, imported from their files: each folder as a package of its own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

RUNTIME = "_gradspec.py"


def root_of(path: Path) -> Path:
    """The folder that holds the module's runtime."""
    return next((p for p in path.parents if (p / RUNTIME).is_file()), path.parent)


def import_file(path: str, prefix: str = "emitted") -> ModuleType:
    """The module at ``path``. Its package has a name of its own, which begins with
    ``prefix``: the same file under two prefixes is two modules.
    """
    root = root_of(Path(path))
    parts = Path(path).relative_to(root).with_suffix("").parts
    package = prefix + "".join(c if c.isalnum() else "_" for c in str(root))
    if package not in sys.modules:
        holder = ModuleType(package)
        holder.__path__ = [str(root)]
        sys.modules[package] = holder
    importlib.invalidate_caches()
    return importlib.import_module(".".join([package, *parts]))
