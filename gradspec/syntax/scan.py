"""Text to tokens, with the grammar's own terminals; never raises.

What no terminal matches, such as characters and operators of other languages, is
reported here once, with the right spelling, and replaced by what was meant where that
is certain, so that one odd character does not hide the rest of its line.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from dataclasses import dataclass, field, replace
from functools import cache

from gradspec.diagnostics import Fix
from gradspec.source import Span
from gradspec.syntax.grammar import lexicon
from gradspec.syntax.nodes import Comment
from gradspec.syntax.tokens import ENOUGH, LINE_END, Fault, Token, shorten

# Tried before the terminals: layout, and what would otherwise be read as two tokens.
_BEFORE = (
    r"(?P<LINE_END>\r?\n)",
    r"(?P<BLANK>[ \t\f\v]+)",
    r"(?P<COMMENT>#[^\r\n]*)",
    r"(?P<TRIPLE>''')",
    r"(?P<FOREIGN>&&?|\|\|?|//|:=|\*\*=|[-+*/%]=|<>|=>|===|!(?!=)|[\^~@])",
)

# Tried after them: what none of them matched.
_AFTER = (
    r'(?P<OPEN_DOCSTRING>""")',
    r"(?P<OPEN_STRING>[\"'][^\r\n]*)",
    r"(?P<WORD>[^\W\d]\w*)",
    r"(?P<ODD>.)",
)

_CONTINUATION = re.compile(r"\\[ \t]*\r?\n")
_LATEX = re.compile(r"\\([A-Za-z]+)(?:\s*\{[^{}\n]*\})*")
_ITEM = re.compile(r"^(?:rule|def|from)\b", re.MULTILINE)
_SWALLOWED = re.compile(r"^(?:rule|def)[ \t]+\w+[ \t]*\(", re.MULTILINE)


@dataclass(slots=True)
class Scan:
    """The tokens of a text; ``suspects`` are names that may not be names."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    suspects: list[Token] = field(default_factory=list)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join((*_BEFORE, lexicon().pattern, *_AFTER)), re.DOTALL)


def scan(text: str) -> Scan:
    """All tokens of ``text``, the ends of its physical lines among them."""
    found = Scan(text)
    match_at, words = _pattern().match, lexicon().words
    tokens = found.tokens
    position, end = 1 if text.startswith("\ufeff") else 0, len(text)
    while position < end and len(found.faults) < ENOUGH:
        match = match_at(text, position)
        assert match is not None  # the last alternative matches any character
        kind, start = match.lastgroup or "", position
        position = match.end()
        if kind == "BLANK":
            continue
        if kind == LINE_END and tokens and tokens[-1].type == LINE_END:
            tokens.pop()  # one for all blank lines
        if kind == "NAME":
            _name(found, Token(words.get(match[0], "NAME"), match[0], start, position))
        elif kind in _ODDITIES:
            position = _oddity(found, kind, start, position)
        else:
            tokens.append(Token(kind, match[0], start, position))
    return found


def _name(found: Scan, token: Token) -> None:
    if token.type == "NAME":
        if _refuse_factor(found, token):
            pass
        elif token.text[0] == "_" or keyword.iskeyword(token.text):
            found.suspects.append(token)
    found.tokens.append(token)


def _refuse_factor(found: Scan, token: Token) -> bool:
    """Report ``2x``, a number that runs into a name; True if it does."""
    before = found.tokens[-1] if found.tokens else None
    if before is None or before.type != "NUMBER" or before.end != token.start:
        return False
    span = Span(before.start, token.end)
    number, name = shorten(before.text), shorten(token.text)
    headline = f"`{number}{name}` has no operator between number and name"
    help = f"write `{number} * {name}`"
    is_first = all(t.type not in ("SCALE", "POWER") for t in found.tokens[-2:-1])
    fix = Fix(help, span, f"{before.text} * {token.text}", is_safe=is_first)
    found.faults.append(Fault("GS125", headline, span, help=help, fixes=(fix,)))
    found.tokens.append(Token("SCALE", "*", token.start, token.start))
    return True


_ODDITIES = frozenset(
    [
        "COMMENT",
        "TRIPLE",
        "FOREIGN",
        "OPEN_DOCSTRING",
        "OPEN_STRING",
        "WORD",
        "ODD",
        "DOCSTRING",
    ]
)


def _oddity(found: Scan, kind: str, start: int, end: int) -> int:
    """Handles what is not simply a token; gives the offset to go on from."""
    text, span = found.text[start:end], Span(start, end)
    match kind:
        case "COMMENT":
            kept = text.rstrip()
            found.comments.append(Comment(kept, span=Span(start, start + len(kept))))
        case "DOCSTRING" if not _swallows(found.text, text):
            found.tokens.append(Token(kind, text, start, end))
        case "DOCSTRING" | "OPEN_DOCSTRING" | "TRIPLE":
            return _docstring(found, kind, start)
        case "OPEN_STRING":
            headline = "this text in quotes never ends"
            help = f"close it with `{text[0]}` on the same line"
            fix = Fix(help, Span(end, end), text[0])
            found.faults.append(Fault("GS113", headline, span, help=help, fixes=(fix,)))
            found.tokens.append(Token("STRING", text[0] * 2, start, end))
        case "FOREIGN":
            _replace(found, *_operator_fault(text, span), span)
        case "WORD":
            return _word(found, start, end)
        case _:
            return _scan_foreign(found, start)
    return end


def _swallows(whole: str, docstring: str) -> bool:
    """True if a docstring that contains the head of a rule ran on to the next
    docstring's start; only where the quotes of the file do not pair up.
    """
    return _SWALLOWED.search(docstring) is not None and whole.count('"""') % 2 == 1


