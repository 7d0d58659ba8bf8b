"""Long statements on several lines of at most 88 columns, as `ruff format` breaks them.

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
    ".": 1,
}
"""Priorities of breaks before operators: the highest one breaks first."""

_WORDS = frozenset(["return", "if", "elif", "while", "else", "and", "or", "not", "in"])
"""Words before which no operand ends, so that a sign behind them has one operand."""

_ENDS = frozenset("_\"')]}.")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
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
    loops: list[int] = []  # depths of the comprehensions around a token
    before, is_target, is_header = "", False, False
    for found in _TOKEN.finditer(text):
        word = found[0]
        closes = word in _CLOSING
        if closes:
            opened.pop().partner = len(tokens)
        is_kept = closes or is_target or is_header
        priority = 0 if is_kept else _priority(word, before)
        if word == "if" and loops and loops[-1] == len(opened):
            priority = _COMPREHENSION
        if word == "for":
            loops.append(len(opened))
        loops = [depth for depth in loops if depth <= len(opened)]
        tokens.append(_Token(word, *found.span(), len(opened), priority))
        if word in _OPENING:
            opened.append(tokens[-1])
        before, is_target = word, word == "for" or (is_target and word != "in")
        is_header = word == "lambda" or (is_header and word != ":")
    return tokens


def _priority(word: str, before: str) -> int:
    if before == ",":
        return _COMMA
    if word == "for":
        return _COMPREHENSION
    is_infix = before[-1:] in _CLOSING if word == "." else _ends_operand(before)
    return _OPERATORS.get(word, 0) if is_infix else 0


def _ends_operand(word: str) -> bool:
    return word not in _WORDS and (word[-1:].isalnum() or word[-1:] in _ENDS)


class _Statement:
    """A statement, of whose tokens the slices ``first:last`` are laid out."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, _tokens(text)

    def lines(self, indent: int) -> list[str]:
        """The whole statement. What it assigns, returns or tests gets brackets if it has
        operators, unless it is enough to open those that it begins or ends with.
        """
        first, last = self._value()
        if first == last:
            return self._open(0, last, indent)
        head = self._text[: self._tokens[first].start]
        tail = self._text[self._tokens[last - 1].end :]
        if indent + len(head) > WIDTH and self._breaks(0, first):
            targets, _, rest = self._text.partition(" = ")
            return _Statement(f"({targets}) = {rest}").lines(indent)
        margin, end = " " * indent, len(self._tokens)
        opened = self._open(0, end, indent)
        breaks = self._breaks(first, last)
        is_bracketed = self._pairs(first, last)[:1] == [(first, last - 1)]
        if is_bracketed or self._needs_no_brackets(first, last, breaks, indent):
            return opened
        inner = self._inside(first, last, indent + 4)
        wrapped = [f"{margin}{head}(", *inner, f"{margin}){tail}"]
        return wrapped if breaks else _shorter(opened, wrapped)

    def _needs_no_brackets(
        self, first: int, last: int, breaks: list[int], indent: int
    ) -> bool:
        """True of a value with one operator that binds least, if it begins or ends with
        brackets and fits when all its brackets are opened.
        """
        tokens, pairs = self._tokens, self._pairs(first, last)
        if not pairs or len(breaks) != 1 or tokens[breaks[0]].priority == _COMMA:
            return False
        a, b = pairs[-1]
        is_subscript = tokens[a].text == "[" and _ends_operand(tokens[a - 1].text)
        if pairs[0][0] != first and (b != last - 1 or is_subscript):
            return False
        starts = [0, *(b for _, b in pairs)]
        ends = [*(a + 1 for a, _ in pairs), len(tokens)]
        return all(
            indent + len(self._slice(start, end)) <= WIDTH
            for start, end in zip(starts, ends, strict=True)
        )

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
        breaks = self._breaks(first, last)
        has_commas = bool(breaks) and self._tokens[breaks[0]].priority == _COMMA
        if len(line) <= WIDTH and not (has_commas and self._is_display(first)):
            return [line]
        if not breaks:
            return self._open(first, last, indent, tail)
        if has_commas:
            tail = "" if self._tokens[last - 1].text == "," else ","
        return [
            line
            for start, end in pairwise([first, *breaks, last])
            for line in self._inside(start, end, indent, tail if end == last else "")
        ]

    def _is_display(self, first: int) -> bool:
        """True if a tuple, a list or a dictionary has its first element here."""
        if first < 2 or self._tokens[first - 1].text not in _OPENING:
            return True  # a tuple that gets its brackets here
        return not _ends_operand(self._tokens[first - 2].text)

    def _pairs(self, first: int, last: int) -> list[tuple[int, int]]:
        """The brackets of a slice that are outside others and not empty."""
        inner = enumerate(self._tokens[first:last], first)
        depth = self._tokens[first].depth
        found = [(k, t.partner) for k, t in inner if t.depth == depth]
        return [(k, partner) for k, partner in found if partner > k + 1]

    def _open(self, first: int, last: int, indent: int, tail: str = "") -> list[str]:
        """A slice with those pairs of brackets opened from the left on that leave no
        room for what follows, up to the next pair; in a definition the first one.
        """
        tokens, margin = self._tokens, " " * indent
        line = margin + self._slice(first, last) + tail
        pairs = self._pairs(first, last)
        if not pairs or len(line) <= WIDTH:
            return [line]
        if tokens[first].text == "def":
            pairs = pairs[:1]
        nexts = [tokens[a].end for a, _ in pairs[1:]]
        nexts.append(tokens[last - 1].end + len(tail))
        room = WIDTH - indent + tokens[first].start
        a, b = next(
            (pair for pair, end in zip(pairs, nexts, strict=True) if end > room),
            pairs[-1],
        )
        return [
            margin + self._slice(first, a + 1),
            *self._inside(a + 1, b, indent + 4),
            *self._open(b, last, indent, tail),
        ]

    def _breaks(self, first: int, last: int) -> list[int]:
        """The breaks of the highest priority in a slice, outside its brackets."""
        inner = enumerate(self._tokens[first + 1 : last], first + 1)
        depth = self._tokens[first].depth if first < last else 0
        found = {k: t.priority for k, t in inner if t.depth == depth and t.priority}
        highest = max(found.values(), default=0)
        breaks = [place for place, priority in found.items() if priority == highest]
        is_one_call = highest == _OPERATORS["."] and len(breaks) == 1
        return [] if is_one_call else breaks

    def _slice(self, first: int, last: int) -> str:
        return self._text[self._tokens[first].start : self._tokens[last - 1].end]


def _shorter(lines: list[str], others: list[str]) -> list[str]:
    """The layout that is within the width and has fewer lines; the first one if both
    are as good.
    """
    return min(lines, others, key=lambda way: (max(map(len, way)) > WIDTH, len(way)))
