"""Source text and places in it.

Offsets count Unicode code points of :attr:`Source.text`; lines and columns count
from 1, as editors do.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

SHIPPED = "gradspec:"
"""Prefix of the rules that come with gradspec: ``gradspec:control/gradients``."""


def escape(char: str) -> str:
    r"""``\x1b``, ``\u2028``: a character that cannot be shown, as Python writes it."""
    return char.encode("unicode_escape").decode("ascii")


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open range ``[start, end)`` of a source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of ``other``."""
        return Span(self.start, max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Source:
    """One `.grad` text and the name by which messages call it.

    ``path`` is for display only (as the user wrote it, ``/`` as separator); it takes
    part in messages and in generated headers, so it is never made absolute.
    """

    path: str
    text: str
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        object.__setattr__(self, "_starts", tuple(starts))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line ``number`` (from 1), without its line end."""
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end].rstrip("\r")

    def slice(self, span: Span) -> str:
        """The text under a span."""
        return self.text[span.start : span.end]
