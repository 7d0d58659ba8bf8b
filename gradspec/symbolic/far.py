"""What a function does as an input goes to plus or minus infinity.

The input becomes ``±1/u`` and ``u`` goes to 0 from above (`sides.approach`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gradspec.ir.expr import Apply, Expr, Ref, const
from gradspec.ir.walk import substitute
from gradspec.symbolic.enclose import program
from gradspec.symbolic.limit import in_time
from gradspec.symbolic.sides import OUTSIDE, UNKNOWN, Limit, approach

_NEAR = "u_"
"""No name of a rule ends like this."""

_SECONDS = 1.0


def far(
    exprs: tuple[Expr, ...],
    point: Mapping[str, Fraction],
    name: str,
    sign: int,
    assumed: tuple[Expr, ...],
) -> tuple[Limit, ...]:
    """The limit of each expression as ``name`` goes to ``sign`` times infinity, the other
    inputs as in ``point``; `OUTSIDE` where the assumptions do not hold on the way.
    """
    there = {name: Apply("div", (const(sign), Ref(_NEAR)))}
    start = {**point, _NEAR: Fraction(0)}
    compiled = program(*(substitute(expr, there) for expr in exprs))
    conditions = tuple(substitute(condition, there) for condition in assumed)
    found = in_time(
        _SECONDS, lambda: approach(compiled, start, _NEAR, 1, conditions) or ()
    )
    if found is None:
        return (UNKNOWN,) * len(exprs)
    return found or (OUTSIDE,) * len(exprs)
