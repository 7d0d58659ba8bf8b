"""Diagnostics collected while one item of a file is lowered; suggestions of near
names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from gradspec.diagnostics import Diagnostic, Label, Severity, error
from gradspec.source import Source, Span
from gradspec.syntax import nodes


class Findings:
    """Collects diagnostics of one source. ``is_sound`` turns false with the first
    error, and with a note that says that the item cannot be used.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    @property
    def is_sound(self) -> bool:
        return not self.diagnostics

    def error(
        self,
        code: str,
        headline: str,
        span: Span,
        *,
        label: str = "",
        notes: Iterable[str] = (),
        help: str = "",
        also: Iterable[Label] = (),
    ) -> None:
        self.diagnostics.append(
            error(
                code,
                headline,
                self.source,
                span,
                label=label,
                notes=notes,
                help=help,
                also=also,
            )
        )

    def twice(
        self,
        code: str,
        second: nodes.Name | nodes.Named,
        first: Span,
        verb: str,
        help: str,
        headline: str = "",
    ) -> None:
        """A name that is ``verb`` (declared, assigned, …) a second time."""
        if isinstance(second, nodes.Name):
            name, span = second.id, second.span
        else:
            name, span = second.name, second.name_span
        self.error(
            code,
            headline or f"`{name}` is {verb} twice",
            span,
            label=f"{verb} here again",
            also=(self.place(first, f"first {verb} here"),),
            help=help,
        )

    def note(self, code: str, headline: str, span: Span, label: str) -> None:
        labels = (Label(self.source, span, label),)
        found = Diagnostic(code, Severity.NOTE, headline, labels)
        if all(found.headline != d.headline for d in self.diagnostics):
            self.diagnostics.append(found)

    def place(self, span: Span, message: str) -> Label:
        """A further place that explains an error."""
        return Label(self.source, span, message)

    def text(self, span: Span) -> str:
        return self.source.slice(span)


def near(name: str, known: Iterable[str]) -> str:
    """``did you mean …?``, or nothing when no known name is like it."""
    close = get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.6)
    if not close:
        return ""
    return "did you mean " + " or ".join(f"`{c}`" for c in close) + "?"
