"""Borders at which an expression changes its branch, and conditions solved for a
variable.

``a + 2 * x < 1`` is ``x < (1 - a) / 2``: used to sample inside assumptions and on both
sides of every threshold of a rule, so it only has to know the plain cases; what it
cannot solve is met by rejection.

The surfaces on which something in an expression is equal are found in the table of
primitives: the relations in a row's ``domain`` and ``kinks``, with the arguments put
in, beside the relations in the conditions of conditionals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select, apply, show
from gradspec.ir.products import conjuncts
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, memo, names, nodes, substitute
from gradspec.primitives.lookup import formula, primitive, rows

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


# --- surfaces ------------------------------------------------------------------------


class Origin(Enum):
    """The origin of a surface."""

    CHOICE = "the condition of a conditional"
    KINK = "a kink of a primitive"
    STEP = "a jump of a primitive"
    EDGE = "the edge of a primitive's domain"
    END = "an end of the assumed domain"


@dataclass(frozen=True, slots=True)
class Surface:
    """The points where ``left == right``, and what lies there: a `Select` or an `Apply`
    (None at an end of the assumed domain). ``only``: a kink's whole condition, where it
    says more (``x == 0 and y == 0``).
    """

    left: Expr
    right: Expr
    origin: Origin
    node: Expr | None = None
    only: Expr | None = None

    @property
    def is_lattice(self) -> bool:
        """True if these are the surfaces on which ``left`` is an integer."""
        return self.right == Apply("floor", (self.left,))


@memo(512)
def surfaces(expr: Expr) -> tuple[Surface, ...]:
    """All of an expression, those of its parts first. What is only asked for in a
    condition has no kinks: ``abs(x) < 3`` breaks at 3 and -3 alone.
    """
    found: dict[Surface, None] = {}
    valued = _value_nodes(expr)
    for node in nodes(expr):
        for surface in _of(node):
            if surface.origin is Origin.KINK and node not in valued:
                continue
            if names(surface.left) or names(surface.right):
                found[surface] = None
    return tuple(found)


def _value_nodes(expr: Expr) -> frozenset[Expr]:
    """The nodes that are not in conditions only."""
    found: set[Expr] = set()
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            parts = children(node)
            waiting += parts[1:] if isinstance(node, Select) else parts
    return frozenset(found)


def _of(node: Expr) -> Iterator[Surface]:
    match node:
        case Select(condition=condition):
            for left, right in relations(condition):
                yield Surface(left, right, Origin.CHOICE, node)
        case Apply(op="pow", args=args):
            yield from _of_power(node, *args)
        case Apply(op="div", args=(_, Const())):
            return
        case Apply(op=op, args=args) if args:
            yield from _of_primitive(node, op, args)
        case _:
            return


def _of_power(node: Expr, base: Expr, exponent: Expr) -> Iterator[Surface]:
    """The border of a power: base 0, unless the exponent is a positive integer."""
    if not names(base):
        return
    if isinstance(exponent, Const):
        power = exponent.value
        if power.denominator == 1 and power >= 0:
            return
    yield Surface(base, ZERO, Origin.EDGE, node)


def _of_primitive(node: Expr, op: str, args: tuple[Expr, ...]) -> Iterator[Surface]:
    templates = _templates(op)
    if not templates:
        return
    values = dict(zip(primitive(op).params, args, strict=True))
    for template in templates:
        left = tidy(substitute(template.left, values))
        right = tidy(substitute(template.right, values))
        only = None if template.only is None else substitute(template.only, values)
        yield Surface(left, right, template.origin, node, only)


@cache
def _templates(op: str) -> tuple[Surface, ...]:
    row = primitive(op)
    is_step = row.is_step or op in _JUMPING
    found: dict[Surface, None] = {}
    for condition, _ in row.kinks:
        origin = Origin.STEP if is_step else Origin.KINK
        whole = formula(condition)
        only = whole if isinstance(whole, Apply) and whole.op == "and" else None
        for left, right in relations(whole):
            found[Surface(left, right, origin, None, only)] = None
    if row.domain:
        origin = Origin.STEP if is_step and not row.kinks else Origin.EDGE
        for left, right in relations(formula(row.domain)):
            found[Surface(left, right, origin)] = None
    return tuple(found)


_JUMPING = ("mod", "atan2")
"""Primitives that jump though they are no steps: at a multiple, and across the cut of
the angle."""


def relations(condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Both sides of every comparison in a condition."""
    for node in nodes(condition):
        if isinstance(node, Apply) and node.op in RELATIONS:
            left, right = node.args
            yield left, right
