"""Exponentials in two halves, and constants inside of them (`scaled.py`).

``x * exp(z)`` at x = -8e25 and z = -112 is a normal number though its exponential is none
in float32, however it is shifted: far out it is ``(x * exp(z / 2)) * exp(z / 2)``. And a
constant before an exponential, ``1.75 * exp(x)``, may stand in it: ``exp(x + 0.5625)``
times what is left, less than 1; the sum of so few bits is exact but next to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log

from gradspec.derive.build import negate
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Select, const
from gradspec.ir.walk import names, nodes
from gradspec.stabilise.bounding import factors, product
from gradspec.stabilise.search import replaced

DEEP = 80
"""Exponentials below e**-80 are taken in halves."""

_HALF = Const(Fraction(1, 2))
_STEPS = 16  # to a unit, of what is added to an exponent
_LARGEST = 2**16  # of constants that are taken into one


@dataclass(frozen=True, slots=True)
class _Deep:
    """Where a leaf is an exponential far out, and half of that one's exponent."""

    condition: Expr
    half: Expr


BELLS = frozenset(["exp_neg_square", "exp_neg_half_square"])
EXPONENTIALS = frozenset(
    ["exp", "sigmoid", "softplus", "logsigmoid", "exp_product", "sigmoid_product"]
)


def halved(form: Expr, ops: frozenset[str]) -> Iterator[Expr]:
    """``form``, proportional to one of its exponentials far out, with that in halves."""
    for node in dict.fromkeys(nodes(form)):
        if not isinstance(node, Apply) or node.op not in ops or not names(node):
            continue
        if deep := _deep(node):
            leaf = Select(deep.condition, deep.half, node)
            yield Apply("mul", (replaced(form, node, leaf), deep.half))


def _deep(node: Apply) -> _Deep | None:
    match node:
        case Apply(op="exp" | "sigmoid" | "softplus", args=(z,)):
            return _of_one(z)
        case Apply(op="logsigmoid", args=(z,)):
            return _of_one(negate(z))
        case Apply(op="exp_product" | "sigmoid_product", args=(a, b)):
            return _of_two(Apply("lt", (Apply("mul", (a, b)), const(-DEEP))), a, b)
        case Apply(op="exp_neg_half_square", args=(x,)):
            halved = Apply("mul", (_HALF, x))
            return _of_square(x, 2 * DEEP, "exp_neg_square", halved)
        case Apply(op="exp_neg_square", args=(x,)):
            return _of_square(x, DEEP, "exp_neg_half_square", x)
        case _:
            return None


def _of_one(z: Expr) -> _Deep:
    condition = Apply("lt", (z, const(-DEEP)))
    inner = Select(condition, Apply("mul", (_HALF, z)), ZERO)
    return _Deep(condition, Apply("exp", (inner,)))


def _of_two(condition: Expr, a: Expr, b: Expr) -> _Deep:
    """Both are 0 elsewhere, where one may be infinite."""
    halves = (a, Apply("mul", (_HALF, b)))
    args = tuple(Select(condition, part, ZERO) for part in halves)
    return _Deep(condition, Apply("exp_product", args))


def _of_square(x: Expr, least: int, op: str, argument: Expr) -> _Deep:
    """exp(-x**2 / 2) is the square of exp(-(x / 2)**2), and exp(-x**2) that of it."""
    condition = Apply("gt", (Apply("square", (x,)), const(least)))
    return _Deep(condition, Apply(op, (Select(condition, argument, ZERO),)))


# --- constants -----------------------------------------------------------------------


def taken_in(form: Expr) -> Iterator[Expr]:
    """A constant before an exponential within it."""
    for node in dict.fromkeys(nodes(form)):
        constants = [f for f in factors(node) if isinstance(f, Const)]
        if len(constants) == 1 and 1 < constants[0].value < _LARGEST:
            yield from _taken(form, node, constants[0])


def _taken(form: Expr, node: Expr, constant: Const) -> Iterator[Expr]:
    parts = factors(node)
    for place, part in enumerate(parts):
        match part:
            case Apply(op="exp", args=(z,)):
                more = Fraction(ceil(_STEPS * log(constant.value)), _STEPS)
                left = Fraction(float(constant.value) * exp(-more))
                inner = Apply("exp", (Apply("add", (z, Const(more))),))
                others = [p for k, p in enumerate(parts) if k != place]
                rest = [Const(left) if p is constant else p for p in others]
                yield replaced(form, node, product([*rest, inner]))
