"""Files: emitted modules and their runtimes are written only if they have changed, and
each whole or not at all; regular files alone are read.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath

from gradspec.diagnostics import Diagnostic, Severity, error, warning
from gradspec.targets import TARGETS, target_named
from gradspec.targets.target import CORE, MARK
from gradspec.version import __version__

_VERSION = re.compile(rb'(?<="""Code shared by modules emitted by gradspec )\S+')
"""The version in the first line of a runtime; modules do not name it."""
_IMPORTED = re.compile(r"^from \.(_\w+) import", re.MULTILINE)
_PACKAGE = ("__init__.py", "py.typed")
_FRAMEWORKS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
"""Targets whose folder has the name of what their modules import."""


class CannotWrite(Exception):
    """The operating system refused a file; the message names it and gives the
    reason."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file below the output folder and the text that it should have."""

    path: str
    text: str


def with_packages(files: Iterable[OutputFile]) -> tuple[OutputFile, ...]:
    """The files and an ``__init__.py`` for every folder, so that they can be imported,
    and the marker of a typed package (PEP 561).
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


def stale(
    out: Path, files: Iterable[OutputFile], *, of_any_version: bool = False
) -> tuple[OutputFile, ...]:
    """The files whose text on disk differs, or which are missing; files of packages
    that exist are the user's, whatever they hold. With ``of_any_version``, a runtime
    may name another version of gradspec.
    """
    shown = _without_version if of_any_version else bytes
    return tuple(f for f in files if not _is_current(out / f.path, f, shown))


def write(out: Path, files: Iterable[OutputFile]) -> tuple[OutputFile, ...]:
    """Write the stale ones; gives those that were written. Raises `CannotWrite`."""
    written = stale(out, files)
    for file in written:
        path = out / file.path
        if (
            ".." in PurePosixPath(file.path).parts
            or PurePosixPath(file.path).is_absolute()
        ):
            raise CannotWrite(f"cannot write {path}: it is outside of {out}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, file.text)
        except OSError as fault:
            reason = fault.strerror or type(fault).__name__
            raise CannotWrite(f"cannot write {path}: {reason}") from fault
    return written


def write_texts(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write texts below a folder, which is made.

    Raises:
        CannotWrite: the operating system refused it.
    """
    for name, text in files:
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        except OSError as fault:
            reason = fault.strerror or type(fault).__name__
            raise CannotWrite(f"cannot write {folder / name}: {reason}") from fault


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


def beginnings(files: Iterable[OutputFile]) -> dict[str, str]:
    """Patterns of how these files begin in any version of gradspec, by path; none for
    files of packages, which are kept as they are.
    """
    first = {file.path: file.text.partition("\n")[0] for file in files}
    return {
        path: re.escape(MARK if line.startswith(MARK) else line.split(__version__)[0])
        for path, line in first.items()
        if PurePosixPath(path).name not in _PACKAGE
    }


