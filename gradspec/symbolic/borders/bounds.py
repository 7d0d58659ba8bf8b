"""Borders at which an expression changes its branch, and conditions solved for a
variable.

``a + 2 * x < 1`` is ``x < (1 - a) / 2``: used to sample inside assumptions and on both
sides of every threshold of a rule, so it only has to know the plain cases; what it
cannot solve is met by rejection.

A border is met where two sides are equal, or where its gap is 0 and the conditions of
its path hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, apply, show
from gradspec.ir.products import conjuncts
from gradspec.ir.walk import children, memo, names, nodes, substitute, transform
from gradspec.primitives.lookup import formula, primitive, rows
from gradspec.symbolic.enclose import enclose

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
RELATIONS = tuple(_FLIPPED)

STEPS = {
    row.name: row.zero_from + 1 or Fraction(1)
    for row in rows()
    if row.zero_from is not None
}
"""The lowest positive points at which step functions jump."""


@dataclass(frozen=True, slots=True)
class Bound:
    """``variable op value`` where ``value`` does not contain the variable."""

    variable: str
    op: str
    value: Expr


def tighten(conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The conjuncts of conditions; two that leave only an equation (``a <= b, b <= a``)
    as that."""
    parts = tuple(dict.fromkeys(p for c in conditions for p in conjuncts(c)))
    pairs = {pair: None for part in parts if (pair := _below(part)) is not None}
    made: dict[Expr, None] = {}
    for part in parts:
        pair = _below(part)
        if pair is None or pair[::-1] not in pairs:
            made[part] = None
        else:
            made[Apply("eq", tuple(sorted(pair, key=show)))] = None
    return tuple(made)


def _below(part: Expr) -> tuple[Expr, Expr] | None:
    """The smaller and the larger side of ``<=``."""
    match part:
        case Apply(op="le", args=(left, right)) | Apply(op="ge", args=(right, left)):
            return left, right
        case _:
            return None


@memo(256)
def bounds(condition: Expr) -> tuple[Bound, ...]:
    """Bounds of each variable by the relations among the conjuncts."""
    found: list[Bound] = []
    for part in conjuncts(condition):
        if isinstance(part, Apply) and part.op in RELATIONS and part.op != "ne":
            found.extend(_solve_all(part.op, *part.args))
    return tuple(found)


@memo(256)
def thresholds(expr: Expr) -> tuple[Bound, ...]:
    """Borders at which the expression changes its branch, each as ``variable eq
    value``."""
    found: dict[Bound, None] = {}
    for left, right in borders(expr):
        found.update(dict.fromkeys(_solve_all("eq", left, right)))
    return tuple(found)


@memo(256)
def solutions(left: Expr, right: Expr, variable: str) -> tuple[Expr, ...]:
    """Values of ``variable`` at which both sides are equal, where it can be solved
    for."""
    found = _solve_all("eq", left, right)
    return tuple(bound.value for bound in found if bound.variable == variable)


@memo(256)
def cases(expr: Expr, variables: frozenset[str]) -> tuple[Bound, ...]:
    """Values of ``variables`` that its conditionals tell apart by those alone."""
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


@memo(256)
def borders(expr: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """Pairs that are equal exactly where the expression may change its branch."""
    found: dict[tuple[Expr, Expr], None] = {}
    for node in nodes(expr):
        found.update(dict.fromkeys(borders_of(node)))
    return tuple(found)


def borders_of(node: Expr) -> Iterator[tuple[Expr, Expr]]:
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
    """Equations of kinks; kinks at single points (``x == 0 and y == 0``) are no
    borders."""
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
            turned = _scale(op, other)
            if turned is not None:
                yield from _solve(variable, turned, inner, apply(inverse, value, other))
        case _:
            return


def _scale(op: str, factor: Expr) -> str | None:
    """The relation after division by ``factor``, if its sign is known."""
    if op == "eq":
        return op
    if isinstance(factor, Const) and factor.value != 0:
        return op if factor.value > 0 else _FLIPPED[op]
    return None


def relations(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Both sides of every comparison in a condition."""
    for node in nodes(condition):
        if isinstance(node, Apply) and node.op in RELATIONS:
            left, right = node.args
            yield left, right


# --- borders with what has to hold for them to count ---------------------------------


_DEEPEST = 6
"""Conditions under which a border is looked at."""

_MOST_PATHS = 5000

GROUPS = {
    "lt": ((-1,), (0, 1)),
    "le": ((-1, 0), (1,)),
    "gt": ((1,), (-1, 0)),
    "ge": ((0, 1), (-1,)),
    "eq": ((0,), (-1, 1)),
    "ne": ((0,), (-1, 1)),
}
"""Signs of a difference that a comparison does not tell apart."""


@dataclass(frozen=True, slots=True)
class Border:
    """An expression that is 0 where a node changes its form, the conditions under which
    the node counts, and the signs on which its form is one."""

    gap: Expr
    path: tuple[tuple[Expr, bool], ...]
    groups: tuple[tuple[int, ...], ...]

    def holds(self, point: Mapping[str, Fraction]) -> bool:
        return all(enclose(c, point) is wanted for c, wanted in self.path)


def borders_by_path(expr: Expr) -> tuple[Border, ...]:
    """The borders of an expression, outer conditions first."""
    found: dict[Border, None] = {}
    todo: list[tuple[Expr, tuple[tuple[Expr, bool], ...]]] = [(expr, ())]
    seen = set(todo)
    for node, path in todo:
        if len(seen) > _MOST_PATHS:
            break
        # What is below an equation that holds is a set without interior.
        is_thin = any(truth and is_equation(c) for c, truth in path)
        for border in () if is_thin else _borders_of_node(node, path):
            found.update(dict.fromkeys(_by_branches(border)))
        below = [(child, path) for child in children(node)]
        if isinstance(node, Select):
            taken = ((*path, (node.condition, truth)) for truth in (True, False))
            below[1:] = zip((node.then, node.other), taken, strict=True)
        fresh = [pair for pair in below if pair not in seen]
        seen.update(fresh)
        todo += fresh
    return tuple(found)


def _borders_of_node(
    node: Expr, path: tuple[tuple[Expr, bool], ...]
) -> Iterator[Border]:
    match node:
        case Apply(op=op, args=(left, right)) if op in RELATIONS:
            yield Border(Apply("sub", (left, right)), path, GROUPS[op])
        case Apply(op=op, args=(arg,)) if op in STEPS:
            gap = Apply("sub", (arg, Const(STEPS[op])))
            yield Border(gap, path, ((-1,), (0, 1)))
        case Apply(op=op):
            # A step may have a value of its own where it jumps.
            is_step = primitive(op).is_step
            groups = ((-1,), (0,), (1,)) if is_step else ((-1,), (1,))
            for left, right in borders_of(node):
                yield Border(Apply("sub", (left, right)), path, groups)
        case _:
            return


def _by_branches(border: Border) -> Iterator[Border]:
    """The border in each branch of the choices in its expression."""
    choice = next((n for n in nodes(border.gap) if isinstance(n, Select)), None)
    if choice is None or len(border.path) > _DEEPEST:
        yield border
        return
    for branch, truth in ((choice.then, True), (choice.other, False)):
        gap = transform(
            border.gap,
            lambda n, b=branch: b if n == choice else n,  # type: ignore[misc]
        )
        path = (*border.path, (choice.condition, truth))
        yield from _by_branches(replace(border, gap=gap, path=path))


def is_equation(condition: Expr) -> bool:
    return isinstance(condition, Apply) and condition.op == "eq"
