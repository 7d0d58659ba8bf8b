"""The cache on disk: results of files, of single rules and of conformance cells.

A kind of result has a folder in the user's cache folder (`folder`): what compiling a
file gave, what checking and stabilising one rule gave (`ir.plain`), and the cells of
the conformance matrix that were ok. An entry is a file of a digest and JSON. Its name
is the digest of all that it rests on, gradspec itself included; the digest inside is
that of the name and the JSON. So an entry that was damaged, or belongs to another name,
is known by its digest, and it counts as absent, as does one of another user's. Entries
are data, never pickles, and they are written whole, so that workers share them.

Emitted modules are put on disk, and imported from there, in the same folder.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from gradspec.diagnostics import Diagnostic, error
from gradspec.driver.emitted import import_file
from gradspec.driver.write import (
    CannotWrite,
    OutputFile,
    read_regular,
    replace_text,
    required_files,
    write,
)
from gradspec.ir import plain
from gradspec.ir.plain import Foreign
from gradspec.ir.rule import Judged, Verdict
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets import TARGETS
from gradspec.targets.target import Emitted

if TYPE_CHECKING:
    from gradspec.driver.workers import Lost

T = TypeVar("T")

LIBRARIES = ("lark", "numpy", "python-flint", "sympy")
MAX_BYTES = 1 << 26
"""Larger entries are ignored."""

_ENTRY = re.compile(r"[0-9a-f]{64}\.json")


def folder() -> Path | None:
    """The user's cache folder, or ``GRADSPEC_CACHE_DIR``; None when that is empty
    (``GRADSPEC_CACHE_DIR=`` turns the cache off).
    """
    chosen = os.environ.get("GRADSPEC_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    import platformdirs

    return Path(platformdirs.user_cache_dir("gradspec", appauthor=False))


def digest(text: str) -> str:
    """SHA-256 of a text (of a file name too, which may hold bytes that are no text)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def tool() -> str:
    """The digest of gradspec itself and of the libraries that its answers rest on."""
    package = Path(__file__).parent.parent
    hashed = hashlib.sha256()
    for path in sorted((*package.rglob("*.py"), *_grammars(package))):
        hashed.update(path.relative_to(package.parent).as_posix().encode())
        hashed.update(path.read_bytes())
    for name in LIBRARIES:
        hashed.update(f"{name} {_version(name)}".encode())
    return hashed.hexdigest()


def _version(library: str) -> str:
    """The version of a library; in a browser some are missing."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "absent"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of entries (`ir.plain.Shelf`), of which the newest ``most`` stay."""

    path: Path
    most: int = 20_000

    def get(self, name: str, read: Callable[[Any], T]) -> T | None:
        """The data called ``name``, read by ``read``; None if there are none, or if
        they cannot be trusted and read.
        """
        try:
            path = self._path(name)
            text = read_regular(path, MAX_BYTES).decode()
            sealed, _, body = text.partition("\n")
            if sealed != _seal(path, body) or not _is_own(path):
                return None
            return read(json.loads(body))
        except Exception:  # whatever is wrong with it, it is no entry
            return None

    def put(self, name: str, data: object) -> None:
        """Store data; a cache that cannot be written is no error."""
        try:
            path = self._path(name)
            body = json.dumps(data)
            self.path.mkdir(parents=True, exist_ok=True)
            replace_text(path, f"{_seal(path, body)}\n{body}")
        except OSError:
            return

    def prune(self) -> None:
        """Drop the oldest entries; other files in the folder are left alone."""
        try:
            entries = [p for p in self.path.iterdir() if _ENTRY.fullmatch(p.name)]
            if len(entries) > self.most:
                entries.sort(key=lambda path: path.stat().st_mtime)
                for path in entries[: len(entries) - self.most]:
                    path.unlink(missing_ok=True)
        except OSError:
            return

    def _path(self, name: str) -> Path:
        return self.path / f"{digest(f'{tool()} {name}')}.json"


def files(targets: Iterable[str] = ()) -> Shelf | None:
    """The memo of compiled files; None where the cache is turned off, and for targets
    of other packages, whose changes are not seen."""
    return _shelf("results", 4000) if {*targets} <= {*TARGETS} else None


def rules() -> Shelf | None:
    """The memo of single rules: in a file that has changed, unchanged rules are not
    compiled again.
    """
    return _shelf("rules", 20_000)


def cells() -> Shelf | None:
    """Cells of the conformance matrix that were ok."""
    return _shelf("conformance", 1000)


def prune() -> None:
    """Drop the oldest results of files and of rules."""
    for shelf in (files(), rules()):
        if shelf is not None:
            shelf.prune()


# --- results of files ------------------------------------------------------------------


def key(source: Source, below: str, options: Options) -> str:
    """The data on which a result depends, imports apart."""
    return "\0".join((source.path, below, repr(astuple(options)), source.text))


def load(
    source: Source, below: str, options: Options, read: Callable[[str], Source | None]
) -> FileResult | None:
    """The stored result, if every imported file still has the text it had then."""

    def result(data: Any) -> FileResult | None:
        sources = [source]
        for path, expected in data["imports"]:
            imported = read(path)
            if imported is None or digest(imported.text) != expected:
                return None
            sources.append(imported)
        found = from_plain(data["result"], tuple(sources), options.report)
        return found if is_result_of(found, source, below, options) else None

    shelf = files(options.targets)
    if shelf is None:
        return None
    return shelf.get(key(source, below, options), result)


