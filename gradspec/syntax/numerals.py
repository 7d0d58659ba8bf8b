"""The value of a number literal, exactly; or a fault for one that no target can
hold."""

from __future__ import annotations

import re
from fractions import Fraction

from gradspec.syntax.tokens import Fault, FaultFound, Token, shortened

_LARGEST = Fraction(2) ** 1024 - Fraction(2) ** 970  # of float64, exactly
_SMALLEST = Fraction(1, 2**1074)  # of float64, not zero
_MAX_DIGITS = 1000
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)\Z")


def number_value(token: Token) -> Fraction:
    """The value of a NUMBER. The exponent is looked at before anything is computed:
    ``1e999999999`` as a fraction would fill the memory.
    """
    text = token.text.replace("_", "")
    if len(text) <= 15 and text.isdigit():
        return Fraction(int(text))
    exponent = _EXPONENT.search(text)
    if len(text) > _MAX_DIGITS:
        raise FaultFound(_out_of_range(token, f"has more than {_MAX_DIGITS} digits"))
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
