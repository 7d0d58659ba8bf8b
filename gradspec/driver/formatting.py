"""Rule files in the canonical layout."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from gradspec.diagnostics import Diagnostic
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.write import CannotWrite, replace_text
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import print_module


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
