"""The canonical text of a module: four spaces, lines of 88 columns, comments kept.

A comment stays where it stood: at the end of its line, or on a line of its own before
the same statement (one from inside a statement moves above it). A blank line stands
between items, and where the author left one or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradspec.source import Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.quoting import docstring_literal
from gradspec.syntax.wrapping import INDENT, head_lines, statement_lines


def print_module(module: nodes.Module) -> str:
    """The canonical text; what is parsed from it is equal and prints the same. (Items
    that were broken are not in a module, so print only what parsed without a fault.)
    """
    writer = _Writer(module.source, list(reversed(module.comments)))
    previous: nodes.Item | None = None
    for item in module.items:
        writer.apart = previous is not None and _stands_apart(previous, item)
        for piece in _pieces(item):
            writer.write(piece)
        previous = item
    writer.comments_before(None)
    return "".join(f"{line}\n" for line in writer.lines)


def _stands_apart(previous: nodes.Item, item: nodes.Item) -> bool:
    """False among imports and among one-line functions, which may stand together."""
    return isinstance(item, nodes.RuleDef) or type(previous) is not type(item)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line to print (several for a docstring), and the source text it comes from."""

    text: str
    span: Span
    indent: str = INDENT


def _pieces(item: nodes.Item) -> Iterator[_Piece]:
    if not isinstance(item, nodes.RuleDef):
        yield _Piece("\n".join(head_lines(item)), item.span, "")
        return
    head = Span(item.span.start, item.outputs[-1].span.end)
    yield _Piece("\n".join(head_lines(item)), head, "")
    if item.doc is not None:
        doc = docstring_literal(item.doc, INDENT)
        yield _Piece(doc, item.doc_span or item.name_span)
    for statement in item.body:
        lines = statement_lines(statement, INDENT)
        yield _Piece(f"\n{INDENT}".join(lines), statement.span)


@dataclass(slots=True)
class _Writer:
    """Lines so far; ``comments`` are those to come, the next one last."""

    source: Source
    comments: list[nodes.Comment]
    apart: bool = False
    """True if the next line at the margin needs a blank line above it."""
    lines: list[str] = field(default_factory=list)
    _row: int = 0
    _indent: str = ""

    def write(self, piece: _Piece) -> None:
        self.comments_before(piece)
        self._line(piece.text, piece.indent, piece.span)
        row = self._row_of(piece.span.end)
        if self.comments and self._row_of(self.comments[-1].span.start) == row:
            self.lines[-1] += f"  {self.comments.pop().text}"

    def comments_before(self, piece: _Piece | None) -> None:
        """The comments up to the end of a piece (all that are left, without one)."""
        while self.comments:
            comment = self.comments[-1]
            if piece is not None and comment.span.start >= piece.span.end:
                return
            self.comments.pop()
            indent = piece.indent if piece else ""
            self._line(comment.text, indent or self._kept(comment), comment.span)

    def _kept(self, comment: nodes.Comment) -> str:
        """An indented comment below the last statement of a rule belongs to the
        rule."""
        indented = self.source.position(comment.span.start)[1] > 1
        return INDENT if indented and self._indent else ""

    def _line(self, text: str, indent: str, span: Span) -> None:
        after_head = indent > self._indent
        gap = self._row and self._row_of(span.start) > self._row + 1 and not after_head
        if gap or (self.apart and not indent):
            self.lines.append("")
        self.apart = self.apart and bool(indent)
        self.lines.append(indent + text)
        self._row, self._indent = self._row_of(span.end), indent

    def _row_of(self, offset: int) -> int:
        return self.source.position(offset)[0]
