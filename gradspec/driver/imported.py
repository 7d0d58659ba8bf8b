"""Importing a generated text as a module, from a file that stays."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from gradspec.driver import cache
from gradspec.driver.write import OutputFile, write


def import_text(stem: str, target: str, text: str) -> ModuleType:
    """The module of ``text``; the same text gives the same module object."""
    digest = cache.digest(text)[:16]
    name = f"gradspec_{target}_{stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    folder = (cache.folder() or Path(tempfile.mkdtemp(prefix="gradspec-"))) / "modules"
    write(folder, (OutputFile(f"{name}.py", text),))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {folder / name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
