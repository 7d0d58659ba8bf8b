"""The frame of all runners: emitted modules are imported from their files, each folder
as a package of its own; jobs are read, done and their results written.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

RUNTIME = "_gradspec.py"


def root_of(path: Path) -> Path:
    """The folder that holds the module's runtime."""
    return next((p for p in path.parents if (p / RUNTIME).is_file()), path.parent)


def imported(path: str, prefix: str = "emitted") -> ModuleType:
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


def work(setting: Any, features: Any) -> None:
    """Do the job of the command line in the framework of ``setting``, whose functions
    for features are ``features``. The job says which module does it.
    """
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    doer = importlib.import_module(f"gradspec.trial.runners.{job['by']}")
    doer.work(job, setting, features)


def report(line: object) -> None:
    """Add a result to the file that is the second argument of the command line."""
    with Path(sys.argv[2]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
