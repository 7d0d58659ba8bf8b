"""Solving a condition for one variable: ``a + 2 * x < 1`` is ``x < (1 - a) / 2``.

Used to sample inside assumptions and on both sides of every threshold of a rule, so it
only has to know the plain cases; what it cannot solve is met by rejection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.walk import names, nodes, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
RELATIONS = tuple(_FLIPPED)


@dataclass(frozen=True, slots=True)
class Bound:
    """``variable op value`` where ``value`` does not contain the variable."""

    variable: str
    op: str
    value: Expr


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts of a condition that all have to hold."""
    if isinstance(condition, Apply) and condition.op == "and":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


@lru_cache(maxsize=256)
def bounds(condition: Expr) -> tuple[Bound, ...]:
    """What the relations among the conjuncts say of each variable."""
    found: list[Bound] = []
    for part in conjuncts(condition):
        if isinstance(part, Apply) and part.op in RELATIONS and part.op != "ne":
            found.extend(_solve_all(part.op, *part.args))
    return tuple(found)


@lru_cache(maxsize=256)
def thresholds(expr: Expr) -> tuple[Bound, ...]:
    """Where the expression changes its form: each as ``variable eq value``."""
    found: dict[Bound, None] = {}
    for left, right in borders(expr):
        found.update(dict.fromkeys(_solve_all("eq", left, right)))
    return tuple(found)


@lru_cache(maxsize=256)
def solutions(left: Expr, right: Expr, variable: str) -> tuple[Expr, ...]:
    """What ``variable`` is where both sides are equal, as far as it can be solved for."""
    found = _solve_all("eq", left, right)
    return tuple(bound.value for bound in found if bound.variable == variable)


@lru_cache(maxsize=256)
def cases(expr: Expr, variables: frozenset[str]) -> tuple[Bound, ...]:
    """Where its conditionals tell values of ``variables`` apart by those alone."""
    found: dict[Bound, None] = {}
    for select in nodes(expr):
        if isinstance(select, Select):
            for part in nodes(select.condition):
                if (
                    isinstance(part, Apply)
                    and part.op in RELATIONS
                    and names(part) <= variables
                ):
                    found.update(dict.fromkeys(_solve_all("eq", *part.args)))
    return tuple(found)


@lru_cache(maxsize=256)
def borders(expr: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """Pairs that are equal exactly where the expression may change its form."""
    found: dict[tuple[Expr, Expr], None] = {}
    for node in nodes(expr):
        found.update(dict.fromkeys(_borders(node)))
    return tuple(found)


def _borders(node: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Of a comparison its sides; of a primitive the equations of its kinks."""
    match node:
        case Apply(op=op, args=(left, right)) if op in RELATIONS:
            yield left, right
        case Apply(op=op, args=args):
            for left, right in _kinks(op):
                values = dict(zip(primitive(op).params, args, strict=True))
                yield substitute(left, values), substitute(right, values)
        case _:
            return


@cache
def _kinks(op: str) -> tuple[tuple[Expr, Expr], ...]:
    """Kinks at single points (``x == 0 and y == 0``) are no borders."""
    found: list[tuple[Expr, Expr]] = []
    for condition, _ in primitive(op).kinks:
        parts = [p for p in conjuncts(formula(condition)) if isinstance(p, Apply)]
        equations = [(p.args[0], p.args[1]) for p in parts if p.op == "eq"]
        found += equations if len(equations) == 1 else []
    return tuple(found)


def _solve_all(op: str, left: Expr, right: Expr) -> Iterator[Bound]:
    for variable in sorted(names(left) | names(right)):
        in_left, in_right = variable in names(left), variable in names(right)
        if in_left and not in_right:
            yield from _solve(variable, op, left, right)
        elif in_right and not in_left:
            yield from _solve(variable, _FLIPPED[op], right, left)


def _solve(variable: str, op: str, side: Expr, value: Expr) -> Iterator[Bound]:
    """Undo the outermost operation of ``side`` until the variable stands alone."""
    match side:
        case Ref(name=name, indices=()) if name == variable:
            yield Bound(variable, op, value)
        case Apply(op="neg", args=(arg,)):
            yield from _solve(variable, _FLIPPED[op], arg, apply("neg", value))
        case Apply(op="abs", args=(arg,)) if op in ("lt", "le", "eq"):
            yield from _solve(variable, op, arg, value)
            yield from _solve(variable, _FLIPPED[op], arg, apply("neg", value))
        case Apply(op="add" | "sub" | "mul" | "div"):
            yield from _solve_binary(variable, op, side, value)
        case _:
            return


def _solve_binary(variable: str, op: str, side: Apply, value: Expr) -> Iterator[Bound]:
    left, right = side.args
    in_left, in_right = variable in names(left), variable in names(right)
    if in_left and in_right:
        return
    inner, other = (left, right) if in_left else (right, left)
    match side.op:
        case "add":
            yield from _solve(variable, op, inner, apply("sub", value, other))
        case "sub" if in_left:
            yield from _solve(variable, op, inner, apply("add", value, other))
        case "sub":
            solved = apply("sub", other, value)
            yield from _solve(variable, _FLIPPED[op], inner, solved)
        case "mul" | "div" as operation if operation == "mul" or in_left:
            inverse = "div" if operation == "mul" else "mul"
            turned = _scaled(op, other)
            if turned is not None:
                yield from _solve(variable, turned, inner, apply(inverse, value, other))
        case _:
            return


def _scaled(op: str, factor: Expr) -> str | None:
    """The relation after division by ``factor``, if its sign is known."""
    if op == "eq":
        return op
    if isinstance(factor, Const) and factor.value != 0:
        return op if factor.value > 0 else _FLIPPED[op]
    return None
