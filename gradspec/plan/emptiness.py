"""Factors that are no numbers where an axis is empty.

The mean of nothing is NaN, and so is what is made of it; a sum of nothing is 0 all the
same. Where ``r`` is made of a mean over rows, ``sum(dy[i, j] * c[i, j] * r[j] for i)`` is
therefore not written ``r * sum(dy * c)``: of no rows, that would be NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.plan.array import Expr
from gradspec.plan.axes import size_of

Sizes = frozenset[Expr]
_NONE: Sizes = frozenset()


def undefined_at(value: ir.Expr, known: Mapping[str, Sizes]) -> Sizes:
    """The sizes of which a 0 leaves a value undefined: those of the axes over which a mean
    is taken in it, and those by which it divides. ``known`` has those of the names in it.
    """
    found: dict[ir.Expr, Sizes] = {}
    for node in walk.nodes(value):
        at = _NONE.union(*(found[child] for child in walk.children(node)))
        match node:
            case ir.Ref(name=name):
                at |= known.get(name, _NONE)
            case ir.Reduce(op="mean" | "logsumexp", bounds=bounds):
                at |= {size_of(bound.axis) for bound in bounds}
            case ir.Apply(op="div", args=(_, ir.Size(axis=axis))):
                at |= {size_of(axis)}
            case _:
                pass
        found[node] = at
    return found[value]
