"""Derivatives by SymPy: an expression is converted to SymPy and back, as trees.

Every name is a real symbol to it. Conditionals and steps have no form there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial, reduce
from typing import Any, TypeAlias

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, show
from gradspec.ir.products import Product
from gradspec.ir.walk import names, substitute, transform
from gradspec.primitives.lookup import is_function, is_primitive, primitive
from gradspec.primitives.lookup import partial as partial_of

Term: TypeAlias = Any
"""A SymPy expression (SymPy has no types to check against)."""


LARGEST = 300
"""Nodes of an expression that SymPy is asked to differentiate: a fraction of a second."""

_PLAIN = frozenset(Fraction(n, d) for n in range(-4, 5) for d in (1, 2, 3))
"""Numbers that SymPy is given. It works out powers and factorials of numbers at once,
``lgamma(1e300)`` too, so the others are names to it."""


def derivative(expr: Expr, name: str) -> Expr | None:
    """SymPy's derivative of an expression without conditionals; None where that has no
    form here. Nothing of our own chain rule is used."""
    return next(_derivatives(expr, name, _Terms), None)


def short_derivatives(expr: Expr, name: str) -> tuple[Expr, ...]:
    """SymPy's derivative as one writes it by hand, with our built-ins, and with common
    factors taken out. Neither multiplies anything out, so both are made in no time."""
    return tuple(_derivatives(expr, name, _BuiltIns))


def _derivatives(expr: Expr, name: str, terms: type[_Terms]) -> Iterator[Expr]:
    try:
        import sympy
    except ModuleNotFoundError:  # in a browser, where it is loaded late or never
        return
    values: dict[str, Expr] = {}

    def name_derivative(node: Expr) -> Expr:
        is_plain = node.value in _PLAIN if isinstance(node, Const) else names(node)
        if is_plain or (isinstance(node, Apply) and not node.args):
            return node
        text = f"number {show(node)}"
        values[text] = node
        return Ref(text)

    try:
        term = evaluate(transform(expr, name_derivative), terms(sympy), {})
        slope = term.diff(sympy.Symbol(name, real=True))
        yield substitute(from_sympy(slope), values)
        yield substitute(from_sympy(sympy.factor_terms(slope)), values)
    except Exception:  # SymPy raises many kinds
        return


class _Terms:
    """The algebra of SymPy's expressions."""

    def __init__(self, sympy: Any) -> None:
        self._sympy = sympy

    def constant(self, value: Fraction) -> Term:
        return self._sympy.Rational(value.numerator, value.denominator)

    def variable(self, name: str) -> Term:
        return self._sympy.Symbol(name, real=True)

    def operation(self, op: str) -> Callable[..., Term]:
        convert = primitive(op).sympy
        if convert is None:
            raise NotImplementedError(op)
        return partial(convert, self._sympy)

    def truth_of(self, condition: Term) -> None:
        return None

    def select(self, condition: Term, then: Term, other: Term) -> Term:
        raise NotImplementedError("a conditional")


class _BuiltIns(_Terms):
    """With the functions that SymPy lacks (``softplus``) as functions of their own."""

    def operation(self, op: str) -> Callable[..., Term]:
        if not is_function(op) or hasattr(self._sympy, op):
            return super().operation(op)

        def fdiff(term: Term, position: int = 1) -> Term:
            slope = partial_of(op, position - 1)
            if slope is None:
                raise NotImplementedError(op)
            given = dict(zip(primitive(op).params, term.args, strict=True))
            known = {Ref(n).key: value for n, value in (*given.items(), ("out", term))}
            return evaluate(slope, self, known)

        return type(op, (self._sympy.Function,), {"fdiff": fdiff, "is_real": True})


_NAMES = {"Abs": "abs", "loggamma": "lgamma"}
"""SymPy's names of functions that have another name here."""


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
        case "DiracDelta":  # away from the jump
            return ZERO
        case "Piecewise":  # of `sinc`: the limit at 0 comes last
            return from_sympy(term.args[0][0])
        case "besseli":
            return _bessel(int(term.args[0]), from_sympy(term.args[1]))
    parts = [from_sympy(part) for part in term.args]
    match name:
        case "Add":
            return _sum(parts)
        case "Mul":
            return _product(term.args)
        case "Pow":
            return _power(*parts)
    op = _NAMES.get(name, name)
    if not is_primitive(op):
        raise NotImplementedError(name)
    return Apply(op, tuple(parts))


def _bessel(order: int, x: Expr) -> Expr:
    """By the recurrence ``I(n) = I(n - 2) - 2 * (n - 1) / x * I(n - 1)``."""
    if order < 2:
        return Apply(f"i{order}", (x,))
    lower = Apply("mul", (Const(Fraction(2 * order - 2)), _bessel(order - 1, x)))
    return Apply("sub", (_bessel(order - 2, x), Apply("div", (lower, x))))


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
    return Product(above=tuple(above), below=tuple(below)).expr()


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
