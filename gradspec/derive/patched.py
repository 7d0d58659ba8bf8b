"""Points defined by hand, ``… if x != 0 else 1``, given the slope of the function
there.

Differentiated piece by piece the constant has slope 0, the function that it completes
has another: so the constant becomes ``1 + slope * (x - 0)``, which is the same at that
point. The slope is the second coefficient of the function's Taylor series, if that is
rational and the first is the constant.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from gradspec.derive.build import plus, times
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.rule import Let
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import inline, names, nodes, size, transform

_WIDTH, _ORDER = Fraction(1, 64), 8
_LARGEST = 60  # nodes
_FREE = "·"  # no name of a rule


def filled(forward: tuple[Let, ...]) -> tuple[Let, ...]:
    """Values with a slope at each point that is defined by hand, ready for
    derivation."""
    return tuple(_filled(forward, let) for let in forward)


def _filled(forward: tuple[Let, ...], let: Let) -> Let:
    if not any(isinstance(node, Select) for node in nodes(let.value)):
        return let
    whole = tidy(inline(forward, let.value))
    found = transform(whole, _with_slope)
    return let if found == whole else replace(let, value=found)


def _with_slope(node: Expr) -> Expr:
    match node:
        case Select(
            condition=Apply(op="ne" | "eq" as op, args=(place, Const(value=at))),
            then=then,
            other=other,
        ):
            whole, patch = (then, other) if op == "ne" else (other, then)
            if not isinstance(patch, Const) or not names(place):
                return node
            slope = _slope(whole, place, at, patch.value)
            if not slope:
                return node
            step = fold(Apply("sub", (place, Const(at))))
            line = plus(patch, times(Const(slope), step))
            branches = (whole, line) if op == "ne" else (line, whole)
            return Select(node.condition, *branches, span=node.span)
        case _:
            return node


@lru_cache(maxsize=256)
def _slope(whole: Expr, place: Expr, at: Fraction, value: Fraction) -> Fraction | None:
    """The slope of a function of ``place`` alone where it is ``at``, if its limit there
    is ``value`` and the slope is rational."""
    if size(whole) > _LARGEST:
        return None
    alone = transform(whole, lambda n: Ref(_FREE) if n == place else n)
    if names(alone) != {_FREE}:
        return None
    from gradspec.symbolic.series import rational_start

    found = rational_start(alone, _FREE, at, _WIDTH, _ORDER)
    return found[1] if found is not None and found[0] == value else None