def foreign(out: Path, patterns: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """GS616 for each path below ``out`` that is taken by something that does not begin
    as its pattern says, so that gradspec did not write it.
    """
    taken = (out / path for path, how in patterns.items() if _is_taken(out / path, how))
    help = "move or rename it, or give another folder; delete it if nobody needs it"
    return tuple(
        error(
            "GS616",
            f"{path.as_posix()} would be overwritten, and gradspec did not write it",
            help=help,
        )
        for path in taken
    )


def _is_taken(path: Path, pattern: str) -> bool:
    try:
        head = read_regular(path, 4096).decode("utf-8", "replace")
    except OSError:  # also for what is no regular file
        return os.path.lexists(path)
    return re.match(pattern, head) is None


def _is_current(path: Path, file: OutputFile, shown: Callable[[bytes], bytes]) -> bool:
    try:
        if path.name in _PACKAGE:
            return path.is_file()
        text = file.text.encode()
        return shown(read_regular(path, len(text) + 100)) == shown(text)
    except OSError:
        return False


def _without_version(text: bytes) -> bytes:
    return _VERSION.sub(b"", text, count=1)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def of_other_versions(out: Path, files: Iterable[OutputFile]) -> Iterator[Diagnostic]:
    """GS613 for each module that is not among the files, in a target's folder with the
    runtime of another version of gradspec, which writing the files replaces.
    """
    own = {file.path for file in files}
    folders = {PurePosixPath(path).parts[0] for path in own if "/" in path}
    for folder in sorted(folders):
        named = _VERSION.search(_beginning(out / folder / f"{CORE}.py"))
        version = named[0].decode("utf-8", "replace") if named else __version__
        if version == __version__:
            continue
        for path in sorted((out / folder).rglob("*.py")):
            is_own = path.relative_to(out).as_posix() in own
            if not is_own and _beginning(path).startswith(MARK.encode()):
                yield warning(
                    "GS613",
                    f"{path.as_posix()} was written by gradspec {version}, and imports"
                    f" the runtime of gradspec {__version__} now",
                    help="compile its rules again into this folder, or delete it",
                )


def _beginning(path: Path) -> bytes:
    """The first bytes of a file; none where it cannot be read."""
    try:
        return read_regular(path, 200)
    except OSError:
        return b""


def not_up_to_date(out: str, changed: Sequence[str]) -> tuple[Diagnostic, ...]:
    """An error for each file, one for all of them where none is there."""
    told = [f"{path} is not what its rules compile to" for path in changed]
    if len(changed) > 1 and not any(Path(path).exists() for path in changed):
        told = [
            f"none of the {len(changed)} files that the rules compile to is in {out}"
        ]
    help = "run the same command without --check, and commit the result"
    return tuple(error("GS610", headline, help=help) for headline in told)


def read_regular(path: Path, most: int) -> bytes:
    """The first ``most`` bytes of a regular file. OSError for anything else: opening a
    pipe would wait for who writes into it, and a device may never end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        return file.read(most)


# --- runtimes, which are copied beside the modules ------------------------------------


@cache
def runtime_files(target: str) -> dict[str, str]:
    """All files of a target's runtime, by name, those that targets share among
    them."""
    if target not in TARGETS:
        return dict(target_named(target).runtime_files())
    shared = resources.files("gradspec") / "runtime"
    folder = shared / target
    found = {
        file.name: file.read_text("utf-8").replace("\nfrom .._", "\nfrom ._")
        for file in (*shared.iterdir(), *folder.iterdir())
        if file.name.endswith(".py") and file.name != "__init__.py"
    }
    return dict(sorted(found.items()))


def required_files(target: str, names: Iterable[str]) -> dict[str, str]:
    """The files called ``names``, and those that these import."""
    texts = runtime_files(target)
    found: dict[str, str] = {}
    todo = sorted(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = texts[name]
            todo += [f"{other}.py" for other in _IMPORTED.findall(texts[name])]
    return dict(sorted(found.items()))


def shadowing_folders(out: Path, targets: Iterable[str]) -> tuple[Diagnostic, ...]:
    """GS614 for an output folder from which Python imports: a target's folder there
    would be found in place of the framework.
    """
    names = [target for target in targets if target in _FRAMEWORKS]
    if not names or out.resolve() not in {Path(p).resolve() for p in (".", *sys.path)}:
        return ()
    hides = " and ".join(_FRAMEWORKS[name] for name in names)
    return (
        Diagnostic(
            "GS614",
            Severity.ERROR,
            f"`import {names[0]}` would find modules in {out.as_posix()} in place of"
            f" {hides}: Python imports from this folder",
            help="give a folder of its own (--out generated), and import"
            f" generated.{names[0]} from outside of it",
        ),
    )


def package_text(target: str) -> str:
    """The ``__init__.py`` of a target's folder. Where the output folder itself is on
    `sys.path`, ``import numpy`` finds this package in place of NumPy, and says so.
    """
    framework = _FRAMEWORKS.get(target)
    if framework is None:
        return '"""Generated by gradspec."""\n'
    return f'''"""Generated by gradspec."""

if __name__ == "{target}":
    raise ImportError(
        "this package of generated modules hides {framework}: "
        "put the folder that holds the output folder on sys.path, not the output folder"
    )
'''
