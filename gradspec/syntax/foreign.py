"""The text in quotes that names a foreign function: ``scipy.special.gammaincc(2.5, x)``.

It is a path of at least two names and, in brackets, names and numbers. It is read here
and never executed: what is emitted for it is built from these parts.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from math import isfinite

from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.tokens import Fault, FaultFound, Token

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_PART = re.compile(r"[\w.+-]+|.", re.ASCII | re.DOTALL)

_HELP = (
    'write `"module.function"`, or `"module.function(2.5, x)"`: names and numbers only'
)


def foreign_call(token: Token) -> nodes.ForeignCall:
    """The call that a STRING names; raises the fault of the first part that is none."""
    text = token.text[1:-1]
    path = _PATH.match(text)
    if path is None or any(map(iskeyword, path[0].split("."))):
        where = (
            token.span if path is None else _span_at(token, path.start(), path.end())
        )
        raise _fault("this is not the path of a function in a module", where)
    rest, arguments = path.end(), None
    if rest < len(text):
        arguments = _arguments(token, text, rest)
    return nodes.ForeignCall(path[0], arguments, span=token.span)


def _arguments(token: Token, text: str, start: int) -> tuple[str, ...]:
    """The tokens in the brackets from ``start`` on, which end the text."""
    parts = [
        (match[0], _span_at(token, start + match.start(), start + match.end()))
        for match in _PART.finditer(text[start:])
        if not match[0].isspace()
    ]
    found, wanted = [], "("
    for part, span in parts:
        if wanted == "value":
            found.append(_value(part, span))
            wanted = ","
        elif wanted == "(" and part == "(":
            wanted = "value"
        elif wanted == "," and part in (",", ")"):
            wanted = "value" if part == "," else "end"
        else:
            shown = part if part.isprintable() else repr(part)[1:-1]
            raise _fault(
                f"`{shown}` has no place in the call of a foreign function", span
            )
    if wanted != "end":
        end = _span_at(token, len(text) - 1, len(text))
        raise _fault("the brackets of this call are not closed", end)
    return tuple(found)


def _value(part: str, span: Span) -> str:
    if _NAME.fullmatch(part) and not iskeyword(part):
        return part
    if _NUMBER.fullmatch(part) and isfinite(float(part)):
        digits = part.removeprefix("-")
        return str(int(part)) if digits.isdigit() else repr(float(part))
    shown = part if part.isprintable() else repr(part)[1:-1]
    raise _fault(f"`{shown}` is neither a name nor a number", span)


def _span_at(token: Token, start: int, end: int) -> Span:
    first = token.start + 1
    return Span(first + start, first + end)


def _fault(headline: str, span: Span) -> FaultFound:
    return FaultFound(Fault("GS130", headline, span, help=_HELP))
