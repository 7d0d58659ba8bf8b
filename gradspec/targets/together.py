"""Functions of functions that need one exponential together, where XLA fuses: the hyperbolic
tangent of a softplus has two and a logarithm as it stands.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.array import Expr, Op, names
from gradspec.primitives.table_known import TANH_SOFTPLUS
from gradspec.targets.expansion import then


def together(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with such functions in one."""
    return then(expand, lambda node: _joined(node, scalars))


def _joined(node: Expr, scalars: frozenset[str]) -> Expr:
    match node:
        case Op("tanh", (Op("softplus", (x,)),)) if not {*names(x)} <= scalars:
            return Op(TANH_SOFTPLUS, (x,))
        case _:
            return node
