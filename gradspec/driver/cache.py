"""Results on disk, by content: an unchanged file costs a few reads and nothing else.

The key is the digest of the file's name and text, the options and the tool itself (its
own source files and the versions of the libraries that decide). An entry also names the
files that were imported and the digests of their texts, which are compared on reading,
so that looking a result up needs no parser. Damaged or foreign entries count as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import astuple
from functools import cache
from importlib import metadata
from pathlib import Path

from gradspec.driver.results import FileResult, from_json, to_json
from gradspec.driver.write import replace_text
from gradspec.options import Options
from gradspec.source import Source

LIBRARIES = ("lark", "numpy", "python-flint", "sympy")
MAX_ENTRIES = 4000


def folder() -> Path | None:
    """The user's cache folder, or ``GRADSPEC_CACHE_DIR``; None when that is empty
    (``GRADSPEC_CACHE_DIR=`` turns the cache off).
    """
    chosen = os.environ.get("GRADSPEC_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    import platformdirs

    return Path(platformdirs.user_cache_dir("gradspec", appauthor=False))


def key(source: Source, below: str, options: Options) -> str:
    """What a result depends on, imports apart."""
    chosen = astuple(options)
    return digest("\0".join((tool(), source.path, below, repr(chosen), source.text)))


def digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def tool() -> str:
    """The digest of gradspec itself and of the libraries that its answers rest on."""
    package = Path(__file__).parent.parent
    hashed = hashlib.sha256()
    for path in sorted((*package.rglob("*.py"), *_grammars(package))):
        hashed.update(path.relative_to(package.parent).as_posix().encode())
        hashed.update(path.read_bytes())
    for name in LIBRARIES:
        hashed.update(f"{name} {metadata.version(name)}".encode())
    return hashed.hexdigest()


def load(
    name: str, source: Source, read: Callable[[str], Source | None]
) -> FileResult | None:
    """The stored result, if every imported file still has the text it had then."""
    base = folder()
    if base is None:
        return None
    try:
        data = json.loads((base / "results" / f"{name}.json").read_text("utf-8"))
        sources = {source.path: source}
        for path, expected in data["imports"]:
            imported = read(path)
            if imported is None or digest(imported.text) != expected:
                return None
            sources[path] = imported
        return from_json(data["result"], sources)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def store(name: str, result: FileResult, imports: Mapping[str, Source]) -> None:
    """Keep a result; a cache that cannot be written is no reason to fail."""
    base = folder()
    if base is None:
        return
    data = {
        "imports": [[path, digest(s.text)] for path, s in sorted(imports.items())],
        "result": to_json(result),
    }
    try:
        (base / "results").mkdir(parents=True, exist_ok=True)
        replace_text(base / "results" / f"{name}.json", json.dumps(data))
    except OSError:
        return


def prune() -> None:
    """Drop the oldest entries beyond `MAX_ENTRIES`."""
    base = folder()
    if base is None:
        return
    try:
        entries = list((base / "results").glob("*.json"))
        if len(entries) > MAX_ENTRIES:
            entries.sort(key=lambda path: path.stat().st_mtime)
            for path in entries[: len(entries) - MAX_ENTRIES]:
                path.unlink(missing_ok=True)
    except OSError:
        return


def _grammars(package: Path) -> list[Path]:
    beside = (package / "_grammars", package.parent / "grammars")
    return [path for place in beside for path in place.glob("*.lark")]
