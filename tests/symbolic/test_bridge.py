"""To SymPy and back: the value does not change, and nothing foreign comes back."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy

from gradspec.primitives.formula import formula
from gradspec.symbolic.bridge import from_sympy, to_sympy
from gradspec.symbolic.compare import Relation, compare

TEXTS = (
    "1 - 1 / (1 + exp(x))",
    "x * exp(-x) / 2 - 3 * y",
    "sqrt(x) / x**2",
    "max(x, y) * 3 if x > 0 else abs(y)",
    "-x - y",
    "sigmoid(x) * tanh(y) + log1p(x)",
    "erf(x) + erfc(y) + lgamma(x) + digamma(y)",
    "i0(x) * i1(y) + sinc(x) + cbrt(y)",
    "clip(x, -1, y) + heaviside(x, 0.5) + round(x) + x % y",
    "atan2(x, y) + hypot(x, y) + pi",
    "1 if x > 0 and not y > 1 else 0",
)
POINT = {"x": Fraction(3, 4), "y": Fraction(5, 4)}


@pytest.mark.parametrize("text", TEXTS)
def test_there_and_back_is_the_same_value(text: str) -> None:
    expr = formula(text)
    back = from_sympy(to_sympy(expr))
    assert back is not None
    assert compare(expr, back, POINT).relation is Relation.EQUAL


def test_symbols_are_real_and_know_plain_assumptions() -> None:
    root = to_sympy(formula("sqrt(x**2)"))
    assert root == sympy.Abs(sympy.Symbol("x", real=True))
    positive = to_sympy(formula("sqrt(x**2)"), (formula("0 < x and x < 1"),))
    assert positive == sympy.Symbol("x", real=True, positive=True)


def test_conditionals_are_not_understood_by_sympy() -> None:
    term = to_sympy(formula("(x if x > 0 else 0) + max(x, y)"))
    assert not term.has(sympy.Piecewise, sympy.Max)


def test_what_has_no_counterpart_gives_none() -> None:
    x = sympy.Symbol("x", real=True)
    assert from_sympy(sympy.zeta(x)) is None
    assert from_sympy(sympy.I * x) is None
