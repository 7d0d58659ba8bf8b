"""What SymPy is told of an expression."""

from __future__ import annotations

import sympy

from gradspec.primitives.lookup import formula
from gradspec.symbolic.consult import to_sympy


def test_symbols_are_real_and_know_plain_assumptions() -> None:
    root = to_sympy(formula("sqrt(x**2)"))
    assert root == sympy.Abs(sympy.Symbol("x", real=True))
    positive = to_sympy(formula("sqrt(x**2)"), (formula("0 < x and x < 1"),))
    assert positive == sympy.Symbol("x", real=True, positive=True)


def test_conditionals_are_not_understood_by_sympy() -> None:
    term = to_sympy(formula("(x if x > 0 else 0) + max(x, y)"))
    assert not term.has(sympy.Piecewise, sympy.Max)
