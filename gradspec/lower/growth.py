"""Size of expressions after defs and locals are inlined.

The parser limits how deep an expression is written; defs and locals multiply that.
Later stages visit every node many times, so there is a limit here too, far above what
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
    """The number of nested operations; a name counts as ``below`` states."""
    known: dict[Expr, int] = {}
    for node in nodes(expr):
        own = below.get(node.name, 1) if isinstance(node, Ref) else 1
        known[node] = max((own, *(1 + known[c] for c in children(node))))
    return known[expr]


def is_too_large(expr: Expr, below: Mapping[str, int]) -> bool:
    """True if an expression exceeds the limits of the later stages."""
    return depth(expr, below) > DEEPEST or sum(1 for _ in nodes(expr)) > LARGEST
