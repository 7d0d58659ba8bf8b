"""Expansion of primitives that a target lacks; unsupported ones; constant folding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from gradspec.ir import expr as ir
from gradspec.plan.arrays import (
    Expr,
    Literal,
    Op,
    ToFloat,
    Where,
    children,
    is_number,
    nodes,
    substitute,
    transform,
)
from gradspec.plan.operations import ONE, ZERO, Types, rebuilt, translate
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Expand, Missing
from gradspec.symbolic.enclose import enclose


def expander(target: str, numbers: frozenset[str]) -> Callable[[Expr], Expr]:
    """A function that expands, recursively, the primitives that ``target`` spells by a
    formula, and folds constants. ``numbers`` are the names of Python numbers.
    """

    def expand(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(folded(expr)):
            value = rebuilt(node, tuple(done[child] for child in children(node)))
            done[node] = written = expanded(value)
        return folded(written)

    def expanded(value: Expr) -> Expr:
        if not isinstance(value, Op):
            return value
        row = primitive(value.primitive)
        spelling = row.spellings.get(target)
        if not isinstance(spelling, Expand) or is_number(value, numbers):
            return value
        holes = dict(zip(row.params, value.args, strict=True))
        fixed = {p for p, arg in holes.items() if is_number(arg, numbers)}
        types = Types(frozenset(fixed), frozenset(), frozenset())
        return expand(substitute(translate(formula(spelling.formula), types), holes))

    return expand


def missing(exprs: Iterable[Expr], target: str) -> tuple[tuple[str, str], ...]:
    """Primitives that the target does not support, each with the reason, in order."""
    found: dict[str, str] = {}
    for node in nodes(*exprs):
        if isinstance(node, Op):
            spelling = primitive(node.primitive).spellings.get(target)
            if spelling is None:
                found[node.primitive] = "it has no such function"
            elif isinstance(spelling, Missing):
                found[node.primitive] = spelling.reason
    return tuple(found.items())


# --- constants ------------------------------------------------------------------------
#
# Constants folded.
#
# A value of literals alone is computed here, once, to the nearest double: Python's
# `math` raises where a framework's function gives infinity or NaN (``math.log(0.0)``),
# even in a branch that is not taken.


_INFINITY = Op("inf")
_BITS = 200
"""Precision of constants in bits: nearly four times that of a double."""

_COMPARED: dict[str, Callable[..., bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
    "square": lambda a: a * a,
    "max": max,
    "min": min,
}


def folded(expr: Expr) -> Expr:
    """``expr`` with operations on literals evaluated."""
    done: dict[Expr, Expr] = {}
    for node in nodes(expr):
        parts = tuple(done[child] for child in children(node))
        done[node] = _folded(rebuilt(node, parts))
    return transform(done[expr], _written)


def _written(node: Expr) -> Expr:
    """A known condition that stands alone, written as a comparison."""
    match node:
        case Op("true"):
            return Op("eq", (ZERO, ZERO))
        case Op("false"):
            return Op("ne", (ZERO, ZERO))
        case _:
            return node


def _folded(node: Expr) -> Expr:
    match node:
        case Where(condition=Op("true"), then=then):
            return then
        case Where(condition=Op("false"), other=other):
            return other
        case ToFloat(arg=Literal() as number):
            return number
        case ToFloat(arg=Op("true")):
            return ONE
        case ToFloat(arg=Op("false")):
            return ZERO
        case Op(primitive=op, args=args) if args and all(map(_is_constant, args)):
            return _constant(node, op)
        case Op(primitive="and" | "or" | "not", args=args):
            return _logic(node)
        case _:
            return node


def _is_constant(value: Expr) -> bool:
    return isinstance(value, Literal) or value in (Op("pi"), _INFINITY, _negative())


def _negative() -> Expr:
    return Op("neg", (_INFINITY,))


def _constant(node: Op, op: str) -> Expr:
    values = [arg.value for arg in node.args if isinstance(arg, Literal)]
    if len(values) < len(node.args):
        return _in_balls(node) if op not in ("neg",) else node
    if op in _COMPARED:
        return Op("true" if _COMPARED[op](*values) else "false")
    if op in _EXACT:
        return Literal(_EXACT[op](*values))
    if op == "div" and values[1]:
        return Literal(values[0] / values[1])
    return _in_balls(node)


def _logic(node: Op) -> Expr:
    """Conditions with a known operand."""
    true, false = Op("true"), Op("false")
    match node:
        case Op("not", (arg,)) if arg in (true, false):
            return false if arg == true else true
        case Op("and", (a, b)):
            if false in (a, b):
                return false
            return b if a == true else a if b == true else node
        case Op("or", (a, b)):
            if true in (a, b):
                return true
            return b if a == false else a if b == false else node
        case _:
            return node


def _in_balls(node: Op) -> Expr:
    """The nearest double of a function of constants; the node if there is none."""
    row = primitive(node.primitive)
    if row.result != "real" or "number" in row.types:
        return node
    try:
        ball: Any = enclose(
            ir.Apply(node.primitive, tuple(map(_constant_of, node.args))), {}, _BITS
        )
    except (ArithmeticError, ValueError, NotImplementedError, TypeError):
        return node
    if ball is None or ball.is_nan() or not (ball.is_finite() or ball.is_exact()):
        return node
    number = float(ball.mid()) if ball.is_finite() else float(ball)
    if abs(number) == math.inf:
        return _INFINITY if number > 0 else _negative()
    return Literal(Fraction(number))


def _constant_of(value: Expr) -> ir.Expr:
    match value:
        case Literal(value=number):
            return ir.Const(number)
        case Op("neg", (inner,)):
            return ir.Apply("neg", (_constant_of(inner),))
        case Op(name):
            return ir.Apply(name)
        case _:
            raise AssertionError(value)
