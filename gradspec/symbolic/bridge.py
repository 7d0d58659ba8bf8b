"""Expressions as SymPy's, to ask a question.

Every name becomes a real symbol (positive, negative, … where the assumptions say so
plainly). Conditionals, ``max`` and ``min`` become functions that SymPy knows nothing
of, so that it neither rearranges nor differentiates them: it turns a step into a Dirac
delta and sorts the conditions of a ``Piecewise`` for seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import children, nodes
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.isolate import bounds

Term: TypeAlias = Any
"""A SymPy expression (SymPy has no types to check against)."""

_OPAQUE = (
    *("max", "min", "clip", "relu", "heaviside", "round", "floor", "ceil", "trunc"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "mod", "atan2"),
)
"""Handed over as functions without meaning."""


def to_sympy(expr: Expr, assumes: tuple[Expr, ...] = ()) -> Term:
    """The expression over real symbols.

    NotImplementedError for indices and reductions.
    """
    import sympy

    whole = expand(expr)
    signs = _signs(assumes)
    done: dict[Expr, Term] = {}
    for node in nodes(whole):
        parts = [done[child] for child in children(node)]
        done[node] = _convert(sympy, node, parts, signs)
    return done[whole]


def _convert(sp: Any, node: Expr, parts: list[Term], signs: Mapping[str, str]) -> Term:
    match node:
        case Const(value=value):
            return sp.Rational(value.numerator, value.denominator)
        case Ref(name=name, indices=()):
            facts = {signs[name]: True} if name in signs else {}
            return sp.Symbol(name, real=True, **facts)
        case Select():
            return sp.Function("select", real=True)(*parts)
        case Apply(op=op) if op in _OPAQUE:
            return sp.Function(op, real=True)(*parts)
        case Apply(op=op):
            convert = primitive(op).sympy
            if convert is None:
                return sp.Function(op, real=True)(*parts)
            return convert(sp, *parts)
        case _:
            raise NotImplementedError("indices and reductions in SymPy")


def _signs(assumes: tuple[Expr, ...]) -> dict[str, str]:
    """``positive``, ``nonnegative``, … of the names bounded by a constant."""
    found: dict[str, str] = {}
    for condition in assumes:
        for bound in bounds(condition):
            fact = _sign_of(bound.op, bound.value)
            if fact and found.get(bound.variable) not in ("positive", "negative"):
                found[bound.variable] = fact
    return found


def _sign_of(op: str, value: Expr) -> str:
    if not isinstance(value, Const):
        return ""
    at = value.value
    if op in ("gt", "ge") and at >= 0:
        return "nonnegative" if op == "ge" and at == 0 else "positive"
    if op in ("lt", "le") and at <= 0:
        return "nonpositive" if op == "le" and at == 0 else "negative"
    return ""
