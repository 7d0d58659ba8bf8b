"""What an evaluation costs in NumPy, where each operation is a call and goes through memory
by itself.

Measured on one core (AVX-512, NumPy 2.4) at 65536 elements, which stay in the cache, in
float32 products of as many. In float64 everything takes about twice as long; sines have no
vector code there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradspec.plan.array import Expr, Literal, Name, Op, Where, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS

_SINGLE: Mapping[str, float] = {
    "exp": 4.5,
    "expm1": 2.8,
    "expm1_known": 2.8,
    "log": 3.0,
    "log1p": 3.5,
    "tanh": 2.9,
    "sin": 4.0,
    "cos": 4.2,
    "sinh": 2.9,
    "cosh": 2.6,
    "atan": 3.0,
    "sqrt": 2.8,
    "sigmoid": 7.8,
    "softplus": 11.0,
    "logsigmoid": 12.0,
    "logaddexp": 14.0,
    "sigmoid_sum": 27.0,
    "sigmoid_product": 35.0,
    "exp_sum": 20.0,
    "exp_product": 30.0,
    "min": 1.4,
    "max": 1.4,
    "clip": 1.4,
    "div": 1.0,
}
_DOUBLE: Mapping[str, float] = {
    "exp": 6.0,
    "expm1": 8.7,
    "expm1_known": 8.7,
    "log": 6.2,
    "log1p": 7.9,
    "tanh": 12.7,
    "sin": 62.0,
    "cos": 64.0,
    "sinh": 8.8,
    "cosh": 6.5,
    "atan": 9.2,
    "sqrt": 8.9,
    "sigmoid": 12.0,
    "softplus": 20.0,
    "logsigmoid": 22.0,
    "logaddexp": 24.0,
    "min": 2.2,
    "max": 2.2,
    "clip": 2.2,
    "div": 2.7,
}
"""What differs from what the table of primitives says."""

_CHOICE = 4.0
_WIDER = 1.7
_CONVERSION = 1.2
"""Of one array, to float64 or from it."""


def in_single(values: Iterable[Expr], scalars: frozenset[str]) -> float:
    """What the values cost in float32."""
    return sum(_cost(node, _SINGLE) for node in _arrays(values, scalars))


def in_double(values: Iterable[Expr], scalars: frozenset[str], converted: int) -> float:
    """What they cost in float64, with ``converted`` arguments and results."""
    total = _CONVERSION * converted
    for node in _arrays(values, scalars):
        name = node.primitive if isinstance(node, Op) else ""
        total += _DOUBLE.get(name, _WIDER * _cost(node, _SINGLE))
    return total


def _arrays(values: Iterable[Expr], scalars: frozenset[str]) -> Iterable[Expr]:
    for node in nodes(*values):
        if not isinstance(node, Name | Literal) and not {*names(node)} <= scalars:
            yield node


def _cost(node: Expr, special: Mapping[str, float]) -> float:
    match node:
        case Op(primitive=name, args=args):
            if name in POLYNOMIALS:
                return 2.0 * len(args)
            return special.get(name, max(1.0, primitive(name).cost))
        case Where():
            return _CHOICE
        case _:
            return 1.0
