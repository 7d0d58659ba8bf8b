"""NaN in, NaN out, also where a condition decides.

``x if x > 0 else 0`` at NaN takes the second branch and loses it. Over the reals
``0 if x <= 0 else x`` is the same function, and at NaN it takes the branch that keeps it.
Where neither branch does (a step), the NaN is passed on by a choice of its own.
"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from gradspec.plan.array import (
    Expr,
    IsNan,
    Literal,
    Name,
    Op,
    ToFloat,
    Where,
    names,
    nodes,
    transform,
)
from gradspec.plan.ranked import (
    Arange,
    Gather,
    RankedNode,
    ScatterAdd,
    Take,
    Window,
    Windows,
)
from gradspec.primitives.lookup import primitive

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def turned(expr: Expr, floats: frozenset[str]) -> Expr:
    """Choices turned round where the other order keeps a NaN of the condition."""

    def visit(node: Expr) -> Expr:
        match node:
            case Where(
                condition=Op(primitive=op, args=args), then=then, other=other
            ) if op in _OPPOSITE:
                of = [name for name in names(*args) if name in floats]
                if any(keeps(then, v) and not keeps(other, v) for v in of):
                    return Where(Op(_OPPOSITE[op], args), other, then)
        return node

    return transform(expr, visit)


def passed_on(expr: Expr, floats: tuple[str, ...]) -> Expr:
    """``expr`` that is NaN wherever one of the ``floats`` that it depends on is."""
    for name in reversed([v for v in floats if v in names(expr)]):
        if not keeps(expr, name):
            value = Name(name)
            expr = _step(expr, value) or Where(IsNan(value), value, expr)
    return expr


def _step(expr: Expr, value: Name) -> Expr | None:
    """``1 if value > 0 else 0`` as what keeps a NaN by itself, and takes no choice, which
    is slow: the next whole number above what of the value lies between 0 and 1.
    """
    match expr:
        case ToFloat(arg=Op(primitive="gt", args=(left, Literal(value=bound)))) if (
            left == value and bound == 0
        ):
            zero, one = Literal(Fraction(0)), Literal(Fraction(1))
            return Op("ceil", (Op("clip", (value, zero, one)),))
        case _:
            return None


def keeps(expr: Expr, name: str) -> bool:
    """Whether a NaN in ``name`` makes ``expr`` NaN, whatever the other values are."""
    kept: dict[Expr, bool] = {}
    for node in nodes(expr):
        kept[node] = _keeps(node, name, kept)
    return kept[expr]


def _keeps(node: Expr, name: str, kept: dict[Expr, bool]) -> bool:
    match node:
        case Name(id=other):
            return other == name
        case Literal() | IsNan():
            return False
        case Op(primitive=op, args=args):
            row = primitive(op)
            keeps_nan = row.keeps_nan and row.result == "real"
            return keeps_nan and any(kept[arg] for arg in args)
        case ToFloat(arg=arg):
            return kept[arg]
        case Window() | Windows() | Take() | Gather() | ScatterAdd() | Arange():
            return False  # positions may be left out
        case RankedNode():
            return any(kept[part] for part in node.parts)
        case Where(condition=condition, then=then, other=other):
            match _at_nan(condition, name):
                case True:
                    return kept[then]
                case False:
                    return kept[other]
                case None:
                    return kept[then] and kept[other]
        case _:
            assert_never(node)
    raise AssertionError("unreachable")


def _at_nan(condition: Expr, name: str) -> bool | None:
    """A condition's value when ``name`` is NaN; None when others decide."""
    match condition:
        case Op(primitive="and", args=(left, right)):
            values = _at_nan(left, name), _at_nan(right, name)
            return False if False in values else True if None not in values else None
        case Op(primitive="or", args=(left, right)):
            values = _at_nan(left, name), _at_nan(right, name)
            return True if True in values else False if None not in values else None
        case Op(primitive="not", args=(arg,)):
            value = _at_nan(arg, name)
            return None if value is None else not value
        case Op(primitive=op, args=args) if any(keeps(arg, name) for arg in args):
            return op == "ne"
        case IsNan(arg=arg) if keeps(arg, name):
            return True
        case _:
            return None
