"""Sizes and positions of axes in words: whole numbers without a point."""

from __future__ import annotations

from gradspec.plan.arrays import Expr, Literal, Name, Op
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Infix
from gradspec.targets.expressions import ATOM, UNARY, Text


def whole(expr: Expr) -> Text:
    """``n - k + 1`` of names, whole literals, and what Python has operators for."""
    match expr:
        case Name(id=name):
            return Text(name, ATOM, True)
        case Literal(value=value):
            assert value.denominator == 1, value
            return Text(str(value.numerator), ATOM if value >= 0 else UNARY, True)
        case Op(primitive="neg", args=(arg,)):
            return Text(f"-{whole(arg).within(UNARY)}", UNARY, True)
        case Op(primitive=op, args=(left, right)):
            return _infix(op, whole(left), whole(right))
        case _:
            raise AssertionError(f"not a whole number: {expr}")


def _infix(op: str, left: Text, right: Text) -> Text:
    how = primitive(op).spellings["python"]
    assert isinstance(how, Infix), op
    first, second = left.within(how.precedence), right.within(how.precedence + 1)
    return Text(f"{first} {how.symbol} {second}", how.precedence, True)
