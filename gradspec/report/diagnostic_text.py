"""Diagnostics for a terminal, as in rustc: headline, place, caret, suggested fix.

Plain text with ANSI styles from click, which leaves them out when the stream is not a
terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from gradspec.diagnostics import Diagnostic, Label, Severity

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
WIDEST = 160
"""Longer source lines are cut around the caret: a rule generated on one line of ten
thousand characters must not bury its message."""


def render(found: Diagnostic) -> str:
    """One finding as lines of text."""
    return "\n".join(_lines(found))


def _lines(found: Diagnostic) -> Iterator[str]:
    colour = COLOURS[found.severity]
    head = click.style(f"{found.severity.value}[{found.code}]", fg=colour, bold=True)
    yield f"{head}: {click.style(printable(found.headline), bold=True)}"
    for number, label in enumerate(found.labels):
        yield from _place(label, colour if number == 0 else "blue")
    for note in found.notes:
        yield from _paragraph("note", note)
    if found.help:
        yield from _paragraph("help", found.help)


def _place(label: Label, colour: str) -> Iterator[str]:
    line, column = label.source.position(label.span.start)
    text, offset = _window(label.source.line(line), column - 1)
    room = max(1, len(text) - offset)
    width = min(max(1, label.span.end - label.span.start), room)
    gutter = " " * len(str(line))
    bar = click.style("|", fg="blue")
    message = printable(label.message)
    carets = click.style(f"{'^' * width} {message}".rstrip(), fg=colour)
    path = printable(label.source.path)
    yield f"{gutter}{click.style('-->', fg='blue')} {path}:{line}:{column}"
    yield f"{gutter} {bar}"
    yield f"{click.style(str(line), fg='blue')} {bar} {text}".rstrip()
    yield f"{gutter} {bar} {_blank(text[:offset])}{carets}"


def _window(text: str, offset: int) -> tuple[str, int]:
    """The part of a long line around ``offset``, and where the offset is in it."""
    text = printable(text)
    if len(text) <= WIDEST:
        return text, offset
    start = max(0, min(offset - WIDEST // 2, len(text) - WIDEST))
    end = start + WIDEST
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + text[start:end] + after, offset - start + len(before)


def printable(text: str) -> str:
    """The text without control characters (an escape sequence in a file, say)."""
    return "".join(
        c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _blank(text: str) -> str:
    """As wide as ``text``: tabs stay, so that the caret stands under its column."""
    return "".join("\t" if char == "\t" else " " for char in text)


def _paragraph(word: str, text: str) -> Iterator[str]:
    first, *rest = map(printable, text.splitlines() or [""])
    yield f"  = {click.style(word, bold=True)}: {first}"
    indent = " " * (len(word) + 6)
    yield from (f"{indent}{line}".rstrip() for line in rest)
