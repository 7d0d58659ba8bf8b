"""Which expressions need no float32 to be right in float16 and bfloat16."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, IsNan, Literal, Name, Op, ToFloat, Where, nodes
from gradspec.plan.ranked import (
    Diagonal,
    Expand,
    Permute,
    Pick,
    RankedNode,
    Window,
)
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_beside import BESIDE

_STEPS = ("sign", "floor", "ceil", "round", "trunc", "heaviside")
_SELECTING = frozenset(("neg", "abs", "max", "min", "clip", "relu", BESIDE, *_STEPS))
_WHOLE_IN_BFLOAT16 = 256


def is_exact_in_half(exprs: Iterable[Expr], scalars: frozenset[str]) -> bool:
    """Whether nothing is rounded: values are only compared, chosen and negated.

    A Python number (one of ``scalars``) beside a half tensor is rounded to its type,
    which could decide a comparison otherwise; small whole numbers are the same in both.
    """
    return all(_is_exact(node, scalars) for expr in exprs for node in nodes(expr))


def _is_exact(node: Expr, scalars: frozenset[str]) -> bool:
    match node:
        case Name(id=name):
            return name not in scalars
        case Literal(value=value):
            return value.denominator == 1 and abs(value) <= _WHOLE_IN_BFLOAT16
        case Op(primitive=op):
            return op in _SELECTING or primitive(op).result == "bool"
        case Where() | ToFloat() | IsNan():
            return True
        case Diagonal() | Expand() | Permute() | Pick() | Window():
            return True
        case RankedNode():
            return False
