"""The parser that lark makes from ``grammars/gradspec.lark``.

It is made once per process (about 60 ms, most of it the tables of LALR; lark's own
cache would write files that a compiler has no business to leave behind). lark is
imported here only, and only when something is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.syntax.tokens import Token

if TYPE_CHECKING:
    from lark import Lark

STARTS = ("module", "header", "statement", "expression")


class Unexpected(Exception):
    """The text cannot go on like this. ``index`` counts the tokens taken, ``expected``
    holds the terminals that could stand there (some only before others).
    """

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index = index
        self.expected = expected


def grammar_text() -> str:
    """The grammar: of the checkout, or as installed with the package."""
    checkout = Path(__file__).parents[2] / "grammars" / "gradspec.lark"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    installed = resources.files("gradspec") / "_grammars" / "gradspec.lark"
    return installed.read_text(encoding="utf-8")


@cache
def _parser() -> Lark:
    from lark import Lark
    from lark.lexer import Lexer

    from gradspec.syntax.build import Builder

    class Fed(Lexer):
        """Tokens are fed one by one; there is nothing to lex."""

        def __init__(self, lexer_conf: Any) -> None: ...

        def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
            return iter(())

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer=Fed,
        start=list(STARTS),
        keep_all_tokens=True,
        transformer=Builder(),  # type: ignore[arg-type]
    )


def run(tokens: Iterable[Token], start: str) -> Any:
    """What the builder makes of ``tokens``; raises Unexpected, or what the builder does."""
    from lark.exceptions import UnexpectedToken

    state = _parser().parse_interactive(start=start).parser_state
    count = 0
    try:
        for token in tokens:
            state.feed_token(token)  # type: ignore[arg-type]
            count += 1
        return state.feed_token(Token("$END", "", 0, 0), True)  # type: ignore[arg-type]
    except UnexpectedToken as fault:
        raise Unexpected(count, frozenset(fault.expected)) from None


# --- terminals ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The terminals: one pattern whose groups are their names, and the words that a
    NAME may turn out to be.
    """

    pattern: str
    words: dict[str, str]


@cache
def lexicon() -> Lexicon:
    from lark.lexer import PatternStr

    words: dict[str, str] = {}
    shapes: list[tuple[int, int, str, str]] = []
    for terminal in _parser().terminals:
        pattern = terminal.pattern
        if isinstance(pattern, PatternStr) and pattern.value.isalpha():
            words[pattern.value] = terminal.name
            continue
        rank = (-terminal.priority, -pattern.max_width)
        shapes.append((*rank, terminal.name, pattern.to_regexp()))
    groups = [f"(?P<{name}>{regexp})" for _, _, name, regexp in sorted(shapes)]
    joined = "|".join(groups)
    re.compile(joined)  # a name that is no group's name is our fault: fail here
    return Lexicon(joined, words)
