"""Polynomials in atoms: terms are a rational times powers of expressions."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from gradspec.derive.indexed_scopes import AT
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.walk import children

Term: TypeAlias = tuple[tuple[Expr, Fraction], ...]
Poly: TypeAlias = dict[Term, Fraction]

UNIT = Fraction(1)
_TERMS = 200


class TooLarge(Exception):
    """Multiplied out, the expression has too many terms."""


def add(a: Poly, b: Poly, factor: Fraction = UNIT) -> Poly:
    found = dict(a)
    for term, number in b.items():
        found[term] = found.get(term, Fraction(0)) + factor * number
    if len(found) > _TERMS:
        raise TooLarge
    return {term: number for term, number in found.items() if number}


def single(atom: Expr, power: Fraction = UNIT) -> Poly:
    return {((atom, power),): UNIT}


def constant(value: Fraction | int) -> Poly:
    return {(): Fraction(value)} if value else {}


def merged(a: Term, b: Term) -> Term | None:
    """The product of two terms; None if a condition contradicts itself."""
    found = dict(a)
    for atom, power in b:
        if is_condition(atom):
            found[atom] = UNIT
        else:
            found[atom] = found.get(atom, Fraction(0)) + power
    kept = [(atom, power) for atom, power in found.items() if power]
    return tuple(sorted(kept, key=lambda pair: (text(pair[0]), pair[1])))


def is_condition(atom: Expr) -> bool:
    return isinstance(atom, Apply) and atom.op in ("lt", "eq", AT)


@lru_cache(maxsize=100_000)
def text(expr: Expr) -> str:
    """A key that orders expressions."""
    below = ",".join(text(child) for child in children(expr))
    match expr:
        case Const(value=value):
            return f"#{value}"
        case Ref(name=name):
            return f"{name}[{below}]"
        case Idx(name=name):
            return f"~{name}"
        case Size(axis=axis):
            return f"|{axis}|"
        case Apply(op=op):
            return f"{op}({below})"
        case Select():
            return f"?({below})"
        case Reduce(op=op, bounds=bounds):
            ranges = ",".join(f"{b.index}:{b.axis}" for b in bounds)
            return f"{op}<{ranges}>({below})"
        case Call(rule=rule, output=output):
            return f"{rule.name}.{output}({below})"


def written(poly: Poly) -> Expr:
    """A polynomial as an expression, terms and factors in order."""
    result: Expr | None = None
    for term, number in sorted(
        poly.items(), key=lambda pair: [(text(a), p) for a, p in pair[0]]
    ):
        part: Expr = Const(number)
        for atom, power in term:
            raised = atom if power == 1 else Apply("pow", (atom, Const(power)))
            part = raised if part == ONE else Apply("mul", (part, raised))
        result = part if result is None else Apply("add", (result, part))
    return ZERO if result is None else result


def is_positive(atom: Expr) -> bool:
    match atom:
        case Size():
            return True
        case Apply(op="exp"):
            return True
        case Reduce(op="sum", body=body):
            return is_positive(body)
        case Apply(op="mul", args=args):
            return all(map(is_positive, args))
        case Const(value=value):
            return value > 0
        case _:
            return False


def first_term(poly: Poly) -> Term:
    return min(poly, key=lambda t: [(text(a), p) for a, p in t])


def scaled(poly: Poly) -> Poly:
    return add({}, poly, 1 / abs(poly[first_term(poly)]))
