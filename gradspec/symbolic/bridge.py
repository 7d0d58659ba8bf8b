"""To SymPy and back, to ask a question. What comes back has been measured by nobody:
the caller has to, before any of it is emitted.

Every name becomes a real symbol (positive, negative, … where the assumptions say so
plainly). Conditionals, ``max`` and ``min`` become functions that SymPy knows nothing
of, so that it neither rearranges nor differentiates them: it turns a step into a Dirac
delta and sorts the conditions of a ``Piecewise`` for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from gradspec.ir.calls import expand
from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select, apply
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


# --- and back ------------------------------------------------------------------------


class _NoCounterpart(Exception):
    """SymPy answered with something that our language does not have."""


def from_sympy(value: Term) -> Expr | None:
    """A SymPy expression in our own tree; None if it has no counterpart there."""
    try:
        return _back(value)
    except _NoCounterpart:
        return None


def _back(value: Term) -> Expr:
    if value.is_Rational:
        return Const(Fraction(int(value.p), int(value.q)))
    if value.is_Symbol:
        return Ref(str(value.name))
    if value.is_Add:
        return _back_sum(value)
    if value.is_Mul:
        return _back_product(value)
    kind = type(value).__name__
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind == "Pow":
        return _back_power(_back(value.base), value.exp)
    return _back_function(kind, value.args)


def _back_sum(value: Term) -> Expr:
    """Positive terms first, so that the sum does not begin with a minus."""
    terms = value.as_ordered_terms()
    plus = [t for t in terms if not t.could_extract_minus_sign()]
    minus = [t for t in terms if t.could_extract_minus_sign()]
    if not plus:
        return apply("neg", _back(-value))
    total = _back(plus[0])
    for term in plus[1:]:
        total = apply("add", total, _back(term))
    for term in minus:
        total = apply("sub", total, _back(-term))
    return total


def _back_product(value: Term) -> Expr:
    coefficient, rest = value.as_coeff_Mul()
    if coefficient < 0:
        return apply("neg", _back(-value))
    above: list[Expr] = []
    below: list[Expr] = []
    if coefficient.p != 1:
        above.append(Const(Fraction(int(coefficient.p))))
    if coefficient.q != 1:
        below.append(Const(Fraction(int(coefficient.q))))
    for factor in rest.as_ordered_factors():
        base, exponent = factor.as_base_exp()
        if type(factor).__name__ == "Pow" and exponent.could_extract_minus_sign():
            below.append(_back_power(_back(base), -exponent))
        else:
            above.append(_back(factor))
    top = _product(above)
    return apply("div", top, _product(below)) if below else top


def _product(factors: list[Expr]) -> Expr:
    if not factors:
        return ONE
    total = factors[0]
    for factor in factors[1:]:
        total = apply("mul", total, factor)
    return total


def _back_power(base: Expr, exponent: Term) -> Expr:
    if exponent.could_extract_minus_sign():
        return apply("div", ONE, _back_power(base, -exponent))
    if exponent.is_Rational and exponent.q == 2:
        root = apply("sqrt", base)
        whole = int(exponent.p)
        return root if whole == 1 else apply("pow", root, Const(Fraction(whole)))
    if exponent == 1:
        return base
    return apply("pow", base, _back(exponent))


def _back_function(kind: str, args: tuple[Term, ...]) -> Expr:
    if kind == "select":
        condition, then, other = (_back(arg) for arg in args)
        return Select(condition, then, other)
    if kind in ("Max", "Min"):
        return _nested(kind.lower(), [_back(arg) for arg in args])
    if kind in _SPECIAL:
        made = _SPECIAL[kind](args)
        if made is not None:
            return made
    name = _FUNCTIONS.get(kind) or (kind if kind in _OPAQUE else None)
    if name is None or not _exists(name, len(args)):
        raise _NoCounterpart
    return Apply(name, tuple(_back(arg) for arg in args))


def _nested(op: str, parts: list[Expr]) -> Expr:
    total = parts[0]
    for part in parts[1:]:
        total = apply(op, total, part)
    return total


@cache
def _exists(name: str, arity: int) -> bool:
    try:
        return primitive(name).arity == arity
    except KeyError:
        return False


def _polygamma(args: tuple[Term, ...]) -> Expr | None:
    return apply("digamma", _back(args[1])) if args[0] == 0 else None


def _bessel(args: tuple[Term, ...]) -> Expr | None:
    order = {0: "i0", 1: "i1"}.get(args[0])
    return apply(order, _back(args[1])) if order else None


def _sinc(args: tuple[Term, ...]) -> Expr | None:
    """SymPy's is sin(x)/x, ours sin(pi x)/(pi x)."""
    return apply("sinc", apply("div", _back(args[0]), apply("pi")))


_SPECIAL: dict[str, Callable[[tuple[Term, ...]], Expr | None]] = {
    "polygamma": _polygamma,
    "besseli": _bessel,
    "sinc": _sinc,
}

_CONSTANTS: dict[str, Expr] = {
    "Pi": apply("pi"),
    "Exp1": apply("exp", ONE),
    "Infinity": apply("inf"),
    "NegativeInfinity": apply("neg", apply("inf")),
}

_SAME = (
    *("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sign", "floor"),
    *("erf", "erfc", "erfinv", "erfcinv", "gamma", "digamma", "polygamma"),
)

_FUNCTIONS: dict[str, str] = {
    **{name: name for name in _SAME},
    "Abs": "abs",
    "ceiling": "ceil",
    "loggamma": "lgamma",
    "Mod": "mod",
}
