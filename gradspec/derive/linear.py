"""Linearity of a cotangent in the upstream gradients, and its coefficients.

Every true cotangent is; an override need not be (a clipped or a constant gradient).
"""

from __future__ import annotations

from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, nodes, substitute


def is_linear(expr: Expr, upstream: frozenset[str]) -> bool:
    """True if ``expr`` is shown to be homogeneous and linear in these names (0 is)."""
    free: set[Expr] = set()  # nodes without any of the names
    linear: set[Expr] = {ZERO}
    for node in nodes(expr):
        if isinstance(node, Ref) and node.name in upstream:
            linear.add(node)
        elif all(child in free for child in children(node)):
            free.add(node)
        elif _keeps(node, free, linear):
            linear.add(node)
    return expr in linear


def _keeps(node: Expr, free: set[Expr], linear: set[Expr]) -> bool:
    match node:
        case Apply(op="add" | "sub" | "neg", args=args):
            return all(arg in linear for arg in args)
        case Apply(op="mul", args=(a, b)):
            return (a in linear and b in free) or (a in free and b in linear)
        case Apply(op="div", args=(a, b)):
            return a in linear and b in free
        case Select(condition=condition, then=then, other=other):
            return condition in free and then in linear and other in linear
        case _:
            return False


def coefficient(expr: Expr, name: str, upstream: frozenset[str]) -> Expr:
    """The coefficient of ``name`` in a linear ``expr``."""
    values = {other: ONE if other == name else ZERO for other in upstream}
    return tidy(substitute(expr, values))
