"""A rule's formula as written, as plain data that a runner evaluates.

It is the other side of the comparison: what a user gets who types the formula into the
framework and lets it differentiate. Parts without inputs are folded to one double, as
Python would have it.
"""

from __future__ import annotations

import math
from typing import Any

from gradspec.ir.calls import follows_surrogate
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Override, Rule
from gradspec.ir.walk import names, nodes
from gradspec.symbolic.truth import nearest


def program(exprs: dict[str, Expr]) -> dict[str, Any]:
    """``nodes`` in order, children first, and ``roots``: places of the expressions."""
    known: dict[Expr, int] = {}
    steps: list[list[Any]] = []
    for root in exprs.values():
        for node in nodes(root):
            if node not in known:
                steps.append(_step(node, known))
                known[node] = len(steps) - 1
    return {"nodes": steps, "roots": {key: known[e] for key, e in exprs.items()}}


def is_derivative(rule: Rule) -> bool:
    """Whether the rule's backward is the derivative of its forward: else a framework's
    own differentiation is about another function.
    """
    overridden = any(isinstance(entry, Override) for entry in rule.backward)
    return not overridden and not follows_surrogate(rule)


def _step(node: Expr, known: dict[Expr, int]) -> list[Any]:
    match node:
        case Ref(name=name):
            return ["ref", name]
        case Const(value=value):
            return ["const", _double(float(value))]
        case Select(condition=condition, then=then, other=other):
            return ["select", *(known[part] for part in (condition, then, other))]
        case Apply(op=op, args=args):
            folded = math.nan if names(node) else nearest(node, [{}], "float64")[0]
            if not math.isnan(folded):
                return ["const", _double(folded)]
            return [op, *(known[arg] for arg in args)]
        case _:
            raise NotImplementedError("indexed expressions")


def _double(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else repr(value)
