"""Tokens and their faults, the values of literals, and the lines and items that tokens
make up.

A logical line goes on while a bracket is open. A line at the margin begins an item, the
indented lines below it are its body; a `.grad` file has no deeper blocks. A bracket
that is never closed ends its line where the next line begins that is indented no
deeper, so that it costs one fault and not the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from gradspec.diagnostics import Fix
from gradspec.source import Span

LINE_END = "LINE_END"
"""The type of the token at the end of each physical line; it ends where the next
begins."""

ENOUGH = 1000
"""A text with so many odd characters is not a `.grad` file; the rest is not looked
at."""

MAX_DEPTH = 300
"""Maximum nesting of brackets, and maximum depth of an expression tree."""

ITEM_WORDS = ("RULE", "DEF", "FROM", "EXTERN")
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
    """A diagnostic that does not yet know its source; ``also`` adds places. ``fixes``
    are changes that may mend it, the likeliest first (`parse.parse` tries them).
    """

    code: str
    headline: str
    span: Span
    label: str = ""
    help: str = ""
    also: tuple[tuple[Span, str], ...] = ()
    fixes: tuple[Fix, ...] = ()


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


def shorten(text: str) -> str:
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


# --- literals -------------------------------------------------------------------------


_LARGEST = Fraction(2) ** 1024 - Fraction(2) ** 970  # of float64, exactly
_SMALLEST = Fraction(1, 2**1074)  # of float64, not zero
_MOST_DIGITS = 1000
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)\Z")


def number_value(token: Token) -> Fraction:
    """The value of a NUMBER. The exponent is looked at before anything is computed:
    ``1e999999999`` as a fraction would fill the memory.
    """
    text = token.text.replace("_", "")
    if len(text) <= 15 and text.isdigit():
        return Fraction(int(text))
    exponent = _EXPONENT.search(text)
    if len(text) > _MOST_DIGITS:
        raise FaultFound(_out_of_range(token, f"has more than {_MOST_DIGITS} digits"))
    if exponent is not None and len(exponent[1]) > 4:
        raise FaultFound(_out_of_range(token, "is beyond the range of float64"))
    value = Fraction(text)
    if value > _LARGEST or 0 < value < _SMALLEST:
        raise FaultFound(_out_of_range(token, "is beyond the range of float64"))
    return value


def _out_of_range(token: Token, what: str) -> Fault:
    shown = shorten(token.text)
    help = "infinity is written `inf`; nothing finite beyond 1.8e308 can be computed"
    return Fault("GS121", f"the number `{shown}` {what}", token.span, help=help)


def number_text(value: Fraction) -> str:
    """The literal of a value that has one: no sign, finitely many decimals."""
    digits, scale = value.numerator, 0
    while digits % value.denominator and scale < 1100:
        digits, scale = digits * 10, scale + 1
    if value < 0 or digits % value.denominator:
        raise ValueError(f"{value} has no literal")
    text = str(digits // value.denominator).zfill(scale + 1)
    return f"{text[:-scale]}.{text[-scale:]}" if scale else text


# --- texts in quotes --------------------------------------------------------------------

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_WRITTEN = {"\n": r"\n", "\t": r"\t", "\r": r"\r", '"': r"\"", "\\": r"\\"}


def string_value(literal: str) -> str:
    r"""The text of ``"…"`` or ``'…'``. Known are ``\n \t \r \" \' \\``; before anything
    else a backslash is itself.
    """
    known = r"\\([ntr\"'\\])"
    return re.sub(known, lambda match: _ESCAPES[match[1]], literal[1:-1])


def string_literal(value: str) -> str:
    """The literal of a text, in double quotes."""
    return '"' + re.sub(r'[\n\t\r"\\]', lambda match: _WRITTEN[match[0]], value) + '"'


def docstring_value(literal: str) -> str:
    r"""The text of a docstring, without the indentation of its lines and without blanks
    at its ends. A backslash is itself (docstrings hold formulas), but for ``\"`` and
    ``\\``.
    """
    return tidy(re.sub(r"\\([\"\\])", r"\1", literal[3:-3]))


def tidy(text: str) -> str:
    """A text as a docstring keeps it: no blank lines at its ends, no blanks at the ends
    of lines, its first line at the margin and the others without common indentation.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [number for number, line in enumerate(lines) if line]
    if not kept:
        return ""
    first, *rest = lines[kept[0] : kept[-1] + 1]
    common = min(
        (len(line) - len(line.lstrip(" ")) for line in rest if line), default=0
    )
    return "\n".join([first.lstrip(), *(line[common:] for line in rest)])


