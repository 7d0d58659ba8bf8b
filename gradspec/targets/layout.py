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

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from gradspec.targets.tokens import COMMA, DOT, Marks, Token, mark, split_tokens

WIDTH = 88


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
            return _tried(line, way, is_forced)
        except _CannotSplit:
            continue
    return [line]


def _tried(line: _Line, way: _Way, is_forced: bool) -> list[_Line]:
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
    second = _tried(copy, way, True)
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
