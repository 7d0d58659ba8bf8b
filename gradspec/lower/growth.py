"""How large expressions become when defs and locals are put in place.

The text limits how deep an expression is written; defs and locals multiply that. The
later stages look at every node many times, so there is a limit here too, far above what
anyone writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.walk import children, nodes

LARGEST = 5000
"""Distinct operations of one expression."""

DEEPEST = 500
"""Operations inside one another."""

LONGEST = 1000
"""Statements of one rule."""


def depth(expr: Expr, below: Mapping[str, int]) -> int:
    """How many operations lie inside one another, a name counting as ``below`` says."""
    known: dict[Expr, int] = {}
    for node in nodes(expr):
        own = below.get(node.name, 1) if isinstance(node, Ref) else 1
        known[node] = max((own, *(1 + known[c] for c in children(node))))
    return known[expr]


def is_too_large(expr: Expr, below: Mapping[str, int]) -> bool:
    """Whether an expression is beyond what the later stages take."""
    return depth(expr, below) > DEEPEST or sum(1 for _ in nodes(expr)) > LARGEST
