"""The formula of a rule as written, as plain data that a runner evaluates.

It is the other side of the comparison: what a user gets who types the formula into the
framework and lets it differentiate. Parts without inputs are folded to one double, as
Python would have it.
"""

from __future__ import annotations

import math
from typing import Any

from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.rule import Rule
from gradspec.ir.walk import (
    closed_outputs,
    follows_surrogate,
    names,
    nodes,
    stops,
)
from gradspec.primitives.table_operators import STOP
from gradspec.stabilise.names import with_stops
from gradspec.symbolic.truth import nearest


def written_outputs(rule: Rule) -> dict[str, Expr]:
    """The outputs with calls inlined, except those that stop gradients."""
    found = closed_outputs(rule).items()
    return {name: with_stops(value) for name, value in found}


def written_program(exprs: dict[str, Expr]) -> dict[str, Any]:
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
    """True if the rule's backward is the derivative of its forward, where no gradient
    is stopped: else a framework's own differentiation concerns another function.
    """
    if rule.overrides or rule.surrogates:
        return False
    values = (let.value for let in rule.forward)
    called = (n.rule for value in values for n in nodes(value) if isinstance(n, Call))
    return all(
        stops(callee) or not (callee.overrides or follows_surrogate(callee))
        for callee in called
    )


def _step(node: Expr, known: dict[Expr, int]) -> list[Any]:
    match node:
        case Ref(name=name):
            return ["ref", name]
        case Const(value=value):
            return ["const", _double(float(value))]
        case Select(condition=condition, then=then, other=other):
            return ["select", *(known[part] for part in (condition, then, other))]
        case Apply(op="stop", args=(arg,)):
            return [STOP, known[arg]]
        case Apply(op=op, args=args):
            folded = math.nan if names(node) else nearest(node, [{}], "float64")[0]
            if not math.isnan(folded):
                return ["const", _double(folded)]
            return [op, *(known[arg] for arg in args)]
        case _:
            raise NotImplementedError("indexed expressions")


def _double(value: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return value if math.isfinite(value) else repr(value)
