"""Colours for rules: a lexer for Pygments, and a TextMate grammar, from the terminals of the
language's grammar and the table of built-ins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    _TokenType,
)

from gradspec.primitives.lookup import CONSTANTS, function_names
from gradspec.syntax.grammar import REDUCTIONS, lexicon

_HEADS = ("rule", "def")
_KINDS = ("NOGRAD", "INT", "BOOL", "STATIC", "PARAM")
_TYPES: dict[str, _TokenType] = {
    "COMMENT": Comment.Single,
    "BLANK": Text.Whitespace,
    "DOCSTRING": String.Doc,
    "STRING": String,
    "NUMBER": Number,
    **dict.fromkeys(("ARROW", "COMPARISON", "POWER", "EQUAL"), Operator),
    **dict.fromkeys(("SCALE", "SIGN"), Operator),
    "ODD": Error,
}
"""Types by terminal; what is not here is punctuation."""


class GradLexer(Lexer):
    """The entry point ``grad`` of ``pygments.lexers``."""

    name = "gradspec"
    aliases: ClassVar[list[str]] = ["grad", "gradspec"]
    filenames: ClassVar[list[str]] = ["*.grad"]
    url = "https://github.com/gradspec/gradspec"

    def get_tokens_unprocessed(
        self, text: str
    ) -> Iterator[tuple[int, _TokenType, str]]:
        """Tokens with their places and types."""
        before = ""
        for match in _pattern().finditer(text):
            word, kind = match[0], match.lastgroup or ""
            if kind == "NAME":
                yield match.start(), _name_type(word, before, text[match.end() :]), word
            else:
                yield match.start(), _TYPES.get(kind, Punctuation), word
            if kind != "BLANK":
                before = word


@cache
def _pattern() -> re.Pattern[str]:
    around = r"(?P<COMMENT>#[^\n]*)|(?P<BLANK>\s+)", r"(?P<ODD>.)"
    return re.compile("|".join((around[0], lexicon().pattern, around[1])), re.DOTALL)


def _name_type(word: str, before: str, behind: str) -> _TokenType:
    """The type of a name: a word of the language is one of the author's where it is
    given a value."""
    terminal = lexicon().words.get(word)
    if terminal in _KINDS and before in (":", "static"):
        return Keyword.Type
    if before in _HEADS:
        return Name.Function
    if terminal is not None and not re.match(r"\s*(?:=(?!=)|\[)", behind):
        return Keyword.Declaration if word in _HEADS else Keyword
    if behind.startswith("("):
        return Name.Builtin if word in _functions() else Name.Function
    if word in CONSTANTS:
        return Name.Constant
    return Name.Variable if re.fullmatch(r"d[A-Za-z_]\w*", word) else Name


@cache
def _functions() -> tuple[str, ...]:
    return tuple(sorted({*function_names(), *REDUCTIONS}))


def textmate() -> str:
    """The TextMate grammar, for VS Code, Sublime Text and Shiki, as JSON."""
    words = {w: t for w, t in lexicon().words.items() if w not in _HEADS}
    control = "|".join(w for w, terminal in words.items() if terminal not in _KINDS)
    kinds = "|".join(w for w, terminal in words.items() if terminal in _KINDS)
    head = {
        "1": {"name": "keyword.declaration.grad"},
        "2": {"name": "entity.name.function.grad"},
    }
    patterns: list[dict[str, Any]] = [
        {"name": "comment.line.number-sign.grad", "match": "#.*$"},
        {"name": "string.quoted.docstring.grad", "begin": '"""', "end": '"""'},
        {"name": "string.quoted.double.grad", "match": r'"(?:[^"\\]|\\.)*"'},
        {"name": "string.quoted.single.grad", "match": r"'(?:[^'\\]|\\.)*'"},
        {"match": rf"\b({'|'.join(_HEADS)})\s+([A-Za-z_]\w*)", "captures": head},
        {
            "name": "keyword.control.grad",
            "match": rf"\b({control})\b(?!\s*(=[^=]|\[))",
        },
        {
            "name": "storage.type.grad",
            "match": rf"(?<=:)\s*({kinds})(\s+({kinds}))?\b",
        },
        {
            "name": "support.function.grad",
            "match": rf"\b({'|'.join(_functions())})(?=\()",
        },
        {
            "name": "constant.language.grad",
            "match": rf"\b({'|'.join(CONSTANTS)})\b",
        },
        {"name": "variable.other.gradient.grad", "match": r"\bd[A-Za-z_]\w*\b"},
        {
            "name": "constant.numeric.grad",
            "match": r"(\b\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)([eE][+-]?\d+)?",
        },
        {"name": "keyword.operator.grad", "match": r"->|\*\*|[-+*/%<>=!]=?"},
    ]
    grammar = {
        "name": "gradspec",
        "scopeName": "source.grad",
        "fileTypes": ["grad"],
        "patterns": patterns,
    }
    return json.dumps(grammar, indent=2) + "\n"
