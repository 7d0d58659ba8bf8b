"""Long statements over several lines, as Black lays them out.

``statement`` takes one statement on one line, in Black's spacing, and breaks it if it
is longer than 88 columns. This follows Black's own method (its `linegen.py`) for the
statements that the targets emit: definitions, assignments, returns, calls, conditions.
It is a port and not a call because a compiler's output must not depend on which
formatter is installed; the tests compare the two.

A line is tried in one piece, then split at its last bracket pair (a definition: at its
first) into head, body and tail, each laid out by itself; the inside of brackets is
split at its weakest operators first. The optional brackets around the right side of an
assignment are there from the start, but invisible.
"""

from __future__ import annotations

import io
import textwrap
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

WIDTH = 88


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


class _CannotSplit(Exception):
    """This way of splitting does not apply to this line."""


@dataclass(eq=False, slots=True)
class _Line:
    tokens: list[Token]
    depth: int
    marks: Marks = field(default_factory=Marks)
    is_inside: bool = False
    is_definition: bool = False
    must_explode: bool = False

    def __str__(self) -> str:
        return "    " * self.depth + "".join(map(str, self.tokens)).strip()

    @property
    def hugging(self) -> str:
        """The final text: ``x**2`` without the spaces that count until then."""
        start = 2 if self.tokens[0].kind == "**" else 0
        parts = [
            *map(str, self.tokens[:start]),
            *(t.hugging for t in self.tokens[start:]),
        ]
        return "    " * self.depth + "".join(parts).strip()

    def fits(self, width: int = WIDTH) -> bool:
        return len(str(self)) <= width


_Way: TypeAlias = "Callable[[_Line, bool], list[_Line]]"


@dataclass(eq=False, slots=True)
class _Split:
    head: _Line
    body: _Line
    tail: _Line
    opening: Token
    closing: Token

    @property
    def lines(self) -> list[_Line]:
        """The three parts; the brackets between them become visible."""
        self.opening.text, self.closing.text = self.opening.kind, self.closing.kind
        return [line for line in (self.head, self.body, self.tail) if line.tokens]


@lru_cache(maxsize=2048)
def statement(text: str, depth: int = 0) -> str:
    """The statement on as many lines as it needs, indented by ``depth`` levels.

    Cached: the targets share half of their long statements.
    """
    indented = "    " * depth + text
    if len(indented) <= WIDTH:
        return indented
    if text.startswith("#"):
        margin = "    " * depth + "# "
        return textwrap.fill(
            text[2:], WIDTH, initial_indent=margin, subsequent_indent=margin
        )
    tokens = split_tokens(text)
    line = _Line(tokens, depth, mark(tokens), is_definition=text.startswith("def "))
    return "\n".join(_rejoined([part.hugging for part in _laid_out(line, False)]))


def _rejoined(lines: list[str]) -> list[str]:
    """Black's second pass over a definition whose result has one part per line: its
    trailing comma keeps it so, and the parameters need no lines of their own.
    """
    exploded = len(lines) > 4 and lines[2].lstrip().startswith(") -> ")
    if not exploded or lines[1].endswith(",") or not lines[-2].endswith(","):
        return lines
    head = lines[0] + lines[1].strip() + lines[2].strip()
    return [head, *lines[3:]] if len(head) <= WIDTH else lines


def _laid_out(line: _Line, is_forced: bool) -> list[_Line]:
    """The lines; with ``is_forced`` the optional brackets are kept."""
    if len(line.hugging) <= WIDTH and not line.must_explode:
        return [line]
    ways: tuple[_Way, ...] = (_by_last_brackets,)
    if line.is_definition:
        ways = (_by_first_brackets,)
    elif line.is_inside:
        ways = (_by_delimiters, _by_last_brackets)
    for way in ways:
        try:
            return _split(line, way, is_forced)
        except _CannotSplit:
            continue
    return [line]


def _split(line: _Line, way: _Way, is_forced: bool) -> list[_Line]:
    before, copy = str(line), _copied(line)
    optional = [token for token in line.marks.optional if token.depth == 0]
    result: list[_Line] = []
    for part in way(line, is_forced):
        if str(part).strip() == before.strip():
            raise _CannotSplit
        result.extend(_laid_out(part, is_forced))
    if (
        is_forced
        or way is not _by_last_brackets
        or not line.marks.optional
        or any(token.text for token in optional)
        or result[0].fits()
    ):
        return result
    second = _split(copy, way, True)
    return second if all(part.fits() for part in second) else result


def _copied(line: _Line) -> _Line:
    tokens = [token.unmatched() for token in line.tokens]
    return replace(line, tokens=tokens, marks=mark(tokens))


# --- at brackets -----------------------------------------------------------------------


def _by_first_brackets(line: _Line, is_forced: bool) -> list[_Line]:
    """Split at the first brackets: the parameters of a definition."""
    start = next(i for i, token in enumerate(line.tokens) if token.kind == "(")
    opening = line.tokens[start]
    end = next(i for i, token in enumerate(line.tokens) if token.opening is opening)
    return _cut(line, start, end).lines


def _by_last_brackets(line: _Line, is_forced: bool) -> list[_Line]:
    """Split at the last brackets, or at earlier ones with the rest on the last line."""
    first: list[_Line] | None = None
    for omitted in _trailers(line):
        lines = _split_at(line, omitted, is_forced)
        if first is None:
            first = lines
        if lines[0].fits():
            return lines
    if first is None:
        raise _CannotSplit
    return first


def _split_at(line: _Line, omitted: frozenset[Token], is_forced: bool) -> list[_Line]:
    return _best(_last(line, omitted), line, omitted, is_forced)


