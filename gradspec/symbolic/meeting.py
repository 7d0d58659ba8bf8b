"""Where several kinks meet in one point, each by itself.

A sum of rectifiers that all turn at the same input (``relu(a * x) + relu(b * x)`` at
``x = 0``) has slopes on either side of that input, but what frameworks and people take
there is a slope of each rectifier, chosen without regard to the others. Those are the
values of the derivative with every comparison that is an equality decided by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from gradspec.ir.expr import ONE, ZERO, Apply, Expr
from gradspec.ir.tidy import fold
from gradspec.ir.walk import transform
from gradspec.symbolic.enclose import defined, enclose
from gradspec.symbolic.neighbours import PRECISION, borders_at

_MOST = 7
"""Kinks in one point: each doubles the number of choices."""

_TRUE, _FALSE = Apply("lt", (ZERO, ONE)), Apply("lt", (ONE, ZERO))
_HOLDS = {
    "lt": (True, False),
    "le": (True, False),
    "gt": (False, True),
    "ge": (False, True),
    "eq": (False, False),
    "ne": (True, True),
}
"""Where the left side is the smaller one, and where it is the larger one."""

Pair = tuple[Expr, Expr]


def choices(expr: Expr, point: Mapping[str, Fraction]) -> tuple[Any, ...] | None:
    """The finite values of ``expr`` at a point, its kinks there decided one by one; none
    where no two kinks meet, None where too many do to try them all.
    """
    pairs = _distinct(borders_at((expr,), point))
    if len(pairs) < 2:
        return ()
    if len(pairs) > _MOST:
        return None
    sides = product((False, True), repeat=len(pairs))
    decided = (_decided(expr, dict(zip(pairs, side, strict=True))) for side in sides)
    values = (enclose(one, point, PRECISION) for one in dict.fromkeys(decided))
    return tuple(value for value in values if defined(value))


def _distinct(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """``a < b`` and ``b < a`` are decided together."""
    kept: dict[Pair, None] = {}
    for a, b in pairs:
        if (b, a) not in kept:
            kept[a, b] = None
    return tuple(kept)


def _decided(expr: Expr, is_larger: Mapping[Pair, bool]) -> Expr:
    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(a, b)) if op in _HOLDS:
                if (a, b) in is_larger:
                    return _TRUE if _HOLDS[op][is_larger[a, b]] else _FALSE
                if (b, a) in is_larger:
                    return _TRUE if _HOLDS[op][not is_larger[b, a]] else _FALSE
            case Apply(op="sign", args=(a,)) if (a, ZERO) in is_larger:
                return ONE if is_larger[a, ZERO] else Apply("neg", (ONE,))
        return fold(node)

    return transform(expr, visit)
