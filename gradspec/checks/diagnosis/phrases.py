"""Expressions and numbers in sentences."""

from __future__ import annotations

from fractions import Fraction

from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import transform

_LONGEST = 80  # characters of a term that help a reader


def quoted(expr: Expr) -> str:
    """The expression as an author would write it, in backquotes."""
    text = as_written(tidy(expr))
    return f"`{text}`" if len(text) <= _LONGEST else "a term of it"


def bare(expr: Expr) -> str:
    return quoted(expr).strip("`")


def as_written(expr: Expr) -> str:
    """The expression with powers for squares; the author's own arithmetic is left
    alone."""
    return show(transform(expr, _as_power))


def _as_power(node: Expr) -> Expr:
    match node:
        case Apply(op="square", args=(base,)):
            return Apply("pow", (base, Const(Fraction(2))))
        case _:
            return node


def number_text(expr: Expr) -> str:
    """A number as a short decimal, if it has one, else as a formula."""
    if not isinstance(expr, Const):
        return show(expr)
    text = repr(float(expr.value)).removesuffix(".0")
    exact = "e" not in text and Fraction(text) == expr.value
    return text if exact or expr.value.denominator > 1000 else str(expr.value)
