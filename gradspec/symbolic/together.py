"""True values of many expressions at many points: what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Point, Program, Value

_PRECISIONS = (128, 768)
_BITS = 40
"""Of relative accuracy that a value must have to be told."""


def together(exprs: Sequence[Expr], points: Sequence[Point]) -> list[list[float]]:
    """Point by point, the value of each expression as a float (nan where it is not
    defined or not known to some 40 bits; conditions are 1 and 0)."""
    compiled = Program(tuple(exprs))  # large, and asked for once: not remembered
    found = []
    for point in points:
        values = [_number(ball) for ball in compiled.run(point, _PRECISIONS[0])]
        if None in values:
            again = compiled.run(point, _PRECISIONS[1])
            values = [
                _number(ball) if value is None else value
                for value, ball in zip(values, again, strict=True)
            ]
        found.append([nan if value is None else value for value in values])
    return found


def _number(ball: Value) -> float | None:
    """None where more bits might tell; what is undefined stays so."""
    if ball is None:
        return None
    if isinstance(ball, bool):
        return float(ball)
    if not ball.is_finite():
        return None
    if ball.is_exact() or _is_sharp(ball):
        return float(ball.mid())
    return None


def _is_sharp(ball: Any) -> bool:
    return bool(ball.rel_accuracy_bits() >= _BITS)
