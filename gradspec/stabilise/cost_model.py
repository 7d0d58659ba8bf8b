"""The cost of an expression on arrays, to choose the cheapest of several good forms."""

from __future__ import annotations

from gradspec.ir.expr import Apply, Call, Expr, Reduce, Select
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import primitive

_SELECT = 3.7  # multiplications of a float32 array (`np.where`, measured)
_CALL = 10.0
_LOGSUMEXP = 26.0  # an exponential of each element, and a logarithm


def cost(expr: Expr) -> float:
    """The operations in multiplications of an array, shared ones once, and 1 for each
    node: a pass over memory, and something to read."""
    return sum(1.0 + _cost(node) for node in nodes(expr))


def _cost(node: Expr) -> float:
    match node:
        case Apply(op=op):
            return primitive(op).cost
        case Select():
            return _SELECT
        case Call():
            return _CALL
        case Reduce(op="logsumexp"):
            return _LOGSUMEXP
        case _:
            return 0.0
