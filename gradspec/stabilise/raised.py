"""The bell and the normal distribution far out, times e**16 (`scaled.py`).

``x * ndtr(x)`` at -13 is a normal number of float32 though ``ndtr(x)`` is none. Both
functions of one argument are raised together, so that sums of them are, too:

    y = x * ndtr_raised(x, 16 if x < -12 else 0)
    exp(-16) * y if x < -12 else y
"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.ir.expr import ZERO, Apply, Expr, Select, const
from gradspec.ir.walk import names, nodes, transform
from gradspec.primitives.table_raised import BELL_RAISED, NDTR_RAISED

_FAR, _RAISE = 12, 16
"""exp(-12**2 / 2) is e**-72: what is left of its format is as much as of an exponential
at -80 that is raised by as much."""

_RAISED = {"exp_neg_half_square": BELL_RAISED, "ndtr": NDTR_RAISED}


def raised(form: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Where an argument is far out on the left, and ``form`` with the functions of it
    raised there."""
    arguments: dict[Expr, None] = {}
    for node in nodes(form):
        match node:
            case Apply(op="ndtr", args=(x,)) if names(x):
                arguments[x] = None
    for x in arguments:
        condition = Apply("lt", (x, const(-_FAR)))
        yield condition, _with(form, x, Select(condition, const(_RAISE), ZERO))


def _with(form: Expr, x: Expr, more: Expr) -> Expr:
    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(argument,)) if argument == x and op in _RAISED:
                return Apply(_RAISED[op], (x, more))
            case _:
                return node

    return transform(form, visit)
