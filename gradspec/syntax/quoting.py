"""Quoted texts: their values, and their literals."""

from __future__ import annotations

import re

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
