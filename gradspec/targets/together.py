"""Functions of functions that need one exponential together, where compilers fuse: the
hyperbolic tangent of a softplus has two and a logarithm as it stands, and logistic functions
of a difference and of its opposite one each.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.plan.array import Expr, Name, Op, names
from gradspec.primitives.table_known import SIGMOID_REST, TANH_SOFTPLUS
from gradspec.targets.expansion import then


def together(
    expand: Callable[[Expr], Expr], scalars: frozenset[str]
) -> Callable[[Expr], Expr]:
    """What ``expand`` gives, with such functions in one."""
    return then(expand, lambda node: _paired(_joined(node, scalars)))


def paired(expand: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """The same of logistic functions alone."""
    return then(expand, _paired)


def _joined(node: Expr, scalars: frozenset[str]) -> Expr:
    match node:
        case Op("tanh", (Op("softplus", (x,)),)) if not {*names(x)} <= scalars:
            return Op(TANH_SOFTPLUS, (x,))
        case _:
            return node


def _paired(node: Expr) -> Expr:
    """Of a difference and its opposite, both say the one whose names are in order: they
    share all that costs."""
    match node:
        case Op(
            "sigmoid_sum", (Name(id=first) as x, Op("neg", (Name(id=second) as y,)))
        ):
            return Op(SIGMOID_REST, (y, Op("neg", (x,)))) if first > second else node
        case _:
            return node
