"""Expressions as SymPy's, to ask a question.

Every name becomes a real symbol (positive, negative, … where the assumptions say so
plainly). Conditionals, and the primitives whose rows have no form for SymPy (``max``),
become functions that it knows nothing of, so that it neither rearranges nor
differentiates them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import Const, Expr
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.breaks import bounds

Term: TypeAlias = Any
"""A SymPy expression (SymPy has no types to check against)."""


def to_sympy(expr: Expr, assumes: tuple[Expr, ...] = ()) -> Term:
    """The expression over real symbols.

    NotImplementedError for indices and reductions.
    """
    import sympy

    return evaluate(expr, _Terms(sympy, _signs(assumes)), {})


class _Terms:
    """The algebra of SymPy's expressions."""

    def __init__(self, sympy: Any, signs: dict[str, str]) -> None:
        self._sympy, self._signs = sympy, signs

    def constant(self, value: Fraction) -> Term:
        return self._sympy.Rational(value.numerator, value.denominator)

    def variable(self, name: str) -> Term:
        facts = {self._signs[name]: True} if name in self._signs else {}
        return self._sympy.Symbol(name, real=True, **facts)

    def operation(self, op: str) -> Callable[..., Term]:
        convert = primitive(op).sympy
        if convert is None:
            return partial(self._unknown, op)
        return partial(convert, self._sympy)

    def decided(self, condition: Term) -> None:
        return None

    def select(self, condition: Term, then: Term, other: Term) -> Term:
        return self._unknown("select", condition, then, other)

    def _unknown(self, name: str, *parts: Term) -> Term:
        return self._sympy.Function(name, real=True)(*parts)


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
