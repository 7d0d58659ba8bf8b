"""The compiler's messages to its user, as values.

A user's mistake is never an exception: a stage returns an :class:`Outcome` with
whatever it could make and the :class:`Diagnostic` values it found, so that one bad
rule does not hide the next. Terminal, JSON and GitHub output are renderers of these
values (`gradspec.report`).

Codes are ``GS`` and three digits: 1xx syntax, 2xx names, indices and types, 3xx
derivation, 4xx mathematics, 5xx targets, 6xx files and configuration. Each code has a
page ``gradspec/explain/<CODE>.md`` (printed by ``gradspec explain``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

from gradspec.source import Source, Span

T = TypeVar("T")


class Severity(Enum):
    """The severity of a diagnostic: an error stops the rule, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A place in a source and its message (may be empty)."""

    source: Source
    span: Span
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of a text that mends a finding: ``text`` replaces ``span``. ``words``
    say what it does, and are shown as help; ``note`` is shown as a note, and ``guilty``
    as the place that is probably wrong.

    If it ``is_safe``, it was proved that the changed line is right and that values stay,
    or the text can mean nothing else. Other fixes are guesses, or change what is
    promised.
    """

    words: str
    span: Span
    text: str
    note: str = ""
    guilty: Span | None = None
    is_safe: bool = False

    @property
    def title(self) -> str:
        """The words, of a long line too."""
        return self.words or f"write `{self.text[:60]}…`"

    def apply_to(self, text: str) -> str:
        """The text with the change."""
        return text[: self.span.start] + self.text + text[self.span.end :]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    ``labels[0]`` is the guilty place (the smallest guilty piece); further labels give
    context. ``headline`` says what is wrong in the user's terms, ``notes`` give facts
    (a witness point, the derived expression), ``help`` says how to mend it. A finding
    without a place (a missing file) has no labels. ``fixes`` are changes of the text
    of ``labels[0]``, each of which was tried and mends the finding. ``tries`` are changes
    that nobody has tried yet (`mend.keep_fixes_that_work` does); of each group the first
    that mends becomes a fix.
    """

    code: str
    severity: Severity
    headline: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()
    tries: tuple[tuple[Fix, ...], ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of a stage (``None`` if it has none) and its diagnostics."""

    value: T | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def failed(self) -> bool:
        return self.value is None or any(d.is_error for d in self.diagnostics)


def _at_one_place(
    severity: Severity,
    code: str,
    headline: str,
    source: Source | None = None,
    span: Span | None = None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    help: str = "",
    also: Iterable[Label] = (),
    fixes: Iterable[Fix] = (),
    tries: Iterable[tuple[Fix, ...]] = (),
) -> Diagnostic:
    """A diagnostic at one place; ``also`` adds places that explain it."""
    first = (Label(source, span, label),) if source and span else ()
    labels = first + tuple(also)
    changes = tuple(fixes), tuple(tries)
    return Diagnostic(code, severity, headline, labels, tuple(notes), help, *changes)


error = partial(_at_one_place, Severity.ERROR)
warning = partial(_at_one_place, Severity.WARNING)


# --- ignored diagnostics ---------------------------------------------------------------
#
# Warnings and notes can be ignored, and the one error that is a matter of taste: GS416,
# a gradient that is equal up to rounding. A comment ``# gradspec: ignore[GS434]`` at the
# end of a line holds for findings about that line; the option holds everywhere.


_ROUNDED = "GS416"
_COMMENT = re.compile(r"#\s*gradspec:\s*ignore\[([^\]#]*)\]\s*$")


def not_ignored(
    found: Iterable[Diagnostic], ignored: tuple[str, ...]
) -> tuple[Diagnostic, ...]:
    """The findings that are not ignored; ``ignored`` are the codes of the option."""
    return tuple(d for d in found if not _is_ignored(d, ignored))


def _is_ignored(found: Diagnostic, ignored: tuple[str, ...]) -> bool:
    if found.is_error and found.code != _ROUNDED:
        return False
    return found.code in ignored or found.code in _codes_on_its_lines(found)


def _codes_on_its_lines(found: Diagnostic) -> Iterable[str]:
    """The codes in comments at the ends of the lines that a finding is about."""
    for label in found.labels[:1]:
        first, last = (
            label.source.position(at)[0] for at in (label.span.start, label.span.end)
        )
        for number in {first, last}:
            if comment := _COMMENT.search(label.source.line(number)):
                yield from re.split(r"[,\s]+", comment[1].strip().upper())
