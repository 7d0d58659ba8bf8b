"""What an evaluation costs in eager torch on the CPU, where each operation is a call and
goes through memory by itself.

Measured on one core (AVX-512, PyTorch 2.13) at 16384 elements, in float32 products of as
many: an exponential takes six of them. In float64 everything takes twice as long, the
conversions come on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradspec.plan.array import Expr, Literal, Name, Op, Where, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS

_OPERATIONS: Mapping[str, float] = {
    "exp": 6.0,
    "expm1": 9.0,
    "sigmoid": 3.0,
    "tanh": 18.0,
    "erf": 9.5,
    "erfc": 13.0,
    "log": 5.0,
    "log1p": 6.5,
    "softplus": 11.0,
    "logsigmoid": 8.0,
    "logaddexp": 11.5,
    "lt": 3.0,
    "le": 3.0,
    "gt": 3.0,
    "ge": 3.0,
    "eq": 3.0,
    "div": 1.2,
}
"""Those that differ from what the table of primitives says of NumPy."""

_HELPERS: Mapping[str, float] = {
    "ndtr": 30.0,
    "exp_neg_half_square": 40.0,
    "sigmoid_sum": 25.0,
    "sigmoid_product": 35.0,
    "exp_sum": 20.0,
    "exp_product": 30.0,
}
"""Private functions in float32; float64 takes the framework's own, at ``_OWN``."""

_OWN: Mapping[str, float] = {"ndtr": 25.0}

_CHOICE = 7.0
_WIDER = 2.1
_CONVERSION = 1.2
"""Of one array, to float64 or from it."""

MANY, FEW = 16384, 1024
"""Elements at which evaluations are compared."""

_CALL = 0.6
"""Of any operation, before its first element."""

_CALLS: Mapping[str, float] = {
    "ndtr": 16.0,
    "exp_neg_half_square": 17.0,
    "sigmoid_sum": 14.0,
    "sigmoid_product": 24.0,
    "exp_sum": 11.0,
    "exp_product": 20.0,
}
"""Operations in the private functions."""

_OWN_CALLS: Mapping[str, float] = {"ndtr": 3.0}


def in_single(
    values: Iterable[Expr], scalars: frozenset[str], elements: int = MANY
) -> float:
    """What the values cost in the type of their arguments."""
    found = tuple(_arrays(values, scalars))
    return _mixed(
        sum(_cost(node, _HELPERS) for node in found),
        sum(_count(node, _CALLS) for node in found),
        elements,
    )


def in_double(
    values: Iterable[Expr],
    scalars: frozenset[str],
    converted: int,
    elements: int = MANY,
) -> float:
    """What they cost in float64, with ``converted`` arguments and results."""
    found = tuple(_arrays(values, scalars))
    own = sum(_cost(node, _OWN) for node in found)
    return _mixed(
        _WIDER * own + _CONVERSION * converted,
        converted + sum(_count(node, _OWN_CALLS) for node in found),
        elements,
    )


def _mixed(whole: float, calls: float, elements: int) -> float:
    """Between nothing but calls and what was measured at ``MANY``, calls among it."""
    share = elements / MANY
    return whole * share + _CALL * calls * (1.0 - share)


def _count(node: Expr, special: Mapping[str, float]) -> float:
    """Operations of torch in one of the plan."""
    if isinstance(node, Op):
        if node.primitive in POLYNOMIALS:
            return 2.0 * len(node.args)
        return special.get(node.primitive, 1.0)
    return 1.0


def _arrays(values: Iterable[Expr], scalars: frozenset[str]) -> Iterable[Expr]:
    for node in nodes(*values):
        if not isinstance(node, Name | Literal) and not {*names(node)} <= scalars:
            yield node


def _cost(node: Expr, special: Mapping[str, float]) -> float:
    match node:
        case Op(primitive=name, args=args):
            if name in special:
                return special[name]
            if name in POLYNOMIALS:
                return 2.0 * len(args)
            return _OPERATIONS.get(name, max(1.0, primitive(name).cost))
        case Where():
            return _CHOICE
        case _:
            return 1.0