def docstring_literal(value: str, indent: str) -> str:
    """The docstring of a tidy text; all but its first line stand at ``indent``."""
    lines = _escape(value).split("\n")
    if len(lines) == 1:
        return f'"""{lines[0]}"""'
    rest = [indent + line if line else "" for line in lines[1:]]
    return "\n".join([f'"""{lines[0]}', *rest, f'{indent}"""'])


def _escape(value: str) -> str:
    """A backslash that would be read as an escape, and a quote that would help to end
    the docstring, get a backslash before them.
    """
    return re.sub(r'\\(?=[\\"]|\Z)|"(?=""|\Z)', r"\\\g<0>", value)


# --- logical lines --------------------------------------------------------------------

MAX_TOKENS = 10_000
"""A line of more tokens is not written by a person, and would take seconds to parse."""

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
        stop = _end_of_unclosed(found, start, stop, indent, brackets.open[0])
        found.faults.append(_unclosed_fault(brackets.open, found.tokens[start:stop]))
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
                self._add(_mismatch_fault, opened, token)

    def _add(self, fault: Callable[..., Fault], *tokens: Token) -> None:
        if len(self.faults) < ENOUGH:
            self.faults.append(fault(*tokens))


def _too_long(first: Token) -> Fault:
    headline = f"this line has more than {MAX_TOKENS} words and signs"
    help = "give names to its parts"
    return Fault("GS120", headline, first.span, help=help)


def _unclosed_fault(open_: Sequence[Token], line: Sequence[Token]) -> Fault:
    """A fault at the outermost bracket; it may be closed anywhere behind it."""
    first = open_[0]
    headline = f"`{first.text}` is never closed"
    help = f"close it with `{_CLOSED_BY[first.type]}`"
    closing = "".join(_CLOSED_BY[token.type] for token in reversed(open_))
    ends = [t.end for t in line if t.type != LINE_END and t.start > first.start]
    is_one = len(open_) == 1
    fixes = (
        Fix(f"close it with `{closing}`", Span(end, end), closing, is_safe=is_one)
        for end in (ends[: -_PLACES - 1 : -1] if is_one else ends[-1:])
    )
    return Fault("GS103", headline, first.span, help=help, fixes=tuple(fixes))


_PLACES = 8
"""Places where a bracket may be closed that are tried."""


def _stray(token: Token) -> Fault:
    headline = f"`{token.text}` closes nothing"
    help = "delete it, or open the bracket that it closes"
    fix = Fix("delete it", token.span, "")
    return Fault("GS104", headline, token.span, help=help, fixes=(fix,))


def _mismatch_fault(opened: Token, closed: Token) -> Fault:
    headline = f"`{closed.text}` cannot close `{opened.text}`"
    help = f"close it with `{_CLOSED_BY[opened.type]}`"
    also = ((opened.span, "opened here"),)
    fixes = (
        Fix(help, closed.span, _CLOSED_BY[opened.type]),
        Fix(
            f"open it with `{_OPENING[closed.text]}`",
            opened.span,
            _OPENING[closed.text],
        ),
    )
    return Fault("GS104", headline, closed.span, help=help, also=also, fixes=fixes)


_OPENING = {")": "(", "]": "["}


# --- items ----------------------------------------------------------------------------

_LATE_STARTS = frozenset(
    ["SIGN", "SCALE", "POWER", "COMPARISON", "IF", "ELSE", "AND", "OR", "ARROW"]
)
_OPEN_ENDS = _LATE_STARTS | {"EQUAL", "COMMA", "NOT"}


@dataclass(slots=True)
class _Item:
    """An item that lines are added to; ``indent`` is that of its body, once known."""

    head: Line
    body: list[Line] = field(default_factory=list)
    indent: int = TABBED

    def add(self, line: Line) -> None:
        self.body.append(line)
        if self.indent == TABBED:
            self.indent = line.indent


def blocks(text: str, lines: Sequence[Line], faults: list[Fault]) -> list[Chunk]:
    """Lines of a text as items; adds the faults in their indentation."""
    items: list[_Item] = []
    joined = _join_lines(lines, faults)
    _refuse_tab(text, joined, faults)
    for line in joined:
        if items and _is_rest(line, items[-1]):
            head = items[-1].head
            tokens, sound = head.tokens + line.tokens, head.sound and line.sound
            items[-1].head = Line(tokens, head.indent, sound)
            continue
        if items and _is_below(line, items[-1]):
            _check_indent(line, items[-1], faults)
            items[-1].add(line)
            continue
        if line.indent > 0:
            faults.append(unexpected_indent(line))
        items.append(_Item(line))
    return [Chunk(item.head, tuple(item.body)) for item in items]


def _is_rest(line: Line, item: _Item) -> bool:
    """True if an indented line is more of a foreign function's definition."""
    is_foreign = item.head.first == "EXTERN" and not item.body
    return is_foreign and line.indent > 0 and line.first == "WITH"


