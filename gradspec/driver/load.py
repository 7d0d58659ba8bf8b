"""From one file to its lowered module: the file, and all that it imports, are read,
parsed and lowered in order; or to the file in the canonical layout. A command that finds
its results in the cache does not come here, and does not import the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.driver.discover import Entry, read_entry, read_imported, shipped_rules
from gradspec.driver.write import CannotWrite, replace_text
from gradspec.ir.rule import Chosen
from gradspec.lower.lowering import is_absolute, order, resolve
from gradspec.lower.module import LoweredModule
from gradspec.options import Options
from gradspec.pipeline import check_module, lower_module, read_module, with_evaluations
from gradspec.source import Source
from gradspec.syntax.nodes import Import, Module
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import print_module

Reader = Callable[[str, str], Outcome[Source]]
"""Gives the text of an imported file, by its path and the folder that it must stand
below: `driver.discover.read_imported`, or a reader that knows the texts of an editor.
"""


@dataclass(slots=True)
class _Closure:
    """The files read so far (the only state, and it is local to one call)."""

    root: str
    read: Reader
    sources: dict[str, Source] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    found: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A lowered file; ``sources`` are the texts that it imported, by path."""

    module: LoweredModule | None
    sources: dict[str, Source]
    diagnostics: tuple[Diagnostic, ...]


def load(source: Source, root: str, read: Reader = read_imported) -> Loaded:
    """Parse and lower ``source`` after everything that it imports, which stands below
    the folder ``root``; ``read`` gives the imported texts.
    """
    closure = _Closure(root, read)
    _collect(source, closure)
    ordered = order(closure.modules)
    closure.found.extend(ordered.diagnostics)
    lowered: dict[str, LoweredModule] = {}
    for key in ordered.value or ():
        outcome = lower_module(closure.modules[key], lowered, shipped_rules)
        closure.found.extend(outcome.diagnostics)
        if outcome.value is not None:
            lowered[key] = outcome.value
    imported = {key: s for key, s in closure.sources.items() if key != source.path}
    return Loaded(
        lowered.get(source.path), imported, tuple(dict.fromkeys(closure.found))
    )


def _collect(source: Source, closure: _Closure) -> None:
    """Depth first; a file that is met again (a cycle, a diamond) is not read again."""
    closure.sources[source.path] = source
    parsed = read_module(source)
    closure.found.extend(parsed.diagnostics)
    if parsed.value is None:
        return
    closure.modules[source.path] = parsed.value
    for item in parsed.value.items:
        if isinstance(item, Import):
            _follow(source, item, closure)


def _follow(source: Source, item: Import, closure: _Closure) -> None:
    if is_absolute(item.path):
        closure.found.append(_unimportable(source, item, ("the path is absolute",)))
        return
    key = resolve(source.path, item.path)
    if key in closure.sources:
        return
    outcome = closure.read(key, closure.root)
    if outcome.value is not None:
        _collect(outcome.value, closure)
        return
    reasons = tuple(d.headline for d in outcome.diagnostics)
    closure.found.append(_unimportable(source, item, reasons))


def _unimportable(source: Source, item: Import, reasons: tuple[str, ...]) -> Diagnostic:
    return error(
        "GS609",
        f'cannot import from "{item.path}"',
        source,
        item.path_span,
        label="this file",
        notes=reasons,
        help="the path is relative to the file that imports, with / between folders, and"
        " names a .grad file below the folder that is compiled; rules that come with"
        ' gradspec are named "gradspec:control/gradients"',
    )


# --- rules that have been compiled ----------------------------------------------------


def chosen_rules(
    entry: Entry, options: Options, names: tuple[str, ...] = ()
) -> Iterator[Chosen]:
    """A file's rules (those named, if any are) with their evaluations; the file has
    been compiled without errors.
    """
    source = read_entry(entry).value
    module = load(source, entry.root).module if source else None
    if module is not None:
        wanted = tuple(rule for rule in module.rules if not names or rule.name in names)
        judged, _ = check_module(replace(module, rules=wanted), options)
        yield from (with_evaluations(one, options) for one in judged)


# --- the canonical layout -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Formatted:
    """A file's text before and after; ``after`` is None if it could not be read, for
    the reasons in ``found``.
    """

    path: str
    before: str
    after: str | None
    found: tuple[Diagnostic, ...] = ()

    @property
    def is_changed(self) -> bool:
        return self.after is not None and self.after != self.before


def format_entry(entry: Entry) -> Formatted:
    """The canonical text of a file; none if it has a syntax error."""
    source = read_entry(entry)
    if source.value is None:
        return Formatted(entry.display, "", None, source.diagnostics)
    parsed = parse(source.value)
    if parsed.value is None or parsed.failed:
        return Formatted(entry.display, source.value.text, None, parsed.diagnostics)
    return Formatted(entry.display, source.value.text, print_module(parsed.value))


def save(one: Formatted) -> None:
    """Write the canonical text in place of a file.

    Raises:
        CannotWrite: the operating system refused it.
    """
    if one.after is None:
        return
    try:
        replace_text(Path(one.path), one.after)
    except OSError as fault:
        reason = fault.strerror or type(fault).__name__
        raise CannotWrite(f"cannot write {one.path}: {reason}") from fault


def difference(one: Formatted) -> str:
    """A unified diff from the file's text to the canonical one."""
    before = one.before.splitlines(keepends=True)
    after = (one.after or "").splitlines(keepends=True)
    lines = unified_diff(before, after, one.path, f"{one.path} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
