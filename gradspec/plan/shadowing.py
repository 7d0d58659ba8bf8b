"""Names of the author that are Python's own: `max`, `type`, `float`.

They keep their names, and what the text around them means by these words is written
``builtins.float``. Which of both a word is cannot be told from the text alone, so the
author's carry a mark until the module is written.
"""

from __future__ import annotations

import ast
import builtins
import re

_MARK = "ꞏ"
"""A letter that may stand in an identifier, and with which nobody ends one."""

_OWN = frozenset(name for name in dir(builtins) if not name.startswith("_"))


def marked(name: str) -> str:
    """The name as it is passed on: with a mark if Python has it."""
    return name + _MARK if name in _OWN else name


def bare(text: str) -> str:
    """The text as it is written in the end."""
    return re.sub(rf"(?<=\w){_MARK}", "", text)


def taken(text: str) -> frozenset[str]:
    """The words of Python that the author has given to something in ``text``."""
    return _OWN & {
        found[0] for found in re.finditer(rf"[A-Za-z0-9_]+(?={_MARK})", text)
    }


def told_apart(text: str, words: frozenset[str]) -> str:
    """The text of a definition, with ``builtins.`` before each of the ``words`` that is
    Python's there: a word that is looked up and has no mark.
    """
    lines = [line.encode() for line in text.split("\n")]
    found = [
        (node.lineno - 1, node.col_offset, node.id.encode())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name) and node.id in words
    ]
    for row, column, word in sorted(found, reverse=True):
        line = lines[row]
        assert line[column:].startswith(word), (line, word)
        lines[row] = line[:column] + b"builtins." + line[column:]
    return b"\n".join(lines).decode()
