"""Small factors of a product first: a pass over a row less for each.

``x[i] * r**2 * m`` is ``x[i] * (r**2 * m)`` where ``r`` and ``m`` are the same for a whole
row: their product is one number for each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from gradspec.ir import expr as ir
from gradspec.ir import walk

_Indices: TypeAlias = "frozenset[str] | None"
"""The indices that a value depends on; None for a number."""


def regrouped(expr: ir.Expr, tensors: frozenset[str]) -> ir.Expr:
    """``expr`` with its products so bracketed; ``tensors`` are the names of no numbers."""
    uses = Counter(child for node in walk.nodes(expr) for child in walk.children(node))
    done: dict[ir.Expr, ir.Expr] = {}
    known: dict[ir.Expr, _Indices] = {}

    def learn(made: ir.Expr) -> ir.Expr:
        todo = [made]
        while todo:
            missing = [c for c in walk.children(todo[-1]) if c not in known]
            if missing:
                todo += missing
            else:
                part = todo.pop()
                known[part] = _indices(part, known, tensors)
        return made

    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = learn(walk.with_children(node, parts))
        alone = not parts or uses[walk.children(node)[0]] == 1
        done[node] = learn(_bracketed(made, known)) if alone else made
    return done[expr]


def _indices(
    node: ir.Expr, known: Mapping[ir.Expr, _Indices], tensors: frozenset[str]
) -> _Indices:
    found = [k for child in walk.children(node) if (k := known[child]) is not None]
    whole: frozenset[str] = frozenset().union(*found)
    match node:
        case ir.Ref(name=name):
            return whole if name in tensors else None
        case ir.Idx(name=name):
            return frozenset((name,))
        case ir.Reduce(bounds=bounds):
            return whole - {bound.index for bound in bounds} if found else None
        case _:
            return whole if found else None


def _bracketed(expr: ir.Expr, known: Mapping[ir.Expr, _Indices]) -> ir.Expr:
    """One product or quotient whose left side is a product."""
    match expr:
        case ir.Apply(
            op="mul" | "div" as op,
            args=(ir.Apply(op="mul", args=(first, second)), right),
        ) if op == "mul" or known[right] is None:
            # A quotient of tensors may be what keeps a product from overflowing.
            a, b, c = known[first], known[second], known[right]
            if _is_less(b, a) and _is_less(c, a) and (b is not None or c is not None):
                return ir.apply("mul", first, ir.apply(op, second, right))
            if _is_less(a, b) and _is_less(c, b) and (a is not None or c is not None):
                return ir.apply("mul", ir.apply(op, first, right), second)
    return expr


def _is_less(small: _Indices, large: _Indices) -> bool:
    """Whether a value has fewer axes than another, which is no number."""
    return large is not None and (small is None or small < large)
