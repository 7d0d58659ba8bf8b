"""What an evaluation costs in NumPy, where each operation is a call and goes through memory
by itself.

Measured on one core (AVX-512, NumPy 2.4) at 65536 elements, which stay in the cache, in
float32 products of as many. In float64 everything takes about twice as long; what single
functions take is in the rows of the table (`gradspec/primitives/on_target.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, Literal, Name, Op, Where, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS

_CHOICE = 4.0
_WIDER = 1.7
_CONVERSION = 1.2
"""Of one array, to float64 or from it."""


def in_single(values: Iterable[Expr], scalars: frozenset[str]) -> float:
    """What the values cost in float32."""
    return sum(_single(node) for node in _arrays(values, scalars))


def in_double(values: Iterable[Expr], scalars: frozenset[str], converted: int) -> float:
    """What they cost in float64, with ``converted`` arguments and results."""
    own = sum(_double(node) for node in _arrays(values, scalars))
    return _CONVERSION * converted + own


def _arrays(values: Iterable[Expr], scalars: frozenset[str]) -> Iterable[Expr]:
    for node in nodes(*values):
        if not isinstance(node, Name | Literal) and not {*names(node)} <= scalars:
            yield node


def _single(node: Expr) -> float:
    match node:
        case Op(primitive=name, args=args):
            row = primitive(name)
            if (cost := row.on["numpy"].single) is not None:
                return cost
            return 2.0 * len(args) if name in POLYNOMIALS else max(1.0, row.cost)
        case Where():
            return _CHOICE
        case _:
            return 1.0


def _double(node: Expr) -> float:
    match node:
        case Op(primitive=name):
            known = primitive(name).on["numpy"].double
            return _WIDER * _single(node) if known is None else known
        case _:
            return _WIDER * _single(node)
