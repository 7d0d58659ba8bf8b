"""What an evaluation costs in eager torch on the CPU, where each operation is a call and
goes through memory by itself.

Measured on one core (AVX-512, PyTorch 2.13) at 16384 elements, in float32 products of as
many: an exponential takes six of them. In float64 everything takes twice as long, the
conversions come on top. What single functions take is in the rows of the table
(`gradspec/primitives/on_target.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from gradspec.plan.array import Expr, Literal, Name, Op, Where, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.on_target import OnTarget
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS

_CHOICE = 7.0
_WIDER = 2.1
_CONVERSION = 1.2
"""Of one array, to float64 or from it."""

MANY, FEW = 16384, 1024
"""Elements at which evaluations are compared."""

_CALL = 0.6
"""Of any operation, before its first element."""


def in_single(
    values: Iterable[Expr], scalars: frozenset[str], elements: int = MANY
) -> float:
    """What the values cost in the type of their arguments."""
    found = tuple(_arrays(values, scalars))
    return _mixed(
        sum(_cost(node, _single) for node in found),
        sum(_count(node, _calls) for node in found),
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
    own = sum(_cost(node, _double) for node in found)
    return _mixed(
        _WIDER * own + _CONVERSION * converted,
        converted + sum(_count(node, _calls_in_double) for node in found),
        elements,
    )


def _mixed(whole: float, calls: float, elements: int) -> float:
    """Between nothing but calls and what was measured at ``MANY``, calls among it."""
    share = elements / MANY
    return whole * share + _CALL * calls * (1.0 - share)


_single, _double = attrgetter("single"), attrgetter("double")
_calls, _calls_in_double = attrgetter("calls"), attrgetter("calls_in_double")


def _count(node: Expr, calls: Callable[[OnTarget], float]) -> float:
    """Operations of torch in one of the plan."""
    if isinstance(node, Op):
        if node.primitive in POLYNOMIALS:
            return 2.0 * len(node.args)
        return calls(primitive(node.primitive).on["torch"])
    return 1.0


def _arrays(values: Iterable[Expr], scalars: frozenset[str]) -> Iterable[Expr]:
    for node in nodes(*values):
        if not isinstance(node, Name | Literal) and not {*names(node)} <= scalars:
            yield node


def _cost(node: Expr, known: Callable[[OnTarget], float | None]) -> float:
    match node:
        case Op(primitive=name, args=args):
            row = primitive(name)
            if (cost := known(row.on["torch"])) is not None:
                return cost
            return 2.0 * len(args) if name in POLYNOMIALS else max(1.0, row.cost)
        case Where():
            return _CHOICE
        case _:
            return 1.0
