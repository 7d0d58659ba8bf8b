"""The values that the stages of the parser exchange: tokens, lines and faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gradspec.source import Span


class Token(NamedTuple):
    """A piece of text; ``type`` is a terminal of the grammar.

    A text has thousands of them, so it is a named tuple: three times as fast to make
    as a frozen dataclass.
    """

    type: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Fault:
    """A diagnostic that does not yet know its source; ``also`` adds places."""

    code: str
    headline: str
    span: Span
    label: str = ""
    help: str = ""
    also: tuple[tuple[Span, str], ...] = ()


class FaultFound(Exception):
    """Ends the parse of one line; never leaves this package."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.headline)
        self.fault = fault


def shortened(text: str) -> str:
    """A piece of source, cut to the length that a message can show."""
    first = text.split("\n", 1)[0]
    return first if len(first) <= 24 and first == text else first[:20] + "…"


TABBED = -1
"""The indentation of a line with a tab in it, which is reported."""


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: its tokens without the line end, and the column it begins in.

    ``sound`` is False when its brackets were at fault: such a line has been reported,
    to parse it would only report it again.
    """

    tokens: tuple[Token, ...]
    indent: int
    sound: bool = True

    @property
    def first(self) -> str:
        return self.tokens[0].type

    @property
    def span(self) -> Span:
        return Span(self.tokens[0].start, self.tokens[-1].end)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One item of a file: a line at the margin and the indented lines below it."""

    head: Line
    body: tuple[Line, ...]

    @property
    def span(self) -> Span:
        return Span(self.head.span.start, (self.body or (self.head,))[-1].span.end)
