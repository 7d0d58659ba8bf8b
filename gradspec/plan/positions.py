"""Values that are said position by position, along an axis of a few.

``c[i] = (... if i == 0 else ... if i == 1 else ...)`` over an axis of size 3 is three
values side by side; nothing is computed to be thrown away by a choice.
"""

from __future__ import annotations

from functools import reduce

from gradspec.derive.indexed_scopes import replaced
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.tidy import fold

_MOST = 8
"""An axis longer than this is no list of cases."""

_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def spelled_out(expr: ir.Expr) -> ir.Expr:
    """``expr`` with sums over such an axis as sums of their terms."""
    done: dict[ir.Expr, ir.Expr] = {}
    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = walk.with_children(node, parts)
        match made:
            case ir.Reduce(op="sum", bounds=(bound,), body=body, where=None) if (
                isinstance(bound.axis, int) and asks(body, bound.index, bound.axis)
            ):
                terms = at_positions(body, bound.index, bound.axis)
                done[node] = reduce(lambda a, b: fold(ir.Apply("add", (a, b))), terms)
            case _:
                done[node] = made if made is node else fold(made)
    return done[expr]


def asks(expr: ir.Expr, index: str, axis: str | int) -> bool:
    """Whether a condition tells positions of a short axis apart."""
    if not isinstance(axis, int) or not 1 < axis <= _MOST:
        return False
    return any(_compares(node, index) for node in walk.nodes(expr))


def _compares(node: ir.Expr, index: str) -> bool:
    match node:
        case ir.Apply(op=op, args=(ir.Idx(name=name), ir.Const())) if op in _COMPARE:
            return name == index
        case ir.Apply(op=op, args=(ir.Const(), ir.Idx(name=name))) if op in _COMPARE:
            return name == index
        case _:
            return False


def at_positions(expr: ir.Expr, index: str, axis: int) -> tuple[ir.Expr, ...]:
    """``expr`` at each position."""
    return tuple(replaced(expr, {index: ir.const(k)}) for k in range(axis))