def _last(line: _Line, omitted: frozenset[Token]) -> _Split:
    for end in range(len(line.tokens) - 1, -1, -1):
        token = line.tokens[end]
        if token.closes and token not in omitted:
            if token.opening not in line.tokens:
                raise _CannotSplit
            return _cut(line, line.tokens.index(token.opening), end)
    raise _CannotSplit


def _cut(line: _Line, start: int, end: int) -> _Split:
    tokens = line.tokens
    if end == start + 1 and len("".join(map(str, tokens[end:])).strip()) < 3:
        raise _CannotSplit  # nothing between the brackets, little behind them
    body = _body(line, tokens[start + 1 : end], tokens[start])
    head, tail = tokens[: start + 1], tokens[end:]
    return _Split(
        _Line(head, line.depth),
        body,
        _Line(tail, line.depth),
        tokens[start],
        tokens[end],
    )


def _body(line: _Line, tokens: list[Token], opening: Token) -> _Line:
    tokens = list(tokens)
    if line.is_definition and _is_one_parameter(tokens):
        tokens.append(Token(",", ",", False))
    if tokens:
        tokens[0].space = False
    marks = mark(tokens)
    last = tokens[-1] if tokens else None
    commas = [t for t, p in marks.delimiters.items() if p == COMMA and t is not last]
    explodes = bool(commas) and (opening.is_atom or tokens[-1].kind == ",")
    return _Line(tokens, line.depth + 1, marks, is_inside=True, must_explode=explodes)


def _is_one_parameter(tokens: list[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += token.opens - token.closes
        if token.kind == "," and depth == 0:
            return False
    return bool(tokens)


def _best(
    split: _Split, line: _Line, omitted: frozenset[Token], is_forced: bool
) -> list[_Line]:
    """The split, or one that omits its optional brackets."""
    is_optional = split.opening.is_optional and not split.opening.text
    if not is_forced and is_optional and _can_omit(split):
        omitted = omitted | {split.closing}
        try:
            other = _last(line, omitted)
            if _prefers(other, split):
                return _best(other, line, omitted, is_forced)
        except _CannotSplit:
            if len(split.body.tokens) < 2 and not split.body.fits():
                raise
    return split.lines


def _prefers(other: _Split, split: _Split) -> bool:
    head = split.head.tokens
    if not (len(head) >= 2 and head[-2].kind == "="):
        return True
    if not any(token.opens or token.closes for token in head[:-1]):
        return True
    if not split.head.fits(WIDTH - 1):
        return True
    after = [token.kind for token in other.head.tokens]
    if "=" not in after:
        return any(token.closes for token in other.head.tokens)
    right = other.head.tokens[after.index("=") :]
    return any(token.closes for token in right) or other.head.fits()


def _can_omit(split: _Split) -> bool:
    """True if the line reads well without the optional brackets."""
    line = split.body
    highest = line.marks.highest
    count = line.marks.count(highest)
    if not count or (highest == DOT and count == 1):
        return True
    if count > 1:
        return False
    first, second, last = line.tokens[0], line.tokens[1], line.tokens[-1]
    if first.opens and not second.closes and _can_omit_opening(line, first):
        return True
    if last.kind in (")", "}"):
        return not line.tokens[-2].opens and _can_omit_closing(line, last)
    return False


def _can_omit_opening(line: _Line, first: Token) -> bool:
    is_after, length = False, 4 * line.depth
    for token in line.tokens:
        is_after = is_after or token.opening is first
        if is_after:
            length += token.length
            if length > WIDTH:
                return False
            if token.opens:
                is_after = False  # brackets that can be split further
    return True


def _can_omit_closing(line: _Line, last: Token) -> bool:
    length, has_other = 4 * line.depth, False
    for token in line.tokens:
        length += token.length
        if token is last.opening:
            if has_other or length <= WIDTH:
                return True
        elif token.opens:
            has_other = True
    return False


def _trailers(line: _Line) -> Iterator[frozenset[Token]]:
    """Closing brackets to leave unsplit: none, then more and more from the right while
    their contents fit on a line.
    """
    omitted: set[Token] = set()
    yield frozenset()
    length = 4 * line.depth
    opening: Token | None = None
    closing: Token | None = None
    inner: set[Token] = set()
    for index in range(len(line.tokens) - 1, -1, -1):
        token = line.tokens[index]
        length += token.length
        if length > WIDTH:
            return
        if opening is not None:
            if token is opening:
                opening = None
            elif token.closes:
                inner.add(token)
        elif token.closes:
            if index and line.tokens[index - 1].opens:
                inner.add(token)
                continue
            if closing is not None:
                omitted |= {closing} | inner
                inner = set()
                yield frozenset(omitted)
            if token.text:
                opening, closing = token.opening, token


# --- at operators ----------------------------------------------------------------------


def _by_delimiters(line: _Line, is_forced: bool) -> list[_Line]:
    """Split after each comma, or before each operator of the lowest precedence."""
    last = line.tokens[-1]
    found = {t: p for t, p in line.marks.delimiters.items() if t is not last}
    highest = max(found.values(), default=0)
    if not highest or (highest == DOT and list(found.values()).count(DOT) == 1):
        raise _CannotSplit
    groups: list[list[Token]] = [[]]
    for token in line.tokens:
        groups[-1].append(token)
        if line.marks.delimiters.get(token) == highest and token is not last:
            groups.append([])
    if highest == COMMA and last.kind != ",":
        groups[-1].append(Token(",", ",", False))
    return list(_parts(line, groups))


def _parts(line: _Line, groups: Iterable[list[Token]]) -> Iterator[_Line]:
    for tokens in groups:
        tokens[0].space = False
        yield _Line(tokens, line.depth, mark(tokens), is_inside=line.is_inside)


# --- tokens ----------------------------------------------------------------------------


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