def store(
    source: Source,
    below: str,
    options: Options,
    result: FileResult,
    imports: Mapping[str, Source],
) -> None:
    """Keep a result."""
    shelf = files(options.targets)
    if shelf is None:
        return
    others = sorted(imports.items())
    texts = [[path, digest(other.text)] for path, other in others]
    try:
        found = to_plain(result, (source, *(other for _, other in others)))
    except Foreign:  # it names a text that is none of these
        return
    shelf.put(key(source, below, options), {"imports": texts, "result": found})


# --- helpers ---------------------------------------------------------------------------


def _shelf(kind: str, most: int) -> Shelf | None:
    base = folder()
    return None if base is None else Shelf(base / kind, most)


def _seal(path: Path, body: str) -> str:
    return digest(f"{path.name} {body}")


def _is_own(path: Path) -> bool:
    """True if this user has written the file (where files have owners)."""
    return not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()


def _grammars(package: Path) -> list[Path]:
    beside = (package / "_grammars", package.parent / "grammars")
    return [path for place in beside for path in place.glob("*.lark")]


# --- results as data ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule's line in the summary."""

    name: str
    line: int
    verdicts: tuple[Verdict, ...]
    second: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file: its rules' verdicts, its modules and what was found."""

    display: str
    rules: tuple[RuleRow, ...]
    modules: tuple[Emitted, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        return any(d.is_error for d in self.diagnostics)


def too_long(headline: str) -> Diagnostic:
    """A text that cannot be read in the time or memory that a rule is given."""
    return error("GS461", headline, help="give it more with `--budget`, or divide it")


def worker_loss(display: str, end: Lost) -> Diagnostic:
    """A file whose worker has ended."""
    if end.is_late:
        return error(
            "GS461",
            f"work on {display} was stopped: a step of it does not come to an end",
            help="give it more with `--budget`, or divide the file",
        )
    if end.is_out_of_memory:
        return error(
            "GS461",
            f"work on {display} was stopped: it needs more than 1 GB of memory",
            help="divide the file, or its rules into rules that call each other",
        )
    return error(
        "GS615",
        f"the process that worked on {display} was killed ({end.reason})",
        help="run the command again; if it was killed for want of memory, with fewer"
        " processes (`-j`)",
    )


def row(checked: Judged) -> RuleRow:
    """The summary line of a checked rule."""
    rule = checked.rule
    line, _ = rule.source.position(rule.name_span.start)
    return RuleRow(
        rule.name,
        line,
        checked.verdicts,
        checked.second,
    )


def to_plain(result: FileResult, sources: tuple[Source, ...]) -> dict[str, Any]:
    """Data of the cache; sources are named by number, their text is not repeated."""
    has_costs = any(module.costs for module in result.modules)
    return plain.to_plain(result, _frame(sources, has_costs))


def from_plain(
    data: Mapping[str, Any], sources: tuple[Source, ...], has_costs: bool
) -> Any:
    """The inverse; KeyError or the like when the data is not of that form."""
    return plain.from_plain(data, _frame(sources, has_costs))


def _frame(sources: tuple[Source, ...], has_costs: bool) -> plain.Frame:
    """Cost summaries stand in the planner, which a result without any has no need
    of."""
    classes: tuple[type[Any], ...] = (FileResult, RuleRow, Emitted)
    if has_costs:
        from gradspec.plan.cost import CostSummary, Work

        classes += (CostSummary, Work)
    return plain.Frame(sources, 0, classes)


def is_result_of(result: Any, source: Source, below: str, options: Options) -> bool:
    """True if a result that was read belongs to this file: it names no other output
    path."""
    expected = f"{below.removesuffix('.grad')}.py"
    return (
        isinstance(result, FileResult)
        and result.display == source.path
        and all(m.target in options.targets for m in result.modules)
        and all(module.path == expected for module in result.modules)
    )


# --- emitted modules ------------------------------------------------------------------


def import_module(emitted: Emitted) -> ModuleType:
    """The module, from a file that stays, so that tools which read source text find it;
    the same texts give the same module object.
    """
    runtime = required_files(emitted.target, emitted.runtime)
    content = digest("\0".join([emitted.text, *runtime.values()]))[:16]
    below = Path("modules", f"{emitted.target}_{content}")
    root = (folder() or _own_folder()) / below
    try:
        path = put(root, emitted)
    except CannotWrite:
        root = _own_folder() / below
        path = put(root, emitted)
    for compiled in root.rglob("__pycache__"):  # no digest vouches for what is there
        shutil.rmtree(compiled, ignore_errors=True)
    return import_file(str(path), "gradspec")


@cache
def _own_folder() -> Path:
    """Of this process alone, and gone with it: no other user can put modules there."""
    own = tempfile.mkdtemp(prefix="gradspec-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def put(root: Path, emitted: Emitted) -> Path:
    """Write the module below ``root`` and its runtime there; gives the module's
    path."""
    texts = {
        emitted.path: emitted.text,
        **required_files(emitted.target, emitted.runtime),
    }
    write(root, [OutputFile(path, text) for path, text in texts.items()])
    return root / emitted.path
