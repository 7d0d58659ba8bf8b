"""The surfaces on which something in an expression is equal: the relations in the
``domain`` and ``kinks`` of a row of the table of primitives, with the arguments put in,
beside the relations in the conditions of conditionals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, memo, names, nodes, substitute
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.borders.bounds import relations


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
    def names(self) -> frozenset[str]:
        """The variables of both sides."""
        return names(self.left) | names(self.right)

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
