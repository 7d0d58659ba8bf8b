"""Physical lines to logical lines: a line goes on while a bracket is open.

Never raises. A bracket that is never closed ends its line where the next line begins
that is indented no deeper, so that it costs one fault and not the rest of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradspec.source import Span
from gradspec.syntax.scan import ENOUGH, LINE_END
from gradspec.syntax.tokens import TABBED, Fault, Line, Token

MAX_DEPTH = 300
"""Maximum nesting of brackets, and maximum depth of an expression tree."""

MAX_TOKENS = 10_000
"""A line of more tokens is not written by a person, and would take seconds to parse."""

ITEM_WORDS = ("RULE", "DEF", "FROM")

_OPENED_BY = {"RPAR": "LPAR", "RSQB": "LSQB"}
_CLOSED_BY = {"LPAR": ")", "LSQB": "]"}


@dataclass(slots=True)
class Layout:
    """The logical lines of a text, and their faults."""

    text: str
    tokens: Sequence[Token]
    lines: list[Line] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    distrust: int = 0
    """Up to this token an open bracket is not believed to go on at a line that is not
    indented deeper: one before it was never closed. (Without this, many such brackets
    would each search the rest of the file.)
    """


def layout(text: str, tokens: Sequence[Token]) -> Layout:
    """The logical lines of a scanned text."""
    found = Layout(text, tokens)
    at = 0
    while at < len(tokens):
        at = at + 1 if tokens[at].type == LINE_END else _line(found, at)
    return found


def _line(found: Layout, start: int) -> int:
    """Adds the logical line that begins at token ``start``; gives where it ends."""
    brackets, indent = _Brackets(), _indent(found, start)
    stop = _stop(found, start, indent, brackets)
    if brackets.open:
        found.distrust = max(found.distrust, stop)
        found.faults.append(_unclosed(brackets.open[0]))
        stop = _end_of_unclosed(found, start, stop, indent, brackets.open[0])
        end = found.tokens[stop - 1].end
        brackets.faults = [f for f in brackets.faults if f.span.start < end]
    found.faults.extend(brackets.faults)
    taken = [token for token in found.tokens[start:stop] if token.type != LINE_END]
    if brackets.strays:
        taken = [token for token in taken if token not in brackets.strays]
    if len(taken) > MAX_TOKENS:
        brackets.faults.append(_too_long(taken[0]))
        found.faults.append(brackets.faults[-1])
    if taken:
        sound = not brackets.open and not brackets.faults
        found.lines.append(Line(tuple(taken), indent, sound))
    return stop


def _stop(found: Layout, start: int, indent: int, brackets: _Brackets) -> int:
    """The token before which the line ends; brackets may still be open there."""
    tokens = found.tokens
    for at in range(start, len(tokens)):
        token = tokens[at]
        if token.type == LINE_END:
            if not brackets.open:
                return at
        elif (
            brackets.open
            and tokens[at - 1].type == LINE_END
            and _must_be_new(found, at, indent)
        ):
            return at
        else:
            brackets.take(token)
    return len(tokens)


def _must_be_new(found: Layout, at: int, indent: int) -> bool:
    """True if this first token of a physical line begins a new line, though a bracket
    is open: an item does, or a line where brackets are no longer trusted.
    """
    token, column = found.tokens[at], _indent(found, at)
    if token.type in ITEM_WORDS and column == 0:
        following = found.tokens[at + 1 : at + 2]
        return bool(following) and following[0].type in ("NAME", "STRING")
    return at < found.distrust and column <= indent and token.type not in _OPENED_BY


def _end_of_unclosed(
    found: Layout, start: int, stop: int, indent: int, opened: Token
) -> int:
    """The end of the line of an unclosed bracket. The head of a rule ends at its colon
    or with the bracket's line: lines indented below it are the rule's body.
    """
    tokens = found.tokens
    ends = [
        at
        for at in range(start, stop)
        if tokens[at].type == LINE_END and tokens[at].start > opened.start
    ]
    if tokens[start].type == "RULE" and indent == 0:
        colons = (at for at in ends if tokens[at - 1].type == "COLON")
        return next(colons, ends[0] if ends else stop)
    shallow = (at for at in ends if at + 1 < stop and _indent(found, at + 1) <= indent)
    return next(shallow, stop)


def _indent(found: Layout, at: int) -> int:
    """The indentation of the physical line that begins with this token."""
    start = found.tokens[at - 1].end if at else 0
    blank = found.text[start : found.tokens[at].start].lstrip("\ufeff")
    return TABBED if "\t" in blank else len(blank)


# --- brackets -------------------------------------------------------------------------


@dataclass(slots=True)
class _Brackets:
    """The brackets of a line: those open so far, and their faults."""

    open: list[Token] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    strays: set[Token] = field(default_factory=set)

    def take(self, token: Token) -> None:
        if token.type in _CLOSED_BY:
            self.open.append(token)
            if len(self.open) == MAX_DEPTH + 1:
                self.faults.append(too_deep(token.span))
        elif token.type in _OPENED_BY and not self.open:
            self.strays.add(token)
            self._add(_stray, token)
        elif token.type in _OPENED_BY:
            opened = self.open.pop()
            if opened.type != _OPENED_BY[token.type]:
                self._add(_mismatched, opened, token)

    def _add(self, fault: Callable[..., Fault], *tokens: Token) -> None:
        if len(self.faults) < ENOUGH:
            self.faults.append(fault(*tokens))


def too_deep(span: Span) -> Fault:
    """Brackets or operators nested beyond MAX_DEPTH."""
    headline = f"this is nested more than {MAX_DEPTH} levels deep"
    help = "give a name to a part of it: `part = …` on a line of its own"
    return Fault("GS120", headline, span, help=help)


def _too_long(first: Token) -> Fault:
    headline = f"this line has more than {MAX_TOKENS} words and signs"
    help = "give names to its parts"
    return Fault("GS120", headline, first.span, help=help)


def _unclosed(token: Token) -> Fault:
    headline = f"`{token.text}` is never closed"
    return Fault(
        "GS103", headline, token.span, help=f"close it with `{_closer(token)}`"
    )


def _stray(token: Token) -> Fault:
    headline = f"`{token.text}` closes nothing"
    help = "delete it, or open the bracket that it closes"
    return Fault("GS104", headline, token.span, help=help)


def _mismatched(opened: Token, closed: Token) -> Fault:
    headline = f"`{closed.text}` cannot close `{opened.text}`"
    help = f"close it with `{_closer(opened)}`"
    also = ((opened.span, "opened here"),)
    return Fault("GS104", headline, closed.span, help=help, also=also)


def _closer(opened: Token) -> str:
    return _CLOSED_BY[opened.type]
