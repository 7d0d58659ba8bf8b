"""How often values go through memory: one pass for each array that is computed."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, Literal, Name, Op, ToFloat, Where, names, nodes
from gradspec.primitives.lookup import primitive

WORTH_BLOCKS = 2
"""Passes from which blocks that stay in the cache are faster than whole arrays."""


def passes(values: Iterable[Expr], scalars: frozenset[str]) -> int:
    """How many arrays of floating numbers are computed; conditions are small."""
    return sum(
        is_float(node) and not {*names(node)} <= scalars
        for value in values
        for node in nodes(value)
    )


def is_float(node: Expr) -> bool:
    """Whether an array of floating numbers is computed here."""
    match node:
        case Name() | Literal():
            return False
        case Op(primitive=name):
            return primitive(name).result == "real"
        case _:
            return isinstance(node, Where | ToFloat)
