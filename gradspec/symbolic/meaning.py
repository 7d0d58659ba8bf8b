"""Expressions in elementary terms: every built-in that has a meaning is replaced by it.

What is left: arithmetic, powers, ``exp log sqrt cbrt sin cos``, conditionals, and the
functions that have no simpler form (``erf``, ``digamma``, ``floor``, …).
"""

from __future__ import annotations

from functools import cache

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import substitute, transform
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive

_KEPT = ("lgamma",)  # the logarithm of |gamma|: its own recurrence is better known


def elementary(expr: Expr) -> Expr:
    """The same function in elementary terms."""
    return tidy(_elementary(expand(expr)))


def _elementary(expr: Expr) -> Expr:
    return transform(expr, _visit)


def _visit(node: Expr) -> Expr:
    if not isinstance(node, Apply) or node.op in _KEPT:
        return node
    meaning = _meaning(node.op)
    if meaning is None:
        return node
    params = primitive(node.op).params
    return substitute(meaning, dict(zip(params, node.args, strict=True)))


@cache
def _meaning(op: str) -> Expr | None:
    text = primitive(op).meaning
    return None if text is None else _elementary(formula(text))
