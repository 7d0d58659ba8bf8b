"""Putting modules on disk: only what changed, and each file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gradspec.diagnostics import Diagnostic, error
from gradspec.driver.runtimes import package_text


class CannotWrite(Exception):
    """The operating system refused a file; the message names it and gives the reason."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file below the output folder and the text that it should have."""

    path: str
    text: str


def with_packages(files: Iterable[OutputFile]) -> tuple[OutputFile, ...]:
    """The files and an ``__init__.py`` for every folder, so that they can be imported, and
    the marker of a typed package (PEP 561).
    """
    files = tuple(files)
    if not files:
        return ()
    folders = {
        parent.as_posix()
        for file in files
        for parent in PurePosixPath(file.path).parents
    }

    def text(folder: str) -> str:
        return package_text("" if "/" in folder else folder)

    packages = (
        OutputFile((PurePosixPath(folder) / "__init__.py").as_posix(), text(folder))
        for folder in sorted(folders)
    )
    return (*packages, OutputFile("py.typed", ""), *files)


def stale(out: Path, files: Iterable[OutputFile]) -> tuple[OutputFile, ...]:
    """Those whose text on disk differs (or which are missing). An ``__init__.py`` that
    exists is the user's, whatever it holds.
    """
    return tuple(file for file in files if not _is_current(out / file.path, file))


def write(out: Path, files: Iterable[OutputFile]) -> tuple[OutputFile, ...]:
    """Write the stale ones; gives those that were written. Raises `CannotWrite`."""
    written = stale(out, files)
    for file in written:
        path = out / file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, file.text)
        except OSError as fault:
            reason = fault.strerror or type(fault).__name__
            raise CannotWrite(f"cannot write {path}: {reason}") from fault
    return written


def replace_text(path: Path, text: str) -> None:
    """Write through a temporary neighbour and a rename: no reader, and no interrupt,
    ever sees half a file.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_current(path: Path, file: OutputFile) -> bool:
    if not path.is_file():
        return False
    if path.name == "__init__.py":
        return True
    return path.read_bytes() == file.text.encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def not_up_to_date(path: str) -> Diagnostic:
    return error(
        "GS610",
        f"{path} is not what its rules compile to",
        help="run the same command without --check, and commit the result",
    )
