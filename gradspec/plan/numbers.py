"""Values that are Python numbers wherever they are used: computed without a framework."""

from __future__ import annotations

from gradspec.plan.array import (
    Expr,
    Literal,
    Name,
    Op,
    Where,
    children,
    names,
    nodes,
)
from gradspec.primitives.lookup import primitive

_SAFE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "abs",
        "max",
        "min",
        "pi",
        "inf",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and",
        "or",
        "not",
        "floor",
        "ceil",
        "round",
        "trunc",
        "atan",
        "tanh",
    ]
)
"""Functions of finite Python numbers that do not raise."""


def is_number(expr: Expr, numbers: frozenset[str]) -> bool:
    """Whether no tensor takes part in the value, and Python computes it as a framework
    would: ``1.0 / k``, ``math.log(k)`` and ``k**-1`` may raise, in a branch that is not
    taken too, so that they are computed as arrays.
    """
    found: dict[Expr, bool] = {}
    for node in nodes(expr):
        parts = [found[child] for child in children(node)]
        match node:
            case Name(id=name):
                found[node] = name in numbers
            case Literal():
                found[node] = True
            case Where():
                found[node] = all(parts)
            case Op():
                found[node] = all(parts) and is_safe(node)
            case _:
                found[node] = False
    return found[expr]


def is_safe(node: Op) -> bool:
    """Whether Python computes the operation on plain numbers, and never raises."""
    if "python" not in primitive(node.primitive).spellings:
        return False
    match node:
        case Op("div", (_, Literal(value=value))):
            return value != 0
        case Op("pow", (_, Literal(value=power))):
            return power in (1, 2)
        case Op(primitive=op):
            return op in _SAFE


def may_be_number(expr: Expr, numbers: frozenset[str]) -> bool:
    """True if an expression is a Python number, or a choice by a number may give one."""
    if set(names(expr)) <= numbers:
        return True
    match expr:
        case Where(condition=condition, then=then, other=other):
            chosen = set(names(condition)) <= numbers
            return chosen and any(may_be_number(v, numbers) for v in (then, other))
        case _:
            return False
