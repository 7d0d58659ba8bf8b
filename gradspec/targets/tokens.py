"""The tokens of one Python statement, annotated for layout."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field

COMPREHENSION, COMMA, TERNARY, LOGIC, COMPARATOR, DOT = 20, 18, 16, 14, 10, 1
"""Priorities of splits, from first to last (`black.brackets`)."""

_MATHS = {
    "|": 9,
    "^": 8,
    "&": 7,
    "<<": 6,
    ">>": 6,
    "+": 5,
    "-": 5,
    "*": 4,
    "/": 4,
    "//": 4,
    "%": 4,
    "@": 4,
    "**": 2,
}
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=")
_COMPARATORS = ("<", ">", "==", "!=", "<=", ">=")
_LAYOUT = (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)
_UNARY_AFTER = ("if", "else", "and", "or", "not", "return", "in", "is")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_PAIRS.values())


@dataclass(eq=False, slots=True)
class Token:
    """``kind`` is the text, also for an optional bracket, whose ``text`` is empty while
    it is invisible; ``space`` is whether a space stands before it.
    """

    kind: str
    text: str
    space: bool
    is_unary: bool = False
    is_optional: bool = False
    is_atom: bool = False
    """For an opening bracket: a display or grouping, not a call or an index."""
    is_hugged: bool = False
    """Around ``**`` between simple operands the final text has no spaces."""
    opening: Token | None = None
    depth: int = 0

    @property
    def opens(self) -> bool:
        return self.kind in _PAIRS

    @property
    def closes(self) -> bool:
        return self.kind in _CLOSING

    @property
    def length(self) -> int:
        return len(self.text) + self.space

    def __str__(self) -> str:
        return " " * self.space + self.text

    def unmatched(self) -> Token:
        """A copy without its opening bracket. (`replace` takes ten times as long, and
        layouts are tried by the thousand.)
        """
        return Token(
            self.kind,
            self.text,
            self.space,
            self.is_unary,
            self.is_optional,
            self.is_atom,
            self.is_hugged,
            depth=self.depth,
        )

    @property
    def hugging(self) -> str:
        return self.text if self.is_hugged else str(self)


@dataclass(eq=False, slots=True)
class Marks:
    """The possible splits: tokens with the priority of a split after them; and the
    optional brackets.
    """

    delimiters: dict[Token, int] = field(default_factory=dict)
    optional: list[Token] = field(default_factory=list)

    @property
    def highest(self) -> int:
        return max(self.delimiters.values(), default=0)

    def count(self, priority: int) -> int:
        return list(self.delimiters.values()).count(priority)


def mark(tokens: Iterable[Token]) -> Marks:
    """Match the brackets and find the places to split outside of them."""
    marks = Marks()
    stack: list[Token] = []
    previous: Token | None = None
    loop = ""
    for token in tokens:
        if token.closes and not stack:
            continue  # closes a bracket of an earlier line
        if token.closes:
            token.opening = stack.pop()
        token.depth = len(stack)
        if not stack:
            if token.kind == "for" or (loop == "for" and token.kind == "in"):
                loop = token.kind
            if previous is not None:
                _delimit(token, previous, marks.delimiters, loop)
        if token.opens:
            stack.append(token)
        if token.is_optional and not token.text:
            marks.optional.append(token)
        previous = token
    return marks


def _delimit(token: Token, before: Token, found: dict[Token, int], loop: str) -> None:
    """``loop`` is the last word of a comprehension, ``for`` or ``in``."""
    if token.kind == "for" or (token.kind == "if" and loop == "in"):
        found[before] = COMPREHENSION
    elif loop != "for" and (priority := _before(token, before)):
        found[before] = priority
    elif loop != "for" and token.kind == ",":
        found[token] = COMMA


def _before(token: Token, before: Token) -> int:
    if token.is_unary:
        return 0
    if token.kind == ".":
        return DOT if before.closes else 0
    if token.kind in ("if", "else"):
        return TERNARY
    if token.kind in ("and", "or"):
        return LOGIC
    if token.kind in _COMPARATORS:
        return COMPARATOR
    return _MATHS.get(token.kind, 0)


def split_tokens(text: str) -> list[Token]:
    """The tokens of a statement, optional brackets included."""
    tokens: list[Token] = []
    end = 0
    for item in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
        if item.type in _LAYOUT or not item.string:
            continue
        token = Token(item.string, item.string, item.start[1] > end)
        end = item.end[1]
        before = tokens[-1] if tokens else None
        token.is_unary = _is_unary(token, before)
        token.is_atom = token.opens and not _is_trailer(before)
        is_power = token.kind == "**" and not token.is_unary
        is_after_power = before and before.kind == "**" and not before.is_unary
        if not token.space and (is_power or is_after_power):
            token.space = token.is_hugged = True
        tokens.append(token)
    return _with_choices(_with_optional(tokens))


def _is_unary(token: Token, before: Token | None) -> bool:
    if token.kind in ("*", "**") and before is not None and before.kind in "({,":
        return True  # of a parameter list, a call or a display
    if token.kind == "@" and before is None:
        return True  # of a decorator
    return token.kind in ("+", "-", "~") and not _is_operand(before)


def _is_operand(token: Token | None) -> bool:
    if token is None or token.kind in _UNARY_AFTER:
        return False
    return token.closes or token.kind[0].isalnum() or token.kind[0] in "_\"'."


def _is_trailer(before: Token | None) -> bool:
    return before is not None and _is_operand(before)


def _with_optional(tokens: list[Token]) -> list[Token]:
    """Optional brackets around what follows ``return``, ``=`` or ``if … :``."""
    first = tokens[0].kind
    if first in ("def", "class", "from", "import", "raise", "assert", "with", "for"):
        return tokens
    if first in ("if", "elif", "while"):
        return _wrapped(tokens, 1, len(tokens) - 1)
    if first == "return":
        return _wrapped(tokens, 1, len(tokens))
    depth = 0
    for position, token in enumerate(tokens):
        depth += token.opens - token.closes
        if token.kind in _ASSIGNING and depth == 0:
            return _wrapped(tokens, position + 1, len(tokens))
    return tokens


def _wrapped(tokens: list[Token], start: int, end: int) -> list[Token]:
    inner = tokens[start:end]
    mark(inner)
    if not inner or (inner[0].kind == "(" and inner[-1].opening is inner[0]):
        return tokens  # a tuple has its brackets
    return [*tokens[:start], *_bracketed(inner), *tokens[end:]]


def _bracketed(inner: list[Token]) -> list[Token]:
    opening = Token("(", "", inner[0].space, is_optional=True, is_atom=True)
    inner[0].space = False
    return [opening, *inner, Token(")", "", False, is_optional=True)]


def _with_choices(tokens: list[Token]) -> list[Token]:
    """Optional brackets around each ``a if c else b`` not alone in its brackets."""
    mark(tokens)
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        found.append(token)
        position += 1
        if token.opens:
            end = next(i for i, other in enumerate(tokens) if other.opening is token)
            found += _arguments(tokens[position:end], token.kind == "(")
            position = end
    return found


def _arguments(tokens: list[Token], is_round: bool) -> list[Token]:
    """The tokens between two brackets."""
    segments = _segments(tokens)
    alone = is_round and len(segments) == 1
    return [t for s in segments for t in (_inside(s) if alone else _choice(s))]


def _segments(tokens: list[Token]) -> list[list[Token]]:
    """The arguments; each comma and each ``name=`` is a segment of its own."""
    segments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.opens - token.closes
        segments[-1].append(token)
        if depth == 0 and token.kind == ",":
            segments[-1:] = [segments[-1][:-1], [token], []]
        elif depth == 0 and token.kind == "=":
            segments.append([])
    return [segment for segment in segments if segment]


def _choice(tokens: list[Token]) -> list[Token]:
    """A segment, in optional brackets if it is a conditional expression."""
    inner = _inside(tokens)
    depth = 0
    for token in tokens:
        depth += token.opens - token.closes
        if depth == 0 and token.kind == "else":
            return _bracketed(inner)
    return inner


def _inside(tokens: list[Token]) -> list[Token]:
    """A segment; the part after ``else`` may be a conditional expression as well."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += token.opens - token.closes
        if depth == 0 and token.kind == "else":
            rest = tokens[position + 1 :]
            return [*_with_choices(tokens[: position + 1]), *_choice(rest)]
    return _with_choices(tokens)
