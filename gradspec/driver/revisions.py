"""Rule files of one version: a file or a folder, on disk or in a revision of git.

Git is called with a list of arguments, never by a shell, and asked for names and contents of
files alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.driver.discover import (
    MAX_BYTES,
    SUFFIX,
    Entry,
    discover,
    read_imported,
    source_of,
)
from gradspec.source import SHIPPED, Source


@dataclass(frozen=True, slots=True)
class Version:
    """The rule files that ``main:rules`` or ``rules`` names. ``revision`` is that of
    git, or empty; ``is_file`` if it names one file.
    """

    entries: tuple[Entry, ...]
    revision: str = ""
    is_file: bool = False


def version_of(given: str) -> Outcome[Version]:
    """The files of a path, or of ``REVISION:path`` if there is no such path. Faults
    GS601 to GS608 as for other commands, GS620 where git has no such thing.
    """
    revision, colon, path = given.partition(":")
    if Path(given).exists() or not colon or given.startswith("-"):
        found = discover([given])
        if found.value is None or any(d.is_error for d in found.diagnostics):
            return Outcome(None, found.diagnostics)
        return Outcome(Version(found.value, "", not Path(given).is_dir()))
    try:
        kind = _git("cat-file", "-t", given).decode().strip()
        folder = path if kind == "tree" else f"{PurePosixPath(path).parent}"
        folder = "" if folder in (".", "/") else folder.strip("/")
        names = [PurePosixPath(path).name] if kind == "blob" else [*_names(given)]
        entries = [_entry(revision, folder, name) for name in names]
    except _NotInGit as fault:
        return Outcome(None, (_unknown(given, f"{fault}"),))
    if not entries:
        return Outcome(None, (_unknown(given, f"there is no {SUFFIX} file"),))
    return Outcome(Version(tuple(entries), revision, kind == "blob"))


def _names(tree: str) -> Iterator[str]:
    """The rule files of a folder, those of hidden folders left out."""
    listed = _git("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    for name in sorted(listed.decode("utf-8", "surrogateescape").split("\0")):
        parts = PurePosixPath(name).parts
        is_hidden = any(part.startswith(".") for part in parts)
        if name.endswith(SUFFIX) and name.isprintable() and not is_hidden:
            yield name


def _entry(revision: str, folder: str, name: str) -> Entry:
    data = _git("cat-file", "blob", f"{revision}:{folder}{'/' * bool(folder)}{name}")
    return Entry(f"{revision}:{folder}/{name}", name, data)


def read_import(revision: str, key: str, root: str) -> Outcome[Source]:
    """The text of a file that another one of the same revision, or of the disk, imports."""
    if not revision or key.startswith(SHIPPED):
        return read_imported(key, root)
    if not key.startswith(f"{root}/") or not key.endswith(SUFFIX):
        told = f"{key} is no {SUFFIX} file below {root}"
        return Outcome(None, (error("GS607", told),))
    path = key.removeprefix(f"{revision}:").lstrip("/")
    try:
        return source_of(key, _git("cat-file", "blob", f"{revision}:{path}"))
    except _NotInGit as fault:
        return Outcome(None, (_unknown(key, f"{fault}"),))


class _NotInGit(Exception):
    """What git says of something that it does not have."""


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as fault:
        raise _NotInGit(f"cannot run git: {fault.strerror}") from fault
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _NotInGit(said[-1] if said else "git failed")
    return done.stdout[: MAX_BYTES + 1] if arguments[0] == "cat-file" else done.stdout


def _unknown(given: str, reason: str) -> Diagnostic:
    return error(
        "GS620",
        f"cannot read {given}: {reason}",
        help="name a file or folder, or one in a revision of git, `main:rules`: its path"
        " is that from the root of the repository (`main:./rules`: from here)",
    )
