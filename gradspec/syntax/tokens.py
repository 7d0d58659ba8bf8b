"""The values that the stages of the parser exchange: tokens, lines and faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gradspec.source import Span

LINE_END = "LINE_END"
"""The type of the token at the end of each physical line; it ends where the next
begins."""

ENOUGH = 1000
"""A text with so many odd characters is not a `.grad` file; the rest is not looked
at."""

MAX_DEPTH = 300
"""Maximum nesting of brackets, and maximum depth of an expression tree."""

ITEM_WORDS = ("RULE", "DEF", "FROM")
"""The terminals with which an item begins."""


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


def too_deep(span: Span) -> Fault:
    """Brackets or operators nested beyond MAX_DEPTH."""
    headline = f"this is nested more than {MAX_DEPTH} levels deep"
    help = "give a name to a part of it: `part = …` on a line of its own"
    return Fault("GS120", headline, span, help=help)


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
