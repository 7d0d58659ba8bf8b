"""Quotients that the optimiser of a graph would put in other words, which round more."""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.array import Expr, Literal, Op, names
from gradspec.primitives.table_fence import OVER_ROOT, RECIPROCAL
from gradspec.targets.expansion import then


def kept(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with reciprocals, and quotients by roots, that graphs do not
    touch. ``scalars`` are the names of Python numbers."""

    def mended(node: Expr) -> Expr:
        match node:
            case Op("div", (Literal(value=one), x)) if one == 1:
                return Op(RECIPROCAL, (x,)) if is_array(x) else node
            case Op("div", (x, Op("sqrt") as root)) if is_array(x) and is_array(root):
                return Op(OVER_ROOT, (x, root))
            case _:
                return node

    def is_array(x: Expr) -> bool:
        return not {*names(x)} <= scalars

    return then(expand, mended)
