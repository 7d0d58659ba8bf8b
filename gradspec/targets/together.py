"""Functions of functions that need one exponential together, where XLA fuses: the hyperbolic
tangent of a softplus has two and a logarithm as it stands.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.array import Expr, Op, children, names, nodes
from gradspec.plan.translate import rebuilt
from gradspec.primitives.table_known import TANH_SOFTPLUS


def together(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with such functions in one."""

    def expanded(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(expand(expr)):
            parts = tuple(done[part] for part in children(node))
            done[node] = _joined(rebuilt(node, parts), scalars)
        return done[node]

    return expanded


def _joined(node: Expr, scalars: frozenset[str]) -> Expr:
    match node:
        case Op("tanh", (Op("softplus", (x,)),)) if not {*names(x)} <= scalars:
            return Op(TANH_SOFTPLUS, (x,))
        case _:
            return node
