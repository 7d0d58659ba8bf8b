"""Numbers and quoted texts: the values of their literals, and the literals of values."""

from __future__ import annotations

import re
from fractions import Fraction

from gradspec.syntax.tokens import Fault, FaultFound, Token, shortened

_LARGEST = Fraction(2) ** 1024 - Fraction(2) ** 970  # of float64, exactly
_SMALLEST = Fraction(1, 2**1074)  # of float64, not zero
_MOST_DIGITS = 1000
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)\Z")


def number_value(token: Token) -> Fraction:
    """The value of a NUMBER. The exponent is looked at before anything is computed:
    ``1e999999999`` as a fraction would fill the memory.
    """
    text = token.text.replace("_", "")
    if len(text) <= 15 and text.isdigit():
        return Fraction(int(text))
    exponent = _EXPONENT.search(text)
    if len(text) > _MOST_DIGITS:
        raise FaultFound(_out_of_range(token, f"has more than {_MOST_DIGITS} digits"))
    if exponent is not None and len(exponent[1]) > 4:
        raise FaultFound(_out_of_range(token, "is beyond the range of float64"))
    value = Fraction(text)
    if value > _LARGEST or 0 < value < _SMALLEST:
        raise FaultFound(_out_of_range(token, "is beyond the range of float64"))
    return value


def _out_of_range(token: Token, what: str) -> Fault:
    shown = shortened(token.text)
    help = "infinity is written `inf`; nothing finite beyond 1.8e308 can be computed"
    return Fault("GS121", f"the number `{shown}` {what}", token.span, help=help)


def number_text(value: Fraction) -> str:
    """The literal of a value that has one: no sign, finitely many decimals."""
    digits, scale = value.numerator, 0
    while digits % value.denominator and scale < 1100:
        digits, scale = digits * 10, scale + 1
    if value < 0 or digits % value.denominator:
        raise ValueError(f"{value} has no literal")
    text = str(digits // value.denominator).zfill(scale + 1)
    return f"{text[:-scale]}.{text[-scale:]}" if scale else text


# --- texts in quotes --------------------------------------------------------------------

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
