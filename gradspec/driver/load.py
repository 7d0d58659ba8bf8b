"""From one file to its lowered module: the file, and all that it imports, are read,
parsed and lowered in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradspec import pipeline
from gradspec.diagnostics import Diagnostic, error
from gradspec.driver.discover import read_imported
from gradspec.lower import imports
from gradspec.lower.module import LoweredModule
from gradspec.source import Source
from gradspec.syntax.nodes import Import, Module


@dataclass(slots=True)
class _Closure:
    """The files read so far (the only state, and it is local to one call)."""

    root: str
    sources: dict[str, Source] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    found: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A lowered file; ``sources`` are the texts that it imported, by path."""

    module: LoweredModule | None
    sources: dict[str, Source]
    diagnostics: tuple[Diagnostic, ...]


def load(source: Source, root: str) -> Loaded:
    """Parse and lower ``source`` after everything that it imports, which stands below
    the folder ``root``.
    """
    closure = _Closure(root)
    _collect(source, closure)
    ordered = imports.order(closure.modules)
    closure.found.extend(ordered.diagnostics)
    lowered: dict[str, LoweredModule] = {}
    for key in ordered.value or ():
        outcome = pipeline.lower_module(closure.modules[key], lowered)
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
    parsed = pipeline.read_module(source)
    closure.found.extend(parsed.diagnostics)
    if parsed.value is None:
        return
    closure.modules[source.path] = parsed.value
    for item in parsed.value.items:
        if isinstance(item, Import):
            _follow(source, item, closure)


def _follow(source: Source, item: Import, closure: _Closure) -> None:
    if imports.is_absolute(item.path):
        closure.found.append(_unreadable(source, item, ("the path is absolute",)))
        return
    key = imports.resolve(source.path, item.path)
    if key in closure.sources:
        return
    outcome = read_imported(key, closure.root)
    if outcome.value is not None:
        _collect(outcome.value, closure)
        return
    reasons = tuple(d.headline for d in outcome.diagnostics)
    closure.found.append(_unreadable(source, item, reasons))


def _unreadable(source: Source, item: Import, reasons: tuple[str, ...]) -> Diagnostic:
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
