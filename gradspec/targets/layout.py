"""Long statements on several lines of at most 88 columns.

``statement`` takes a statement on one line. If that is too long, the contents of a pair
of brackets move to lines of their own: to one if they fit on it, otherwise each argument
to its own, with a comma behind it, or each operand of the operators that bind least,
with the operator in front of it. The same is done with each of these.

The depth of each token and the priority of a break before it are computed once; a line
is a slice of the statement.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

WIDTH = 88

_COMPREHENSION, _COMMA = 20, 18
_OPERATORS = {
    **dict.fromkeys(("if", "else"), 16),
    **dict.fromkeys(("and", "or"), 14),
    **dict.fromkeys(("<", ">", "==", "!=", "<=", ">=", "is"), 10),
    **{"|": 9, "^": 8, "&": 7, "<<": 6, ">>": 6},
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 4),
    "**": 2,
}
"""Priorities of breaks before operators: the highest one breaks first."""

_WORDS = frozenset(["return", "if", "elif", "while", "else", "and", "or", "not", "in"])
"""Words before which no operand ends, so that a sign behind them has one operand."""

_ENDS = frozenset("_\"')]}.")
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=")
_TOKEN = re.compile(
    r"""
    [A-Za-z]{0,2}(["'])(?:(?!\1)[^\\]|\\.)*\1   # a string
    | \d(?:[\w.]|(?<=e)-)*                      # a number
    | \w+ | \*\* | // | << | >> | -> | [-+*/|&^%@<>=!:]= | \S
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=2048)
def statement(text: str, depth: int = 0) -> str:
    """The statement on as many lines as it needs, indented by ``depth`` levels.

    Cached: the targets share half of their long statements.
    """
    margin = "    " * depth
    if len(margin) + len(text) <= WIDTH:
        return margin + text
    if text.startswith("#"):
        margin += "# "
        return textwrap.fill(
            text[2:], WIDTH, initial_indent=margin, subsequent_indent=margin
        )
    return "\n".join(_Statement(text).lines(4 * depth))


@dataclass(slots=True)
class _Token:
    """``depth`` is the number of brackets around it, ``priority`` that of a break before
    it, and ``partner`` the place of the bracket that closes it; both may be 0.
    """

    text: str
    start: int
    end: int
    depth: int
    priority: int
    partner: int = 0


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    opened: list[_Token] = []
    before, is_target = "", False
    for found in _TOKEN.finditer(text):
        word = found[0]
        closes = word in (")", "]", "}")
        if closes:
            opened.pop().partner = len(tokens)
        priority = 0 if closes or is_target else _priority(word, before)
        tokens.append(_Token(word, *found.span(), len(opened), priority))
        if word in ("(", "[", "{"):
            opened.append(tokens[-1])
        before, is_target = word, word == "for" or (is_target and word != "in")
    return tokens


def _priority(word: str, before: str) -> int:
    if before == ",":
        return _COMMA
    if word == "for":
        return _COMPREHENSION
    is_infix = before not in _WORDS and (before[-1:].isalnum() or before[-1:] in _ENDS)
    return _OPERATORS.get(word, 0) if is_infix else 0


class _Statement:
    """A statement, of whose tokens the slices ``first:last`` are laid out."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, _tokens(text)

    def lines(self, indent: int) -> list[str]:
        """The whole statement. What it assigns, returns or tests gets brackets if it has
        operators, unless it takes fewer lines to open those that it begins or ends with.
        """
        first, last = self._value()
        if first == last:
            return self._opened(0, last, indent)
        head = self._text[: self._tokens[first].start]
        tail = self._text[self._tokens[last - 1].end :]
        if indent + len(head) > WIDTH and self._breaks(0, first):
            targets, _, rest = self._text.partition(" = ")
            return _Statement(f"({targets}) = {rest}").lines(indent)
        margin, inner = " " * indent, self._inside(first, last, indent + 4)
        wrapped = [f"{margin}{head}(", *inner, f"{margin}){tail}"]
        breaks, end = self._breaks(first, last), len(self._tokens)
        if not breaks:
            return _shorter(self._opened(0, end, indent), wrapped)
        if self._tokens[breaks[0]].priority == _COMMA:
            return wrapped
        ends = [
            (a, b)
            for a, b in self._pairs(first, last)
            if (a == first or (b == last - 1 and len(breaks) == 1))
            and indent + len(self._slice(b, end)) <= WIDTH
        ]
        return _shorter(wrapped, self._opened(0, end, indent, pairs=ends))

    def _value(self) -> tuple[int, int]:
        """The slice that may get brackets; empty if there is none."""
        word, last = self._tokens[0].text, len(self._tokens)
        if word == "return":
            return 1, last
        if word in ("if", "elif", "while"):
            return 1, last - 1
        for place in range(last - 1, 0, -1):
            token = self._tokens[place]
            if token.depth == 0 and token.text in _ASSIGNING:
                return place + 1, last
        return last, last

    def _inside(self, first: int, last: int, indent: int, tail: str = "") -> list[str]:
        """The lines of a slice between brackets; ``tail`` is the comma behind it."""
        line = " " * indent + self._slice(first, last) + tail
        if len(line) <= WIDTH:
            return [line]
        breaks = self._breaks(first, last)
        if not breaks:
            return self._opened(first, last, indent, tail)
        if self._tokens[breaks[0]].priority == _COMMA:
            tail = "" if self._tokens[last - 1].text == "," else ","
        return [
            line
            for start, end in pairwise([first, *breaks, last])
            for line in self._inside(start, end, indent, tail if end == last else "")
        ]

    def _pairs(self, first: int, last: int) -> list[tuple[int, int]]:
        """The brackets of a slice that are outside others and not empty."""
        inner = enumerate(self._tokens[first:last], first)
        depth = self._tokens[first].depth
        found = [(k, t.partner) for k, t in inner if t.depth == depth]
        return [(k, partner) for k, partner in found if partner > k + 1]

    def _opened(
        self,
        first: int,
        last: int,
        indent: int,
        tail: str = "",
        pairs: list[tuple[int, int]] | None = None,
    ) -> list[str]:
        """A slice with one pair of brackets opened: the largest that leaves one line
        before and one behind it; in a definition the first one.
        """
        tokens, margin = self._tokens, " " * indent
        line = margin + self._slice(first, last) + tail
        pairs = self._pairs(first, last) if pairs is None else pairs
        if not pairs or len(line) <= WIDTH:
            return [line]
        head = WIDTH - indent + tokens[first].start
        rest = tokens[last - 1].end + len(tail) - WIDTH + indent
        fitting = [
            (a, b)
            for a, b in pairs
            if tokens[a].end <= head and tokens[b].start >= rest
        ]
        if tokens[first].text == "def" or not fitting:
            fitting = pairs[:1]
        a, b = max(
            fitting, key=lambda pair: tokens[pair[1]].end - tokens[pair[0]].start
        )
        return [
            margin + self._slice(first, a + 1),
            *self._inside(a + 1, b, indent + 4),
            *self._opened(b, last, indent, tail),
        ]

    def _breaks(self, first: int, last: int) -> list[int]:
        """The breaks of the highest priority in a slice, outside its brackets."""
        inner = enumerate(self._tokens[first + 1 : last], first + 1)
        depth = self._tokens[first].depth if first < last else 0
        found = {k: t.priority for k, t in inner if t.depth == depth and t.priority}
        highest = max(found.values(), default=0)
        return [place for place, priority in found.items() if priority == highest]

    def _slice(self, first: int, last: int) -> str:
        return self._text[self._tokens[first].start : self._tokens[last - 1].end]


def _shorter(lines: list[str], others: list[str]) -> list[str]:
    """The layout that is within the width and has fewer lines; the first one if both
    are as good.
    """
    return min(lines, others, key=lambda way: (max(map(len, way)) > WIDTH, len(way)))
