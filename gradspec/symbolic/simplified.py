"""SymPy's forms of an expression: candidates, to be measured like any other.

SymPy is asked about small expressions only, so that it answers long before a rule's
deadline and the same on every machine. `simplify(1 - 1/(1 + e**x))` is NaN at 100: it
proposes, measurement disposes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import size
from gradspec.primitives.lookup import is_primitive
from gradspec.symbolic.bridge import Term, to_sympy
from gradspec.symbolic.limit import uninterrupted

_NAMES = {
    "Abs": "abs",
    "loggamma": "lgamma",
    "Max": "max",
    "Min": "min",
    "ceiling": "ceil",
}
"""SymPy's names of functions that have another name here."""


LARGEST = 30
"""Nodes of an expression that SymPy is asked about: its `simplify` takes tenths of a
second for them, and minutes for hundreds."""


def simplified(expr: Expr) -> tuple[Expr, ...]:
    """``expr`` as SymPy's ``factor``, ``cancel`` and ``simplify`` give it; nothing
    where it is too large, or SymPy gives something unknown here."""
    if size(expr) > LARGEST:
        return ()
    with uninterrupted():  # a half-made import stays broken
        import sympy
    term = _term(expr)
    if term is None:
        return ()
    asked = (sympy.factor, sympy.cancel, sympy.simplify)
    found = dict.fromkeys(_asked(ask, term) for ask in asked)
    return tuple(form for form in found if form is not None and form != expr)


def _term(expr: Expr) -> Term | None:
    """None for what SymPy has no term of, and for constants that are too much for it:
    it works them out at once, ``lgamma(1e300)`` by the factorial."""
    try:
        return to_sympy(expr)
    except Exception:  # SymPy raises many kinds
        return None


def _asked(ask: Callable[[Term], Term], term: Term) -> Expr | None:
    try:
        return tidy(from_sympy(ask(term)))
    except Exception:  # SymPy raises many kinds
        return None


def from_sympy(term: Term) -> Expr:
    """A SymPy term as an expression; NotImplementedError for what is unknown here."""
    name = type(term).__name__
    if term.is_Symbol:
        return Ref(term.name)
    if term.is_Rational:
        return Const(Fraction(int(term.p), int(term.q)))
    match name:
        case "Pi":
            return Apply("pi", ())
        case "Exp1":
            return Apply("exp", (ONE,))
    parts = [from_sympy(part) for part in term.args]
    match name:
        case "Add":
            return _sum(parts)
        case "Mul":
            return _product(term.args)
        case "Pow":
            return _power(*parts)
        case "select":
            condition, then, other = parts
            return Select(condition, then, other)
    op = _NAMES.get(name, name)
    if not is_primitive(op):
        raise NotImplementedError(name)
    if op in ("max", "min"):
        return reduce(lambda a, b: Apply(op, (a, b)), parts)
    return Apply(op, tuple(parts))


def _sum(parts: list[Expr]) -> Expr:
    return reduce(lambda a, b: Apply("add", (a, b)), parts)


def _product(factors: tuple[Any, ...]) -> Expr:
    """With factors of negative exponents below the line."""
    above: list[Expr] = []
    below: list[Expr] = []
    for factor in factors:
        base, exponent = factor.as_base_exp()
        if exponent.is_Rational and exponent < 0:
            below.append(from_sympy(base ** (-exponent)))
        else:
            above.append(from_sympy(factor))
    top = _multiplied(above or [ONE])
    return Apply("div", (top, _multiplied(below))) if below else top


def _multiplied(parts: list[Expr]) -> Expr:
    return reduce(lambda a, b: Apply("mul", (a, b)), parts)


def _power(base: Expr, exponent: Expr) -> Expr:
    match exponent:
        case Const(value=value) if value == 1:
            return base
        case Const(value=value) if value == 2:
            return Apply("square", (base,))
        case Const(value=value) if value == Fraction(1, 2):
            return Apply("sqrt", (base,))
        case Const(value=value) if value < 0:
            return Apply("div", (ONE, _power(base, Const(-value))))
        case _:
            return Apply("pow", (base, exponent))
