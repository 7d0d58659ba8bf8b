"""The files whose rules are pinned, and how they are compiled: by the public interface.

Only `module` imports what is emitted.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import gradspec
from gradspec.api import CompileResult
from tests.corpus.texts import IS_WHOLE, is_tried, names, only

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class File:
    """A file, by its path below the root. ``as_written``: without a search for more
    accurate evaluations; ``is_shared``: only some of its rules are tried, because
    their proofs take long.
    """

    name: str
    as_written: bool = False
    is_shared: bool = False

    @property
    def path(self) -> Path:
        return ROOT / self.name

    def rules(self, whole: bool = IS_WHOLE) -> tuple[str, ...]:
        """The names of those that are tried."""
        tried = whole or not self.is_shared
        return tuple(n for n in names(self.path) if tried or is_tried(n))

    def placed(self, folder: Path, whole: bool = IS_WHOLE) -> Path:
        """Where the file with the rules that are tried is."""
        if whole or not self.is_shared:
            return self.path
        place = folder / self.name
        place.parent.mkdir(parents=True, exist_ok=True)
        text = only(self.path.read_text("utf-8"), self.rules(whole))
        place.write_text(text, "utf-8")
        return place


def _files(pattern: str, as_written: bool, is_shared: bool = False) -> tuple[File, ...]:
    names = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob(pattern))
    return tuple(File(name, as_written, is_shared) for name in names)


SHIPPED = _files("rules/**/*.grad", False)
CASES = _files("tests/cases/*/input.grad", False)
CORPUS = _files("tests/corpus/rules/*.grad", True)
RANKED = _files("tests/corpus/ranked/rules/*.grad", True, True)
EVERY = (*SHIPPED, *CASES, *CORPUS, *RANKED)


def compiled(file: File, path: Path, out: Path) -> CompileResult:
    """The file at ``path``, for NumPy."""
    return gradspec.compile_paths(path, "numpy", out, as_written=file.as_written)


def module(file: File, path: Path, target: str) -> ModuleType:
    """The emitted module. Evaluations are searched for where NumPy's are, too: for each
    further target that takes a minute.
    """
    as_written = file.as_written or target != "numpy"
    with warnings.catch_warnings():  # they have a table of their own
        warnings.simplefilter("ignore", gradspec.GradspecWarning)
        return gradspec.load(path, target, as_written=as_written)
