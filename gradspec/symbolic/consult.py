"""SymPy as a consultant: the last resort of a proof, within a time limit, and forms of an
expression that are candidates, to be measured like any other.

An alarm stops a proof; where there is none (in a thread, on a system without signals)
SymPy counts as too slow. A worker that was lost to it is replaced by one that does
without (`use`). Forms are asked for of small expressions only, so that SymPy answers
long before a rule's deadline, and the same on every machine.
`simplify(1 - 1/(1 + e**x))` is NaN at 100: it proposes, measurement disposes.

Every name becomes a real symbol (positive, negative, … where the assumptions say so
plainly). Conditionals, and the primitives whose rows have no form for SymPy (``max``),
become functions that it knows nothing of, so that it neither rearranges nor
differentiates them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial, reduce
from typing import Any, TypeAlias

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import size
from gradspec.primitives.lookup import is_primitive, primitive
from gradspec.symbolic.breaks import bounds
from gradspec.symbolic.limit import can_interrupt, in_time, uninterrupted

_LARGEST = 400
"""Nodes beyond which SymPy does not finish within any budget."""

_SHORTEST = 0.05

_is_used = [True]


def use(is_used: bool) -> None:
    """Turn SymPy on or off for further questions. If off, it counts as too slow."""
    _is_used[0] = is_used


def sympy_agrees(
    left: Expr, right: Expr, assumes: tuple[Expr, ...], seconds: float
) -> bool | None:
    """True if SymPy finds the difference to be 0; None when it does not finish in time.
    Its symbols are real, and nothing is forced: ``sqrt(x**2)`` stays ``|x|``."""
    if seconds < _SHORTEST or size(left) + size(right) > _LARGEST:
        return False
    if not _is_used[0] or not can_interrupt():
        return None
    with uninterrupted():  # a half-made import stays broken
        import sympy  # noqa: F401
    return in_time(seconds, lambda: _vanishes(left, right, assumes))


def _vanishes(left: Expr, right: Expr, assumes: tuple[Expr, ...]) -> bool:
    import sympy

    try:
        gap = to_sympy(left, assumes) - to_sympy(right, assumes)
        return bool(sympy.simplify(gap) == 0)
    except Exception:  # SymPy raises many kinds; none of them is a proof
        return False


# --- expressions as SymPy's -----------------------------------------------------------


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


# --- SymPy's forms --------------------------------------------------------------------


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