def _docstring(found: Scan, kind: str, start: int) -> int:
    """A docstring that never ends, or that ``'''`` opens; goes on at the next item."""
    span = Span(start, start + 3)
    if kind == "TRIPLE":
        close = found.text.find("'''", start + 3)
        headline, help = "a docstring stands in double quotes", 'write `"""`'
        text = f'"""{found.text[start + 3 : close]}"""'
        fix = Fix(help, Span(start, close + 3), text, is_safe=True)
        fixes = (fix,) if close >= 0 else ()
        found.faults.append(Fault("GS113", headline, span, help=help, fixes=fixes))
        if close >= 0:
            found.tokens.append(Token("DOCSTRING", '""""""', start, close + 3))
            return close + 3
    else:
        headline, help = "this docstring never ends", 'close it with `"""`'
        found.faults.append(Fault("GS113", headline, span, help=help))
    later = _ITEM.search(found.text, start + 3)
    end = later.start() if later else len(found.text)
    found.tokens.append(Token("DOCSTRING", '""""""', start, start + 3))
    found.tokens.append(Token(LINE_END, "\n", end, end))
    return end


def _word(found: Scan, start: int, end: int) -> int:
    """A word with letters beyond ASCII; its ASCII beginning has been scanned as a
    name."""
    char = found.text[start]
    if char in _LOOKALIKES and not char.isalpha():
        return _scan_foreign(found, start)
    if (
        found.tokens
        and found.tokens[-1].end == start
        and found.tokens[-1].text.isalpha()
    ):
        start = found.tokens.pop().start
    span = Span(start, end)
    _replace(found, *_word_fault(found.text[start:end], span), span)
    return end


def _scan_foreign(found: Scan, start: int) -> int:
    end = start + 1
    latex = _LATEX.match(found.text, start)
    if latex is not None:
        span = Span(start, latex.end())
        _replace(found, *_latex_fault(latex[0], latex[1], span), span)
        return latex.end()
    if found.text[start] == "\\":
        broken = _CONTINUATION.match(found.text, start)
        end = broken.end() if broken else end
    span = Span(start, start + 1)
    _replace(found, *_character_fault(found.text[start], span), span)
    return end


def _replace(found: Scan, fault: Fault, meant: _Meant, span: Span) -> None:
    fixes = (replace(fix, text=_spaced_text(found.text, fix)) for fix in fault.fixes)
    found.faults.append(replace(fault, fixes=tuple(fixes)))
    if meant.type:
        found.tokens.append(Token(meant.type, meant.text, span.start, span.end))


def _spaced_text(text: str, fix: Fix) -> str:
    """The text of a fix, with spaces where a word would join its neighbours."""
    before, after = text[: fix.span.start][-1:], text[fix.span.end :][:1]
    is_word = fix.text.isidentifier()
    left = " " if is_word and (before.isalnum() or before in ("_", ")", "]")) else ""
    right = " " if is_word and (after.isalnum() or after in ("_", "(")) else ""
    return f"{left}{fix.text}{right}"


# --- other languages ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Meant:
    """The intended terminal and text (both empty when none), and advice."""

    type: str
    text: str
    advice: str


_ONCE = "a name is assigned once: write"
_OPERATORS: dict[str, _Meant] = {
    "^": _Meant("POWER", "**", "a power is written `x**2`, and a power of e `exp(x)`"),
    **dict.fromkeys(("&&", "&"), _Meant("AND", "and", "write `and`")),
    "||": _Meant("OR", "or", "write `or`"),
    "|": _Meant("OR", "or", "write `or`; an absolute value is `abs(x)`"),
    **dict.fromkeys(("!", "~"), _Meant("NOT", "not", "write `not`")),
    "<>": _Meant("COMPARISON", "!=", "write `!=`"),
    "=>": _Meant("COMPARISON", ">=", "write `>=`, or `->` before the outputs"),
    "===": _Meant("COMPARISON", "==", "write `==`"),
    ":=": _Meant("EQUAL", "=", "write `=`"),
    "//": _Meant("SCALE", "/", "write `floor(x / y)`; a comment begins with `#`"),
    "@": _Meant("SCALE", "*", "a matrix product is `sum(a[i, l] * b[l, j] for l)`"),
    "+=": _Meant("EQUAL", "=", f"{_ONCE} the whole sum"),
    "-=": _Meant("EQUAL", "=", f"{_ONCE} the whole difference"),
    "*=": _Meant("EQUAL", "=", f"{_ONCE} the whole product"),
    "/=": _Meant("EQUAL", "=", f"{_ONCE} the whole quotient"),
    **dict.fromkeys(("%=", "**="), _Meant("EQUAL", "=", f"{_ONCE} it out")),
}

