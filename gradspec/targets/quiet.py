"""Whether NumPy would warn of something that is as it should be."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, Literal, Op, Where, nodes
from gradspec.primitives.lookup import primitive

_OVERFLOWING = frozenset(
    ["exp", "exp2", "expm1", "cosh", "sinh", "pow", "square", "gamma"]
)
_LEVELLING = frozenset(
    [
        "exp",
        "exp2",
        "expm1",
        "tanh",
        "sigmoid",
        "atan",
        "erf",
        "erfc",
        "ndtr",
        "sign",
        "clip",
        "min",
        "max",
    ]
)
"""What makes something finite of an infinity."""

_GREATEST = 88.7
"""Exponent that overflows in no type."""


def warns_needlessly(exprs: Iterable[Expr]) -> bool:
    """A branch that is not taken may be undefined; what overflows may be a denominator,
    and the result right.
    """
    return any(_warns(node) for node in nodes(*exprs))


def _warns(node: Expr) -> bool:
    match node:
        case Where(then=then, other=other):
            return any(_may_fail(part) for part in nodes(then, other))
        case Op(primitive="div", args=(_, below)):
            return any(_overflows(part) for part in nodes(below))
        case Op(primitive=op, args=args) if op in _LEVELLING:
            return any(_overflows(part) for part in nodes(*args))
        case _:
            return False


def _may_fail(node: Expr) -> bool:
    if not isinstance(node, Op):
        return False
    if node.primitive == "div" and isinstance(node.args[1], Literal):
        return False
    return bool(primitive(node.primitive).domain) or _overflows(node)


def _overflows(node: Expr) -> bool:
    match node:
        case Op("exp", (Op("min", (_, Literal(value=bound))),)):
            return bound > _GREATEST
        case Op("mul", factors):  # of which one may be bounded so
            return any(
                isinstance(f, Op) and f.primitive == "exp" for f in nodes(*factors)
            )
        case Op(primitive=name):
            return name in _OVERFLOWING
        case _:
            return False
