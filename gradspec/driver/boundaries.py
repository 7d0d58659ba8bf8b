"""Tables of boundaries, on request: they are not cached, but the evaluations in them
are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradspec.driver import cache
from gradspec.driver.discover import Entry, read_entry
from gradspec.ir.plain import shelved

if TYPE_CHECKING:
    from gradspec.driver.boundary_table import Line

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The boundaries of one rule; ``place`` is ``path:line``."""

    place: str
    name: str
    lines: tuple[Line, ...]


def tables(entries: Iterable[Entry], progress: Progress) -> tuple[RuleTable, ...]:
    """One table for every rule that can be read, in the order of the files."""
    found: list[RuleTable] = []
    for entry in entries:
        with shelved(cache.rules()):
            found.extend(_of_file(entry))
        progress(entry.display)
    return tuple(found)


def _of_file(entry: Entry) -> Iterator[RuleTable]:
    from gradspec.derive.complete import complete
    from gradspec.driver.boundary_table import lines
    from gradspec.driver.load import load

    source = read_entry(entry).value
    loaded = None if source is None else load(source, entry.root)
    if source is None or loaded is None or loaded.module is None:
        return
    for rule in loaded.module.rules:
        completed = complete(rule).value
        if completed is not None:
            line, _ = source.position(rule.name_span.start)
            yield RuleTable(f"{entry.display}:{line}", rule.name, lines(completed))