_MEANT_BY = {
    **{"^": "**", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"},
    **{"~": "not", "<>": "!=", "===": "==", ":=": "=", "=>": "-> >="},
}
"""The operators here that those of other languages may stand for."""

_SYMBOLS: dict[str, str] = {
    ";": "one statement stands on one line",
    "?": "a choice is written `a if condition else b`",
    "\\": "a line goes on inside brackets; no backslash is needed",
    "{": "there are no sets or dictionaries: use `(` and `)`",
    "}": "there are no sets or dictionaries: use `(` and `)`",
    "$": "names are letters, digits and underscores",
    "`": "names are letters, digits and underscores",
}

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

_LOOKALIKES: dict[str, _Meant] = {
    char: _Meant(type, text, f"write `{text}`")
    for type, text, chars in map(str.split, _MEANINGS.strip().split("\n"))
    for char in chars
} | {char: _Meant("", "", text) for chars, text in _ADVICE.items() for char in chars}
_LOOKALIKES["…"] = _Meant("ELLIPSIS", "...", "write three dots, `...`")


def _operator_fault(text: str, span: Span) -> tuple[Fault, _Meant]:
    """An operator that another language has."""
    meant = _OPERATORS[text]
    headline = f"`{text}` is not an operator of this language"
    is_safe = text not in ("&", "|", "!", "~")  # they bind otherwise
    fixes = tuple(
        Fix(f"write `{word}`", span, word, is_safe=is_safe)
        for word in _MEANT_BY.get(text, "").split()
    )
    return Fault("GS109", headline, span, help=meant.advice, fixes=fixes), meant


def _latex_fault(text: str, command: str, span: Span) -> tuple[Fault, _Meant]:
    """A command of LaTeX with its arguments in braces."""
    parts = re.findall(r"\{([^{}\n]*)\}", text)
    if command in ("frac", "dfrac", "tfrac") and len(parts) == 2:
        help = f"write `({parts[0].strip()}) / ({parts[1].strip()})`"
    elif parts:
        help = f"write `{command}({', '.join(part.strip() for part in parts)})`"
    else:
        help = _LATEX_WORDS.get(command, f"write `{command}`")
    headline = f"`{shorten(text)}` is LaTeX, not part of this language"
    written = re.fullmatch("write `([^`]+)`", help)
    exact = written is not None and "x[i]" not in help
    new = written[1] if written else ""
    new = f"({new})" if " / " in new else new
    fixes = (Fix(help, span, new),) if new and exact else ()
    fault = Fault("GS114", headline, span, help=help, fixes=fixes)
    return fault, _Meant("NAME", "unnamed", "")


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


def _character_fault(char: str, span: Span) -> tuple[Fault, _Meant]:
    """A character that no token begins with."""
    if char in _SYMBOLS:
        headline = f"`{char}` has no meaning here"
        return Fault("GS114", headline, span, help=_SYMBOLS[char]), _Meant("", "", "")
    meant = _LOOKALIKES.get(char, _Meant("", "", ""))
    help = meant.advice or "outside comments, docstrings and reasons a file is ASCII"
    headline = f"{_character_name(char)} cannot stand here"
    text = meant.text or _EXACT.get(char)
    fixes = () if text is None else (Fix(help, span, text, is_safe=True),)
    return Fault("GS114", headline, span, help=help, fixes=fixes), meant


_EXACT = {"²": "**2", "³": "**3", "\u00a0": " ", "\u2009": " ", "\u200b": ""}
"""Texts for characters that are no tokens."""


def _word_fault(text: str, span: Span) -> tuple[Fault, _Meant]:
    """A name with letters that are not ASCII."""
    if text in _LOOKALIKES:
        return _character_fault(text, span)
    odd = next(char for char in text if not char.isascii())
    ascii_name = "".join(map(_letter, text))
    help = "names are ASCII letters, digits and underscores"
    fixes: tuple[Fix, ...] = ()
    if ascii_name.isidentifier() and len(ascii_name) <= 40:
        help += f": write `{ascii_name}`"
        fixes = (Fix(f"write `{ascii_name}`", span, ascii_name),)
    headline = f"`{shorten(text)}` is not ASCII: it holds {_character_name(odd)}"
    fault = Fault("GS114", headline, span, help=help, fixes=fixes)
    return fault, _Meant("NAME", "unnamed", "")


def _character_name(char: str) -> str:
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
