"""The values that the stages of the parser exchange: tokens, lines, faults, and the
values of literals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
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
    shown = shortened(token.text)
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
    lines = _escaped(value).split("\n")
    if len(lines) == 1:
        return f'"""{lines[0]}"""'
    rest = [indent + line if line else "" for line in lines[1:]]
    return "\n".join([f'"""{lines[0]}', *rest, f'{indent}"""'])


def _escaped(value: str) -> str:
    """A backslash that would be read as an escape, and a quote that would help to end
    the docstring, get a backslash before them.
    """
    return re.sub(r'\\(?=[\\"]|\Z)|"(?=""|\Z)', r"\\\g<0>", value)
