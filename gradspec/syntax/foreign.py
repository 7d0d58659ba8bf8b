"""Characters, operators and words of other languages: their meaning, and the right spelling.

Each is reported once where it stands; where the meaning is certain the scanner puts the
right token in its place, so that the rest of the line is still read.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from gradspec.source import Span
from gradspec.syntax.tokens import Fault, shortened


@dataclass(frozen=True, slots=True)
class Meant:
    """The intended terminal and text (both empty when none), and advice."""

    type: str
    text: str
    advice: str


OPERATORS: dict[str, Meant] = {
    "^": Meant("POWER", "**", "a power is written `x**2`, and a power of e `exp(x)`"),
    "&&": Meant("AND", "and", "write `and`"),
    "&": Meant("AND", "and", "write `and`"),
    "||": Meant("OR", "or", "write `or`"),
    "|": Meant("OR", "or", "write `or`; an absolute value is `abs(x)`"),
    "!": Meant("NOT", "not", "write `not`"),
    "~": Meant("NOT", "not", "write `not`"),
    "<>": Meant("COMPARISON", "!=", "write `!=`"),
    "=>": Meant("COMPARISON", ">=", "write `>=`, or `->` before the outputs"),
    "===": Meant("COMPARISON", "==", "write `==`"),
    ":=": Meant("EQUAL", "=", "write `=`"),
    "//": Meant("SCALE", "/", "write `floor(x / y)`; a comment begins with `#`"),
    "@": Meant("SCALE", "*", "a matrix product is `sum(a[i, l] * b[l, j] for l)`"),
    "+=": Meant("EQUAL", "=", "a name is assigned once: write the whole sum"),
    "-=": Meant("EQUAL", "=", "a name is assigned once: write the whole difference"),
    "*=": Meant("EQUAL", "=", "a name is assigned once: write the whole product"),
    "/=": Meant("EQUAL", "=", "a name is assigned once: write the whole quotient"),
    "%=": Meant("EQUAL", "=", "a name is assigned once: write it out"),
    "**=": Meant("EQUAL", "=", "a name is assigned once: write it out"),
}

SYMBOLS: dict[str, str] = {
    ";": "one statement stands on one line",
    "?": "a choice is written `a if condition else b`",
    "\\": "a line goes on inside brackets; no backslash is needed",
    "{": "there are no sets or dictionaries: use `(` and `)`",
    "}": "there are no sets or dictionaries: use `(` and `)`",
    "$": "names are letters, digits and underscores",
    "`": "names are letters, digits and underscores",
}

STATEMENTS = {
    "IF": "write `y = a if condition else b`",
    "ELSE": "write `y = a if condition else b`",
    "FOR": "an index runs over its axis by itself: `y[i] = x[i]**2`, `sum(x[i] for"
    " i)`; write a few steps out, `a = …`, `b = …`",
    "NOT": "a line of a body assigns: `y = …`",
    "IMPORT": 'write `from "path.grad" import name`, outside the rules',
}
"""Statements that are none here."""

ATTRIBUTES = {
    "shape": "a size is the name of an axis: of `x[n]` it is `n`",
    "size": "a size is the name of an axis: of `x[n]` it is `n`",
    "ndim": "the number of axes is in the head of the rule",
    "T": "a transpose is written by its indices: `x[j, i]`",
    "e": "Euler's number is `exp(1)`",
    **dict.fromkeys(("float16", "float32", "float64"), "a rule holds for every dtype"),
}
"""Parts that other languages pick with a dot."""

DECLARING = frozenset(["let", "var", "val", "const", "local"])
"""Words before a new name in other languages."""

STOPPING = (
    'write `from "gradspec:control/gradients" import stop_gradient` at the top of the'
    " file, and `stop_gradient(x)`"
)
"""The advice for what other libraries call `stop_gradient` or `detach`."""

_MEANINGS = """
SCALE * ×·⋅∙∗
SCALE / ÷∕
SIGN - −–—‐
SIGN + ＋
COMPARISON <= ≤
COMPARISON >= ≥
COMPARISON != ≠
EQUAL = ＝
ARROW -> →
AND and ∧
OR or ∨
NOT not ¬
NAME inf ∞
NAME pi π
COMMA , ，
COLON : ：
LPAR ( （
RPAR ) ）
"""
"""Terminal, text, and the characters that stand for it."""

_ADVICE = {
    "\u00a0\u2009": "write an ordinary space",
    "\u200b\ufeff": "delete it",
    "²": "write `**2`",
    "³": "write `**3`",
    "√": "write `sqrt(x)`",
    "∑": "write `sum(x[i] for i)`",
    "∏": "write `prod(x[i] for i)`",
    "∂": "the cotangent of `x` is called `dx`",
    "“”‘’": 'write `"`',
}

LOOKALIKES: dict[str, Meant] = {
    char: Meant(type, text, f"write `{text}`")
    for type, text, chars in map(str.split, _MEANINGS.strip().split("\n"))
    for char in chars
} | {char: Meant("", "", text) for chars, text in _ADVICE.items() for char in chars}
LOOKALIKES["…"] = Meant("ELLIPSIS", "...", "write three dots, `...`")


def operator(text: str, span: Span) -> tuple[Fault, Meant]:
    """An operator that another language has."""
    meant = OPERATORS[text]
    headline = f"`{text}` is not an operator of this language"
    return Fault("GS109", headline, span, help=meant.advice), meant


def latex(text: str, command: str, span: Span) -> tuple[Fault, Meant]:
    """A command of LaTeX with its arguments in braces."""
    parts = re.findall(r"\{([^{}\n]*)\}", text)
    if command in ("frac", "dfrac", "tfrac") and len(parts) == 2:
        help = f"write `({parts[0].strip()}) / ({parts[1].strip()})`"
    elif parts:
        help = f"write `{command}({', '.join(part.strip() for part in parts)})`"
    else:
        help = _LATEX_WORDS.get(command, f"write `{command}`")
    headline = f"`{shortened(text)}` is LaTeX, not part of this language"
    return Fault("GS114", headline, span, help=help), Meant("NAME", "unnamed", "")


_LATEX_WORDS = {
    "cdot": "write `*`",
    "times": "write `*`",
    "leq": "write `<=`",
    "le": "write `<=`",
    "geq": "write `>=`",
    "ge": "write `>=`",
    "neq": "write `!=`",
    "sum": "write `sum(x[i] for i)`",
    "prod": "write `prod(x[i] for i)`",
    "infty": "write `inf`",
    "partial": "the gradient of `x` is called `dx`",
    "left": "leave it out",
    "right": "leave it out",
}


def character(char: str, span: Span) -> tuple[Fault, Meant]:
    """A character that no token begins with."""
    if char in SYMBOLS:
        headline = f"`{char}` has no meaning here"
        return Fault("GS114", headline, span, help=SYMBOLS[char]), Meant("", "", "")
    meant = LOOKALIKES.get(char, Meant("", "", ""))
    help = meant.advice or "outside comments, docstrings and reasons a file is ASCII"
    return Fault("GS114", f"{_called(char)} cannot stand here", span, help=help), meant


def word(text: str, span: Span) -> tuple[Fault, Meant]:
    """A name with letters that are not ASCII."""
    if text in LOOKALIKES:
        return character(text, span)
    odd = next(char for char in text if not char.isascii())
    ascii_name = "".join(map(_letter, text))
    help = "names are ASCII letters, digits and underscores"
    if ascii_name.isidentifier() and len(ascii_name) <= 40:
        help += f": write `{ascii_name}`"
    headline = f"`{shortened(text)}` is not ASCII: it holds {_called(odd)}"
    return Fault("GS114", headline, span, help=help), Meant("NAME", "unnamed", "")


def _called(char: str) -> str:
    """The character and its Unicode name, safe to print whatever it is."""
    point = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "")
    shown = f"`{char}` " if char.isprintable() and char != " " else ""
    return (
        f"{shown}({point} {name})" if name else f"{shown or 'the character '}({point})"
    )


def _letter(char: str) -> str:
    """``β`` is ``beta``, ``é`` is ``e``; ``""`` when there is no such spelling."""
    if char.isascii():
        return char
    base = unicodedata.normalize("NFKD", char)[0]
    if base.isascii():
        return base
    words = unicodedata.name(char, "").split()
    return words[-1].lower() if "LETTER" in words and len(words) > 3 else ""
