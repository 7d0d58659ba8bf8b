"""Expressions with an input bounded, and products taken apart (`infinite.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from gradspec.ir.expr import Apply, Const, Expr, Ref, const
from gradspec.ir.walk import nodes, transform, with_children
from gradspec.stabilise.search import replaced

Point = Mapping[str, Fraction]

BOUNDS = (10**4, 10**18)
"""Where an exponential, and where 1 + 1/x, has come to its limit in every format."""

INFINITY = Apply("inf")


@dataclass(frozen=True, slots=True)
class End:
    """An input at one of its ends, and points of all the others."""

    name: str
    sign: int
    points: tuple[Point, ...]

    @property
    def number(self) -> Expr:
        return INFINITY if self.sign > 0 else Apply("neg", (INFINITY,))


def within(value: Expr, end: End, size: int) -> Expr:
    """The input, bounded at the other end perhaps, bounded at this one."""
    match value:
        case Apply(op="max", args=(inner, Const() as low)) if end.sign > 0:
            return Apply("clip", (inner, low, const(size)))
        case Apply(op="min", args=(inner, Const() as high)) if end.sign < 0:
            return Apply("clip", (inner, const(-size), high))
        case _:
            op, bound = ("min", size) if end.sign > 0 else ("max", -size)
            return Apply(op, (value, const(bound)))


_KEPT = Ref("kept_")


def everywhere(form: Expr, end: End, size: int) -> Expr:
    """The input bounded wherever it stands; where it is at the other end, at both."""
    own = Ref(end.name)
    other = next((n for n in nodes(form) if _is_bounded(n, own)), _KEPT)
    rest = replaced(replaced(form, other, _KEPT), own, within(own, end, size))
    return replaced(rest, _KEPT, within(other, end, size))


def _is_bounded(node: Expr, own: Expr) -> bool:
    match node:
        case Apply(op="min" | "max", args=(inner, Const(value=value))):
            return inner == own and abs(value) in BOUNDS
        case _:
            return False


def factors(node: Expr) -> list[Expr]:
    match node:
        case Apply(op="mul", args=(one, other)):
            return [*factors(one), *factors(other)]
        case _:
            return [node]


def product(factors: list[Expr]) -> Expr:
    return reduce(lambda one, other: Apply("mul", (one, other)), factors)


def outside(form: Expr, end: End, size: int) -> Expr:
    """The input bounded where it is an operand of arithmetic itself."""
    own = Ref(end.name)

    def factor(value: Expr) -> Expr:
        match value:
            case Apply(op="min" | "max", args=(inner, Const())) if inner == own:
                return within(value, end, size)
            case _:
                return within(value, end, size) if value == own else value

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op="mul" | "div", args=args):
                return with_children(node, tuple(map(factor, args)))
            case _:
                return node

    return transform(form, visit)
