"""Importing an emitted module, from files that stay."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from gradspec.driver import cache, runtimes
from gradspec.driver.write import OutputFile, write
from gradspec.targets.target import Emitted


def import_module(emitted: Emitted) -> ModuleType:
    """The module, in a package of its own with the runtime that it imports; the same
    texts give the same module object.
    """
    runtime = runtimes.needed(emitted.target, emitted.runtime)
    digest = cache.digest("\0".join([emitted.text, *runtime.values()]))[:16]
    package = f"gradspec_{emitted.target}_{digest}"
    stem = Path(emitted.path).stem
    name = f"{package}.{stem}"
    if name in sys.modules:
        return sys.modules[name]
    texts = {"__init__.py": "", **runtime, f"{stem}.py": emitted.text}
    base = cache.folder() or Path(tempfile.mkdtemp(prefix="gradspec-"))
    folder = base / "modules" / package
    write(folder, (OutputFile(name, text) for name, text in texts.items()))
    if package not in sys.modules:
        _imported(package, folder / "__init__.py", [str(folder)])
    return _imported(name, folder / f"{stem}.py")


def _imported(name: str, path: Path, search: list[str] | None = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=search
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
