"""Diagnostics that the user ignores, by an option or by a comment on the line.

A comment ``# gradspec: ignore[GS434]`` at the end of a line holds for findings about
that line; the option holds everywhere. Warnings and notes can be ignored, and the one
error that is a matter of taste: GS416, a gradient that is equal up to rounding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.ir.rule import CheckedRule, Status

ROUNDED = "GS416"

_COMMENT = re.compile(r"#\s*gradspec:\s*ignore\[([^\]#]*)\]\s*$")
_DIGITS = 15
"""Digits to which the two forms agree according to GS416."""


def kept(
    found: Iterable[Diagnostic], ignored: tuple[str, ...]
) -> tuple[Diagnostic, ...]:
    """The findings that are not ignored; ``ignored`` are the codes of the option."""
    return tuple(d for d in found if not _is_ignored(d, ignored))


def heeded(
    outcome: Outcome[CheckedRule], ignored: tuple[str, ...]
) -> Outcome[CheckedRule]:
    """A checked rule without the ignored diagnostics. A refuted gradient without a
    remaining error differs by rounding only, and agrees."""
    found = kept(outcome.diagnostics, ignored)
    if outcome.value is None or any(d.is_error for d in found):
        return replace(outcome, diagnostics=found)
    verdicts = tuple(
        replace(verdict, status=Status.AGREES, digits=_DIGITS)
        if verdict.status is Status.REFUTED
        else verdict
        for verdict in outcome.value.verdicts
    )
    return Outcome(replace(outcome.value, verdicts=verdicts), found)


def _is_ignored(found: Diagnostic, ignored: tuple[str, ...]) -> bool:
    if found.is_error and found.code != ROUNDED:
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