def _is_below(line: Line, item: _Item) -> bool:
    """True if a line belongs to an item. A line at the margin does when it is a
    statement and the rule above it has no body yet.
    """
    if _begins_item(line):
        return False
    if line.indent == 0 and item.head.first not in ITEM_WORDS:
        return True  # all that stands outside is reported once
    if line.indent == 0:
        return item.head.first == "RULE" and (not item.body or item.indent == 0)
    return True


def _begins_item(line: Line) -> bool:
    """True by its words alone: an item may have been indented by mistake."""
    second = line.tokens[1:2]
    if line.first == "EXTERN":
        return bool(second) and second[0].type == "DEF"
    if line.first != "RULE":
        return line.first in ITEM_WORDS
    return bool(second) and second[0].text.isidentifier()


def _check_indent(line: Line, item: _Item, faults: list[Fault]) -> None:
    if item.head.first != "RULE":
        return  # reported with the head, or as a whole: see `parse`
    if item.body and item.body[-1].tokens[-1].type == "COLON":
        return  # a block of Python: the line with the colon is reported
    if line.indent in (TABBED, item.indent):
        return
    if item.indent == TABBED and line.indent == 0:
        headline = "the body of a rule is indented"
        help = "put four spaces before each line of the body"
        faults.append(_fault(line, headline, help))
    elif line.indent > item.indent > TABBED:
        faults.append(unexpected_indent(line))
    elif item.indent > TABBED:
        headline = "this line is indented less than the body that it belongs to"
        faults.append(_fault(line, headline, _spaces(item.indent), item.indent))


def unexpected_indent(line: Line) -> Fault:
    """A line that is indented for no reason."""
    if _begins_item(line):
        headline = f"`{line.tokens[0].text}` must begin at the margin"
        return _fault(line, headline, "delete the spaces before it", 0)
    headline = "this line is indented, but nothing above it asks for that"
    help = "give it the indentation of the line above; a line goes on only in brackets"
    return _fault(line, headline, help)


def _spaces(count: int) -> str:
    return f"indent it by {count} space{'s' if count > 1 else ''}, as the lines above"


def _fault(line: Line, headline: str, help: str, wanted: int | None = None) -> Fault:
    """A fault in the indentation of a line; the ``wanted`` one, if it is known."""
    span = line.tokens[0].span
    fixes: tuple[Fix, ...] = ()
    if wanted is not None and line.indent != TABBED:
        blank = Span(span.start - line.indent, span.start)
        fixes = (Fix(help, blank, " " * wanted, is_safe=True),)
    return Fault("GS106", headline, span, help=help, fixes=fixes)


def _refuse_tab(text: str, lines: Sequence[Line], faults: list[Fault]) -> None:
    """Report a tab, once for the whole file."""
    tabbed = [line for line in lines if line.indent == TABBED]
    if not tabbed:
        return
    start = tabbed[0].tokens[0].start
    headline = "this line is indented with a tab"
    if len(tabbed) > 1:
        others = len(tabbed) - 1
        headline += f", and {others} more line{'s' if others > 1 else ''} of this file"
    help = "indent with spaces: a tab is not the same width everywhere"
    place = Span(start - 1, start)
    fixes = (
        Fix(
            "indent with spaces", Span(0, len(text)), _untabbed_text(text), is_safe=True
        ),
    )
    faults.append(Fault("GS105", headline, place, help=help, fixes=fixes))


def _untabbed_text(text: str) -> str:
    return re.sub(r"^[ \t]+", lambda blank: blank[0].expandtabs(4), text, flags=re.M)


def _join_lines(lines: Sequence[Line], faults: list[Fault]) -> list[Line]:
    """Lines with those added that visibly go on without brackets, which is a fault."""
    groups: list[list[Line]] = []
    for line in lines:
        if not groups or not _goes_on(groups[-1], line):
            groups.append([line])
            continue
        if len(groups[-1]) == 1 and groups[-1][0].sound:
            headline = "a line goes on only inside brackets"
            help = "put the whole expression in brackets: `(`, `)`"
            faults.append(_fault(line, headline, help))
        groups[-1].append(line)
    return [_one(group) for group in groups]


def _one(group: list[Line]) -> Line:
    first, *more = group
    if not more:
        return first
    tokens = tuple(token for line in group for token in line.tokens)
    return replace(first, tokens=tokens, sound=False)


def _goes_on(group: list[Line], line: Line) -> bool:
    indent, above = group[0].indent, group[-1].tokens[-1].type
    if line.indent <= indent or indent == TABBED or _begins_item(line):
        return False
    return above in _OPEN_ENDS or (above != "COLON" and line.first in _LATE_STARTS)
