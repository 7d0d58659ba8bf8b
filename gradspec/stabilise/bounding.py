"""Expressions with an input bounded, and products taken apart (`infinite.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, const
from gradspec.ir.walk import names, nodes, transform, with_children
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


def linear(form: Expr, upstream: frozenset[str]) -> Expr:
    """With upstream gradients as factors of all else: no condition may ask them, and no
    branch that is not taken has a product of theirs."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op="mul"):
                ahead, rest = _apart(node, upstream)
                if ahead and len(rest) > 1:
                    return product([*ahead, product(rest)])
            case Apply(op="div", args=(top, below)) if not upstream & names(below):
                ahead, rest = _apart(top, upstream)
                if ahead:
                    inner = Apply("div", (product(rest or [ONE]), below))
                    return product([*ahead, inner])
            case Select(condition=condition, then=then, other=other):
                return _hoisted(condition, then, other, upstream) or node
        return node

    return transform(form, visit)


def at_both(form: Expr, end: End) -> Iterator[Expr]:
    """With what is chosen at the other end chosen at this one too, by one condition."""
    own = Ref(end.name)
    there = Apply("eq", (own, replace(end, sign=-end.sign).number))
    both = Apply("eq", (Apply("abs", (own,)), INFINITY))
    for node in nodes(form):
        if isinstance(node, Select) and node.condition == there:
            yield replaced(form, node, Select(both, node.then, node.other))


def _apart(node: Expr, upstream: frozenset[str]) -> tuple[list[Expr], list[Expr]]:
    """Factors with upstream gradients, and those without."""
    ahead = [f for f in factors(node) if upstream & names(f)]
    return ahead, [f for f in factors(node) if f not in ahead]


def _hoisted(
    condition: Expr, then: Expr, other: Expr, upstream: frozenset[str]
) -> Expr | None:
    """A conditional of products with the same upstream gradient, or 0."""
    parts = [_apart(branch, upstream) for branch in (then, other)]
    found = {product(ahead) for ahead, _ in parts if ahead}
    alone = [b for b, (ahead, _) in zip((then, other), parts, strict=True) if not ahead]
    if len(found) != 1 or upstream & names(condition) or any(b != ZERO for b in alone):
        return None
    one, two = (product(rest or [ONE]) if ahead else ZERO for ahead, rest in parts)
    return product([*found, Select(condition, one, two)])
